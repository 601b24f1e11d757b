"""Custom operators: declared from a Python function, with kernels for devices and a backward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..autograd.function import Function
from ..autograd.grad_mode import mode, no_grad
from ..backend import Kernel
from ..dispatch.operator import operators, primitive
from ..dispatch.providers import Provider, registry
from ..dtype import DTYPES, dtype as Dtype
from ..errors import ArgumentError, ArgumentTypeError, AutogradError
from ..tensor import Tensor, alias, tensors_in
from .schema import LIST, VALUE, Schema, ShapeRule

__all__ = ["CustomOp", "custom_op"]

_made: Final[dict[str, CustomOp]] = {}


class CustomOp:
    """A custom operator; :func:`custom_op` makes them.

    Call it like the function that declared it.  Every other part is optional and is one call:
    :meth:`gradient` or :meth:`register_autograd`, :meth:`register_kernel`, :meth:`register_fake`,
    :meth:`register_export`.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        mutates_args: Sequence[str],
        device_types: str | Sequence[str] | None,
        shapes: str | None,
    ) -> None:
        if name in operators and name not in _made:
            raise ArgumentError(f"The operator {name!r} is a built-in one.\nChoose a namespace of your own.")
        self.schema = Schema(name, function, mutates_args)
        self.shapes = None if shapes is None else self._rule(shapes)
        if name in _made:
            _made[name].remove()
        declared = primitive(
            self.schema.parameters, name=name, namespaces=(), method=False, mutates=bool(self.schema.mutated)
        )(self._public(function))
        self.op, self._run = declared.op, declared.run
        self._function: type[Function] | None = None
        #: gives tensors of the results' shapes and dtypes without computing; set by :meth:`register_fake`
        self.fake: Callable[..., Any] | None = None
        #: what writes a call into a file format, by the format's name
        self.exports: dict[str, Callable[..., Any]] = {}
        self.__name__, self.__doc__ = name.rpartition("::")[2], function.__doc__
        _made[name] = self
        if device_types is None:
            self.op.composite(self._kernel(function))
        else:
            self.register_kernel(device_types, function)

    @property
    def name(self) -> str:
        """``namespace::name``."""
        return self.op.name

    def __repr__(self) -> str:
        return f"<custom operator {self.schema}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.schema.bind(args, kwargs)
        self.result_shapes(given)
        if self._function is not None and mode.enabled:
            return self._function.apply(given, *_flat(given))
        result = self._run(*[given[i] for i in self.schema.order])
        return None if self.schema.mutated else result

    def _public(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What the declaration hangs its parts on, which it must not do to the user's function."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        call.__name__, call.__doc__ = function.__name__, function.__doc__
        return call

    def result_shapes(self, given: Sequence[Any]) -> list[tuple[int, ...]] | None:
        """What the shape rule says of the results for all arguments; None if it says nothing.

        Raises:
            RuntimeError: the arguments' shapes do not go together.
        """
        if self.shapes is None:
            return None
        pairs = [
            (argument.name, value.shape)
            for argument, value in zip(self.schema.arguments, given, strict=True)
            if isinstance(value, Tensor)
        ]
        if len(pairs) != len(self.shapes.inputs):
            return None
        return self.shapes.check([name for name, _ in pairs], [shape for _, shape in pairs])

    def _kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function as dispatch calls it: tensors first, without recording, with its results checked."""
        back, name, several = self.schema.back, self.name, self.schema.several
        plain = back == list(range(len(back)))

        @no_grad()
        @functools.wraps(function)
        def kernel(*args: Any) -> Any:
            given = mapped(args, _detached)
            if not plain:
                given = [given[i] for i in back]
            result = function(*given)
            if self.schema.mutated:
                return None
            for each in result if several and isinstance(result, (tuple, list)) else [result]:
                _check_result(name, each, given)
            return tuple(result) if several else result

        return kernel

    # -- what can be added ----------------------------------------------------

    def check_shapes(self, shapes: str) -> None:
        """Say which shapes go together, such as ``"(n, k), (k, m) -> (n, m)"``: checked before any kernel runs."""
        self.shapes = self._rule(shapes)

    def _rule(self, shapes: str) -> ShapeRule:
        rule = ShapeRule(self.schema.name, shapes)
        tensors = [each.name for each in self.schema.arguments if each.kind != VALUE]
        if len(rule.inputs) != len(tensors):
            raise ArgumentError(
                f"{self.schema.name}: shapes {shapes!r} describe {len(rule.inputs)} arguments; "
                f"the operator has {len(tensors)} tensors: {', '.join(tensors)}."
            )
        return rule

    def register_kernel(
        self,
        device_types: str | Sequence[str],
        function: Callable[..., Any] | None = None,
        *,
        dtypes: Sequence[Dtype] = DTYPES,
        predicate: Callable[..., bool] | None = None,
        priority: int = 0,
    ) -> Callable[..., Any]:
        """Give the kernel for one or several device types; also a decorator.

        Args:
            device_types: such as ``"cpu"``.
            function: takes the operator's arguments; tensors arrive detached.
            dtypes: those of the first tensor that it serves.
            predicate: accepts or declines a call, given the arguments, tensors first.
            priority: higher wins where several kernels serve a call.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            family = Kernel(self._kernel(function), dtypes, predicate)
            for device in [device_types] if isinstance(device_types, str) else device_types:
                count = sum(each.device == device and each.plugin == self.name for each in registry.providers)
                provider = Provider(
                    f"{self.name}{f'#{count + 1}' if count else ''}", device, {self.name: family}, priority=priority,
                    plugin=self.name,
                )  # fmt: skip
                registry.load(device)
                registry.add(provider)
            return function

        return register if function is None else register(function)

    def gradient(self, **formulas: Callable[..., Any]) -> None:
        """Give the gradients as formulas, one for each tensor argument that has one.

        A formula's first parameter is ``grad``, the gradient of the result (or ``grads``, those of several);
        the others name the arguments it reads, ``result``, or ``NAME_shape`` for an argument's shape alone.
        Formulas of differentiable operators differentiate again.
        """
        self._function = None
        self.op.gradient(**formulas)

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the backward as a function ``backward(ctx, *grads)`` that returns a gradient, or None, for each argument.

        Args:
            backward: for a list of tensors it returns a list of gradients.
            setup_context: ``(ctx, inputs, output)``: keeps on ``ctx`` what backward needs.

        Raises:
            RuntimeError: the operator writes into its argument.
        """
        if self.schema.mutated:
            raise AutogradError(
                f"{self.name} writes into {self.schema.mutated[0]!r}: its backward cannot be a function of ctx.\n"
                "Give formulas instead: gradient(NAME=lambda grad, ...: ...)."
            )
        self._function = _function(self, backward, setup_context)

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give what makes results of the right shape, dtype and device without computing them; also a decorator."""
        self.fake = function
        return function

    def register_export(self, format: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate what an exporter of a file format, such as ``"onnx"``, calls for this operator."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.exports[format] = function
            return function

        return register

    def remove(self) -> None:
        """Take the operator away, with its kernels."""
        for device in {each.device for each in registry.providers if each.plugin == self.name}:
            registry.remove(self.name, device)
        operators.pop(self.name, None)
        _made.pop(self.name, None)


def custom_op(
    name: str,
    function: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Sequence[str] = (),
    device_types: str | Sequence[str] | None = None,
    shapes: str | None = None,
) -> Any:
    """Declare an operator from a Python function; also a decorator.

    The annotations are the schema: ``Tensor``, ``Tensor | None`` and ``list[Tensor]`` are tensors, all else are plain
    values; the result is a ``Tensor`` or a tuple of them.  Declaring a name again replaces the operator.

    Args:
        name: ``namespace::name``.
        function: computes the result from detached tensors.
        mutates_args: the name of the one tensor that the operator writes into, if it does; it then returns nothing.
        device_types: for which devices the function is; all if not given.
        shapes: what shapes go together, such as ``"(n, k), (k, m) -> (n, m)"``: checked before any kernel runs.

    Raises:
        ValueError: the name has no namespace, or is a built-in operator's.
        TypeError: an annotation is missing.
    """
    if name.count("::") != 1 or not all(part.isidentifier() for part in name.split("::")):
        raise ArgumentError(f"Expected an operator's name like 'mylib::scale', got {name!r}.")
    names = [mutates_args] if isinstance(mutates_args, str) else list(mutates_args)

    def declare(function: Callable[..., Any]) -> CustomOp:
        return CustomOp(name, function, names, device_types, shapes)

    return declare if function is None else declare(function)


def mapped(given: Sequence[Any], change: Callable[[Tensor], Any]) -> list[Any]:
    """The arguments with each tensor replaced, those of lists too."""
    return [
        change(each)
        if isinstance(each, Tensor)
        else [change(part) for part in each]
        if isinstance(each, (list, tuple)) and any(isinstance(part, Tensor) for part in each)
        else each
        for each in given
    ]


def _detached(tensor: Tensor) -> Tensor:
    """Without history: what a kernel may pass to NumPy or C."""
    return tensor if tensor.node is None else alias(tensor)


def _check_result(name: str, result: Any, given: Sequence[Any]) -> None:
    if not isinstance(result, Tensor):
        raise ArgumentTypeError(
            f"{name}: expected its kernel to return a Tensor, got {type(result).__name__} {result!r:.60}."
        )
    for each in tensors_in(given):
        if each is result or (result.shared is not None and each.shared is result.shared):
            raise AutogradError(
                f"{name}: its kernel returned {'an argument' if each is result else 'a view of an argument'}, "
                f"of shape {list(result.shape)}.\nReturn new memory, for example a clone()."
            )


def _flat(given: Sequence[Any]) -> list[Any]:
    """Arguments with the lists of tensors laid out."""
    flat: list[Any] = []
    for each in given:
        if isinstance(each, (list, tuple)) and each and all(isinstance(part, Tensor) for part in each):
            flat += each
        else:
            flat.append(each)
    return flat


def _function(
    custom: CustomOp, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
) -> type[Function]:
    """The autograd Function that runs an operator and a backward written for ``ctx``."""
    lists = [each.kind == LIST for each in custom.schema.arguments]

    def forward(given: list[Any], *flat: Any) -> Any:
        return custom._run(*[given[i] for i in custom.schema.order])

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.lengths = [len(each) if listed else None for each, listed in zip(inputs[0], lists, strict=True)]
        needs = iter(ctx.needs_input_grad[1:])
        ctx.needs_input_grad = tuple(
            next(needs) if length is None else [next(needs) for _ in range(length)] for length in ctx.lengths
        )
        if setup_context is not None:
            setup_context(ctx, tuple(inputs[0]), output)

    def run_backward(ctx: Any, *grads: Any) -> Any:
        given = backward(ctx, *grads)
        results = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(results) != len(lists):
            raise AutogradError(
                f"{custom.name}: its backward returned {len(results)} gradients, expected {len(lists)}.\n"
                f"Return one for each argument of {custom.schema}, None where there is none."
            )
        flat: list[Any] = [None]  # for the arguments as they were given
        for result, length in zip(results, ctx.lengths, strict=True):
            flat += [result] if length is None else [None] * length if result is None else list(result)
        return tuple(flat)

    return type(
        custom.__name__, (Function,),
        {"forward": staticmethod(forward), "setup_context": staticmethod(setup), "backward": staticmethod(run_backward)},
    )  # fmt: skip
