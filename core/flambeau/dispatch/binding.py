"""The arguments of a composite operator as one tuple, for kernels that stand in for its body."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["Binding"]


class Binding:
    """Takes calls apart by a function's signature, and puts them together again.

    Attributes:
        names: the parameters, in order; those that begin with an underscore are not a kernel's concern.
        fixed: whether there is one argument for each; kernels can stand in for such functions only.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters
        self.names = tuple(name for name in parameters if not name.startswith("_"))
        kinds = [parameters[name].kind for name in self.names]
        self.fixed = not {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & set(kinds)
        self._positional = len(kinds) - kinds.count(inspect.Parameter.KEYWORD_ONLY)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the signature, defaults filled in.

        Raises:
            TypeError: they do not fit.
        """
        if not kwargs and len(args) == len(self.names):
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.names)

    def spread(self, function: Callable[..., Any], /, *bound: Any) -> Any:
        """Call a function of this signature with what :meth:`bind` gave."""
        count = self._positional
        return function(*bound[:count], **dict(zip(self.names[count:], bound[count:])))
