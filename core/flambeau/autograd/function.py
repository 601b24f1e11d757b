"""Operators that users write with their own backward: ``flambeau.autograd.Function``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from ..errors import ArgumentTypeError, AutogradError
from ..tensor import Tensor, alias, clock, touch
from .grad_mode import mode, no_grad
from .node import Leaf, Node, Plan, edge, refresher, watcher

__all__ = ["Context", "Function", "once_differentiable", "without_derivative"]


class Context:
    """What ``forward`` and ``backward`` of a Function share; any attribute may be set on it."""

    #: for each argument, whether its gradient is wanted
    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep arguments or results for ``backward``, which finds them in :attr:`saved_tensors`.

        Backward raises if one was changed in place since.

        Raises:
            TypeError: something is neither a tensor nor None.
        """
        for each in tensors:
            if each is not None and not isinstance(each, Tensor):
                raise ArgumentTypeError(
                    f"save_for_backward can only save tensors, got {type(each).__name__} {each!r:.60}.\n"
                    "Set it as an attribute of ctx instead."
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What :meth:`save_for_backward` was given."""
        return self._saved

    saved_variables = saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Tell that ``forward`` changed these arguments in place; it must also return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Tell that these results have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (the default) or None for results that nothing depends on."""
        self._materialize = value


class _Op:
    """What a node shows of a Function as its operator."""

    lends = True

    def __init__(self, name: str) -> None:
        self.name = name


class FunctionNode(Node):
    """A recorded call of a Function."""

    __slots__ = ("context", "own")

    context: Context
    #: (position among what is saved, output number) of saved results
    own: tuple[tuple[int, int], ...]

    def name(self) -> str:
        return f"{self.op.name}Backward"

    def complete(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        return super().complete(grads) if self.context._materialize else grads

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``forward`` saved."""
        return self.unpack()

    def with_history(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        items = list(saved)
        for place, output in self.own:
            items[place] = self._owned(items[place], output)
        return tuple(items)


class Function:
    """An operator with a backward of its own.

    Derive from it, write ``forward`` and ``backward`` as static methods and call ``apply``::

        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return 2 * x * grad

        y = Square.apply(x)

    ``forward`` runs without recording.  ``backward`` gets the gradient of each result and returns one
    gradient, or None, for each argument; if it is made of differentiable operators, second derivatives work.
    """

    _op: ClassVar[_Op] = _Op("Function")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._op = _Op(cls.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AutogradError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method.\nMake forward(ctx, ...) and backward(ctx, ...) of "
            f"{type(self).__name__} static methods and call {type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results from ``ctx`` and the arguments (without ``ctx`` if there is a ``setup_context``)."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what ``backward`` needs; may be given instead of a ``forward`` that takes ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Compute the gradients of the arguments from those of the results."""
        raise NotImplementedError("You must implement the backward function for custom autograd.Function.")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run ``forward`` and record the call."""
        context = Context()
        edges = tuple(_edge(each) for each in args)
        context.needs_input_grad = tuple(each is not None for each in edges)
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                results = cls.forward(*args)
                cls.setup_context(context, args, results)
            else:
                results = cls.forward(context, *args)
        if not mode.enabled or not any(context.needs_input_grad):
            context._saved = ()
            return results
        return _attach(cls, context, edges, args, results)


def _edge(item: Any) -> tuple[Node | Leaf, int] | None:
    node = edge(item) if isinstance(item, Tensor) else None
    return None if node is None else (node, item.output)


def _attach(
    cls: type[Function],
    context: Context,
    edges: tuple[tuple[Node | Leaf, int] | None, ...],
    args: tuple[Any, ...],
    results: Any,
) -> Any:
    """Hang a node on the results."""
    several = isinstance(results, (tuple, list))
    outputs: list[Any] = list(results) if several else [results]
    _check_dirty(cls, context._dirty, args, outputs)
    node = FunctionNode()
    node.op, node.edges, node.context = cls._op, edges, context
    tensors = tuple(isinstance(each, Tensor) for each in args)
    node.plan = Plan(tuple, functools.partial(_backward, cls, context, tensors), None)
    if watcher.watching:
        watcher.see(node)
    saved, own = list(context._saved), []
    for place, each in enumerate(saved):
        # A saved result goes without its history, lest the node hold its own output.
        number = _position(each, outputs)
        if number is not None and (_position(each, args) is None or _position(each, context._dirty) is not None):
            saved[place] = alias(cast(Tensor, each))
            own.append((place, number))
    for number, each in enumerate(outputs):
        # An argument that is passed through unchanged stays what it is; the result is another tensor.
        if isinstance(each, Tensor) and _position(each, args) is not None and _position(each, context._dirty) is None:
            outputs[number] = alias(each)
    for each in context._dirty:
        touch(each)
    node.saved, node.own, node.sequence = tuple(saved), tuple(own), clock()
    described = [(each.key, each.geometry) if isinstance(each, Tensor) else None for each in outputs]
    node.metadata = described if several else described[0]
    constant = [_position(each, _listed(results)) for each in context._constant]
    for number, each in enumerate(outputs):
        if isinstance(each, Tensor) and each.dtype.category >= 2 and number not in constant:
            each.node, each.output = node, number
    for each in context._dirty:
        if each.base is not None:
            refresher.scatter(each.base, each)
        cast(Any, each.shared).rebased = clock() if each.base is not None else node.sequence
    context._saved = context._dirty = context._constant = ()
    return tuple(outputs) if several else outputs[0]


def _listed(results: Any) -> Sequence[Any]:
    return results if isinstance(results, (tuple, list)) else (results,)


def _position(item: Any, among: Sequence[Any]) -> int | None:
    """Where an object itself, not an equal one, is in a sequence."""
    return next((i for i, each in enumerate(among) if each is item), None) if item is not None else None


def _check_dirty(cls: type[Function], dirty: Sequence[Tensor], args: Sequence[Any], outputs: Sequence[Any]) -> None:
    for each in dirty:
        if _position(each, outputs) is None:
            raise AutogradError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                f"are modified inplace must all be outputs of the Function ({cls.__name__}, shape {list(each.shape)})."
            )
        root = each if each.base is None else each.base
        if isinstance(root.node, Leaf):
            raise AutogradError(
                f"a leaf Variable that requires grad is being used in an in-place operation ({cls.__name__}, "
                f"shape {list(each.shape)}).\nPass a clone()."
            )


def _backward(
    cls: type[Function], context: Context, tensors: tuple[bool, ...], grads: Any, saved: tuple[Any, ...]
) -> Sequence[Any]:
    """Run the user's backward and check what it returns."""
    context._saved = saved
    try:
        given = cls.backward(context, *grads) if type(grads) is list else cls.backward(context, grads)
    finally:
        context._saved = ()
    results = list(given) if isinstance(given, (tuple, list)) else [given]
    count = len(tensors)
    if len(results) < count or any(each is not None for each in results[count:]):
        raise AutogradError(
            f"function {cls.__name__}Backward returned an incorrect number of gradients "
            f"(expected {count}, got {len(results)}).\n"
            "Return one for each argument of forward, None where there is none."
        )
    for number, (each, tensor) in enumerate(zip(results, tensors, strict=False)):
        if each is None:
            continue
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(
                f"function {cls.__name__}Backward: expected a Tensor or None as gradient {number}, "
                f"got {type(each).__name__} {each!r:.60}."
            )
        if not tensor:
            raise AutogradError(
                f"function {cls.__name__}Backward returned a gradient different from None at position {number}, "
                "but the corresponding forward input was not a Tensor."
            )
    return results[:count]


class _Once(Function):
    """Passes on what was computed from ``inputs``; differentiating it is an error."""

    @staticmethod
    def forward(ctx: Any, message: str, count: int, *inputs_and_results: Any) -> Any:
        ctx.message = message
        return tuple(inputs_and_results[count:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AutogradError(ctx.message)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` whose own derivative is unknown: asking for it raises instead of giving a wrong one."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        tracked = any(isinstance(each, Tensor) and edge(each) is not None for each in grads)
        if not mode.enabled or not (tracked or any(ctx.needs_input_grad)):
            return results
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        inputs = [each for each in (*grads, *ctx.saved_tensors) if isinstance(each, Tensor)]
        passed = without_derivative(_listed(results), inputs, message)
        return passed if isinstance(results, (tuple, list)) else passed[0]

    return wrapped


def without_derivative(results: Sequence[Any], inputs: Sequence[Tensor], message: str) -> tuple[Any, ...]:
    """Results that raise when they are differentiated, with respect to what they were computed from or at all."""
    marked = [cast(Any, each).detach().requires_grad_() if isinstance(each, Tensor) else each for each in results]
    return cast("tuple[Any, ...]", _Once.apply(message, len(inputs), *inputs, *marked))
