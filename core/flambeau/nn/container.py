"""Modules that hold other modules or parameters: in a row, in a list, by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from ..errors import ArgumentError, ArgumentTypeError, BoundsError
from ..tensor import Tensor
from .module import MODULE, Module
from .parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

T = TypeVar("T")
L = TypeVar("L", bound="_Row[Any]")


class _Row(Module, Generic[T]):
    """Members named 0, 1, ...: what Sequential and the lists have in common."""

    def _kept(self) -> list[T]:
        raise NotImplementedError

    def _keep(self, values: Iterable[Any]) -> None:
        """Hold these, renumbered."""
        for name in self._names():
            delattr(self, name)
        for number, value in enumerate(values):
            self._put(str(number), value)

    def _names(self) -> list[str]:
        raise NotImplementedError

    def _put(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def _name_at(self, index: Any) -> str:
        names = self._names()
        position = operator.index(index)
        if not -len(names) <= position < len(names):
            raise BoundsError(f"index {position} is out of range: {type(self).__name__} has {len(names)} members.")
        return names[position]

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[T]:
        return iter(self._kept())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(dict(list(zip(self._names(), self._kept(), strict=True))[index]))
        return self.__dict__[self._name_at(index)]

    def _of(self, chosen: Mapping[str, T]) -> Any:
        return type(self)(list(chosen.values()))  # type: ignore[call-arg]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            names = self._names()[index]
            values = list(value)
            if len(names) != len(values):
                raise ArgumentError(f"expected {len(names)} values for the slice, got {len(values)}.")
            for name, each in zip(names, values, strict=True):
                self._put(name, each)
        else:
            self._put(self._name_at(index), value)

    def __delitem__(self, index: Any) -> None:
        kept = self._kept()
        if not isinstance(index, slice):
            self._name_at(index)
        del kept[index]
        self._keep(kept)

    def append(self: L, value: T) -> L:
        """Add one at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self: L, values: Iterable[T]) -> L:
        """Add several at the end.

        Raises:
            TypeError: ``values`` cannot be iterated.
        """
        if not isinstance(values, Iterable) or isinstance(values, (Tensor, str)):
            raise ArgumentTypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for number, value in enumerate(values, len(self)):
            self._put(str(number), value)
        return self

    def insert(self, index: int, value: T) -> None:
        """Add one before a position."""
        kept = self._kept()
        kept.insert(index, value)
        self._keep(kept)

    def pop(self, index: int = -1) -> Any:
        """Take one out."""
        value = self[index]
        del self[index]
        return value

    def __iadd__(self: L, values: Iterable[T]) -> L:
        return self.extend(values)

    def __add__(self, values: Iterable[T]) -> Any:
        return self._of({str(i): each for i, each in enumerate([*self, *values])})

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class _ModuleRow(_Row[Module]):
    def _names(self) -> list[str]:
        return [name for name, kind in self._members.items() if kind is MODULE]

    def _kept(self) -> list[Module]:
        held = self.__dict__
        return [held[name] for name, kind in self._members.items() if kind is MODULE]

    def _put(self, name: str, value: Any) -> None:
        self.add_module(name, value)


class Sequential(_ModuleRow):
    """Modules that feed each other in a row.

    Args:
        args: the modules, or one OrderedDict that names them.

    >>> import flambeau
    >>> flambeau.nn.Sequential(flambeau.nn.Linear(2, 3), flambeau.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _of(self, chosen: Mapping[str, Module]) -> Any:
        return type(self)(OrderedDict(chosen))

    def __delitem__(self, index: Any) -> None:
        # Names given in an OrderedDict stay; numbers close up.
        names = self._names()
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        if all(name.isdigit() for name in names):
            self._keep(self._kept())

    def forward(self, input: Any) -> Any:
        """Pass the input through all modules."""
        held = self.__dict__
        for name, kind in held["_members"].items():
            if kind is MODULE:
                input = held[name](input)
        return input


class ModuleList(_ModuleRow):
    """A list of modules; its owner's ``forward`` decides what to do with them.

    Args:
        modules: to begin with.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not defined: call the modules in the list."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class ParameterList(_Row[Any]):
    """A list of parameters (tensors become parameters; other values are held as they are).

    Args:
        values: to begin with.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def _names(self) -> list[str]:
        return sorted((name for name in self.__dict__ if name.isdigit()), key=int)

    def _kept(self) -> list[Any]:
        return [self.__dict__[name] for name in self._names()]

    def _put(self, name: str, value: Any) -> None:
        setattr(
            self, name, Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
        )

    def extra_repr(self) -> str:
        return "\n".join(f"({i}): {_described(each)}" for i, each in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class _Named(Module, Generic[T]):
    """Members by key, in order of insertion: what ModuleDict and ParameterDict have in common."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        object.__setattr__(self, "_keys", {})
        if values is not None:
            self.update(values)

    def _put(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def __getitem__(self, key: str) -> T:
        if key not in self.__dict__["_keys"]:
            raise KeyError(key)
        return cast(T, self.__dict__[key])

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{type(self).__name__} keys are strings, got {type(key).__name__} {key!r:.60}.")
        self._put(key, value)
        self.__dict__["_keys"][key] = None

    def __delitem__(self, key: str) -> None:
        del self.__dict__["_keys"][key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self.__dict__["_keys"])

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.__dict__["_keys"]))

    def __contains__(self, key: object) -> bool:
        return key in self.__dict__["_keys"]

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> T:
        """Take one out and return it."""
        value = self[key]
        del self[key]
        return value

    def keys(self) -> Iterable[str]:
        """The keys."""
        return list(self)

    def items(self) -> Iterable[tuple[str, T]]:
        """Keys with their members."""
        return [(key, self[key]) for key in self]

    def values(self) -> Iterable[T]:
        """The members."""
        return [self[key] for key in self]

    def get(self, key: str, default: Any = None) -> Any:
        """The member, or ``default``."""
        return self.__dict__[key] if key in self.__dict__["_keys"] else default

    def update(self, values: Any) -> None:
        """Add from a mapping or from pairs; existing keys are overwritten.

        Raises:
            TypeError: ``values`` is neither.
        """
        if isinstance(values, (Mapping, _Named)):
            values = values.items()
        elif not isinstance(values, Iterable):
            raise ArgumentTypeError(
                f"{type(self).__name__}.update should be called with an iterable of key/value pairs, "
                f"but got {type(values).__name__}"
            )
        for number, pair in enumerate(values):
            pair = tuple(pair)
            if len(pair) != 2:
                raise ArgumentError(
                    f"{type(self).__name__} update sequence element #{number} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]


class ModuleDict(_Named[Module]):
    """Modules by name.

    Args:
        values: a mapping, or pairs, to begin with.
    """

    def _put(self, key: str, value: Any) -> None:
        self.add_module(key, value)


class ParameterDict(_Named[Any]):
    """Parameters by name (tensors become parameters; other values are held as they are).

    Args:
        values: a mapping, or pairs, to begin with.
    """

    def _put(self, key: str, value: Any) -> None:
        if key not in self and hasattr(self, key):
            raise KeyError(f"attribute {key!r} already exists")
        setattr(
            self, key, Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
        )

    def extra_repr(self) -> str:
        return "\n".join(f"({key}): {_described(each)}" for key, each in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    sizes = "x".join(map(str, value.shape))
    return f"{type(value).__name__} containing: [flambeau.{value.dtype.name} of size {sizes} ({value.device})]"
