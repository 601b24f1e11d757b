"""What an operator is: its declaration, from which everything else is derived.

There are four kinds, each with a decorator:

- ``pointwise`` (dispatch/pointwise.py): a primitive that works element by element; its body is
  generated: broadcasting, type promotion, ``out=``, the in-place form.
- ``primitive``: its body checks the arguments and passes them in canonical form to ``run``,
  which finds the backend's kernel.
- ``view_op``: its body returns a view; there is no kernel.
- ``composite``: its body is made of other operators; a backend may override it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast, overload

from ..autograd.grad_mode import mode, no_grad
from ..autograd.node import Plan, inputs_of, record, record_inplace, tracked
from ..key import Key, devices
from ..layout import strided
from ..tensor import Tensor, touch
from .binding import Binding
from .missing import missing_kernel
from .plans import make_plan
from .providers import Kernel, registry
from .scope import Substitute, asking
from .writes import before_write, explained, meeting, writable

__all__ = [
    "Declared",
    "Offer",
    "Operator",
    "composite",
    "offer",
    "offers",
    "operators",
    "overwrite",
    "primitive",
    "similar",
    "view_op",
]

F = TypeVar("F", bound=Callable[..., Any])

#: Every declared operator by name.
operators: Final[dict[str, Operator]] = {}


def similar(name: str) -> str:
    """Names of operators that share most pairs of letters with one that does not exist, for messages."""

    def likeness(other: str) -> float:
        ours, theirs = ({f"{each} "[i : i + 2] for i in range(len(each))} for each in (name, other))
        return len(ours & theirs) / (len(ours | theirs) or 1)

    return (
        ", ".join([each for each in sorted(sorted(operators), key=likeness, reverse=True) if likeness(each) > 0.2][:4])
        or "none"
    )


class Declared(Protocol):
    """A public function that an operator was declared with."""

    op: Operator
    #: canonical arguments to result: finds the kernel, runs it, records it
    run: Callable[..., Any]
    gradient: Callable[..., None]
    gradients: Callable[..., Any]
    nondifferentiable: Callable[[], None]
    reference: Callable[[Callable[..., Any]], Callable[..., Any]]
    composite: Callable[..., Callable[..., Any]]
    returns: Callable[..., Callable[..., Any]]
    __name__: str
    __doc__: str | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class Operator:
    """One operator: signature, gradient, reference, and the table of who serves it.

    Attributes:
        parameters: names of the kernel's arguments, in order.
        tensors: positions of those that are tensors or lists of tensors.
        optional: positions of tensors that may be None.
        kind: ``pointwise``, ``primitive``, ``view`` or ``composite``.
        mutates: the kernel writes into its first argument and returns nothing.
    """

    lends = False
    #: the generated in-place form of a pointwise operator
    body_of_inplace: Callable[..., Any] | None = None

    def __init__(self, name: str, kind: str, parameters: str, function: Callable[..., Any]) -> None:
        self.name, self.kind, self.function = name, kind, function
        self.namespaces: tuple[str, ...] = ()
        self.method = False
        self.dunders: tuple[str, ...] = ()
        self.inplace: str | None = None
        self.mutates = False
        names = parameters.replace("|", " | ").split()
        split = names.index("|") if "|" in names else len(names)
        tensors, others = names[:split], names[split + 1 :]
        self.optional = tuple(i for i, each in enumerate(tensors) if each.endswith("?"))
        self.lists = tuple(i for i, each in enumerate(tensors) if each.endswith("*"))
        self.parameters = tuple(each.rstrip("?*") for each in tensors) + tuple(others)
        self.tensors = tuple(range(len(tensors)))
        #: the function as it was written, where another one is offered in its place
        self.declared_with = function
        self.table: dict[Key, Kernel] = {}
        self.formulas: dict[str, Callable[..., Any]] = {}
        self.joint: Callable[..., Any] | None = None
        self.differentiable: bool | None = None
        self.oracle: Callable[..., Any] | None = None
        self.body: Callable[..., Any] | None = None
        self.body_of_strides = False
        self.overridden = False
        self.returned: Callable[..., Any] | None = None
        self.opaque = False
        self.plans: dict[int, Plan] = {}
        if name in operators:
            raise ValueError(f"The operator {name!r} is declared twice.")
        operators[name] = self

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}({', '.join(self.parameters)})>"

    # -- declaration --------------------------------------------------------

    def gradient(op, /, **formulas: Callable[..., Any]) -> None:
        """Give the gradient of each tensor argument as a function of what it needs.

        A formula's first parameter is ``grad``, the gradient of the (first) output, or ``grads``, those of
        all outputs.  The others name what it reads: arguments of the kernel, ``result``, or ``NAME_shape``
        for an argument's shape alone.  Only what the needed formulas name is kept.
        """
        unknown = formulas.keys() - set(op.parameters)
        if unknown:
            raise ValueError(f"{op.name} has no argument {sorted(unknown)[0]!r}; it has {op.parameters}.")
        op.formulas.update(formulas)
        op.differentiable = True
        op.plans.clear()

    def gradients(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """Give the gradients of all tensor arguments at once.

        The formula's first parameters are ``needs`` (one bool for each tensor argument) and ``grad`` or
        ``grads``; it returns one gradient (or None) for each tensor argument.
        """
        self.joint = formula
        self.differentiable = True
        return formula

    def nondifferentiable(self) -> None:
        """State that results have no gradient."""
        self.differentiable = False

    def reference(self, oracle: Callable[..., Any]) -> Callable[..., Any]:
        """Give the operator's meaning on NumPy arrays: the oracle of tests and of conformance."""
        self.oracle = oracle
        return oracle

    def composite(self, body: Callable[..., Any], strided: bool = False) -> Callable[..., Any]:
        """Give a body made of other operators, for backends that have no kernel; ``strided``: for no other layout."""
        self.body, self.body_of_strides = body, strided
        return body

    def returns(self, formula: Callable[..., Any], opaque: bool = False) -> Callable[..., Any]:
        """Give what the kernel returns, without computing it, from the kernel's arguments.

        A shape (of the first tensor's dtype and device), ``(shape, dtype)`` or ``(shape, dtype, device)``; a list
        for several results, None among them for one that is left out.  A geometry may stand for a shape.  An
        operator with a composite body needs none, as the body tells it, unless the body is ``opaque``: not made
        of operators.
        """
        self.returned, self.opaque = formula, opaque
        return formula

    # -- finding the kernel -------------------------------------------------

    def resolve(self, key: Key) -> Kernel:
        """What serves a key; remembered in the table."""
        stand_in = devices.stand_ins.get(key.device)
        if stand_in is not None:
            return stand_in.answer(self, key)  # type: ignore[no-any-return]
        registry.load(key.device.type)
        while True:
            version, asks = registry.version, bool(registry.scopes)
            found = asking(self, key) if asks else registry.resolve(self.name, key, self.otherwise(key))
            if registry.keep(self.table, key, found, version, asks):
                return found

    @functools.cached_property
    def binding(self) -> Binding:
        """How a composite's arguments become a kernel's."""
        return Binding(cast(Callable[..., Any], self.body))

    def composes(self, key: Key) -> bool:
        """Whether other operators make up for a missing kernel."""
        return self.body is not None and (key.layout is strided or not self.body_of_strides)

    def otherwise(self, key: Key, substitute: Substitute | None = None) -> Kernel:
        """What runs where no provider serves: the composite body, or the substitute that was asked for, or an error."""
        if self.kind == "composite":
            return functools.partial(self.binding.spread, cast(Kernel, self.body))
        if self.composes(key):
            body = no_grad()(cast(Kernel, self.body)) if self.differentiable else cast(Kernel, self.body)
            return _into(body) if self.kind == "pointwise" else body

        def missing(*args: Any, **kwargs: Any) -> Any:
            if substitute is not None:
                return substitute.serve(self, key, args, kwargs)
            raise missing_kernel(self, key, args)

        return missing

    # -- recording ----------------------------------------------------------

    def plan(self, wanted: int, args: tuple[Any, ...]) -> Plan:
        """What a node must keep and compute when these inputs need gradients."""
        lengths = [len(args[i]) if i in self.lists else 0 for i in self.tensors] if self.lists else []
        found = make_plan(self, inputs_of(wanted), lengths)
        if not lengths:
            self.plans[wanted] = found
        return found


def _into(body: Callable[..., Any]) -> Kernel:
    """A pointwise body as a kernel, which can be told where its result goes."""

    def run(*operands: Any, out: Any = None) -> Any:
        result = body(*operands)
        return result if out is None else overwrite(out, result)

    return run


def overwrite(target: Tensor, values: Tensor) -> Tensor:
    """Write as a kernel does, of equal shape and any dtype: whoever calls the kernel notes the write."""
    copy, key, theirs = operators["copy_"], target.key, values.key
    if key.device is not theirs.device or key.layout is not theirs.layout:
        key = meeting(copy.name, key, target, values)
    (copy.table.get(key) or copy.resolve(key))(target, values)
    return target


class Offer(NamedTuple):
    """A public function that is no operator itself: it chooses among operators by its arguments."""

    name: str
    function: Callable[..., Any]
    namespaces: tuple[str, ...]
    method: bool


#: Every :class:`Offer`, in the order of definition; bind.py hangs them after the operators.
offers: Final[list[Offer]] = []


def offer(*, name: str | None = None, namespaces: str | Sequence[str] = "", method: bool = True) -> Callable[[F], F]:
    """Offer a plain function in public namespaces and as a method, under its own or another name."""

    def declare(function: F) -> F:
        public = name or function.__name__
        offers.append(
            Offer(public, function, (namespaces,) if isinstance(namespaces, str) else tuple(namespaces), method)
        )
        return function

    return declare


# ---------------------------------------------------------------- the decorators


def publish(
    op: Operator,
    function: Callable[..., Any],
    namespaces: str | Sequence[str],
    method: bool,
    dunders: Sequence[str],
    inplace: str | None = None,
) -> Declared:
    """Hang what a declaration offers on its function."""
    op.namespaces = (namespaces,) if isinstance(namespaces, str) else tuple(namespaces)
    op.method, op.dunders, op.inplace = method, tuple(dunders), inplace
    op.function = function
    declared = cast(Declared, function)
    declared.op = op
    declared.gradient, declared.gradients = op.gradient, op.gradients
    declared.nondifferentiable, declared.reference = op.nondifferentiable, op.reference
    declared.composite, declared.returns = op.composite, op.returns
    return declared


def primitive(
    parameters: str,
    *,
    name: str | None = None,
    namespaces: str | Sequence[str] = "",
    method: bool = True,
    operator: str | Sequence[str] = (),
    mutates: bool = False,
    inplace: str | None = None,
) -> Callable[[Callable[..., Any]], Declared]:
    """Declare an operator that backends bring kernels for.

    Args:
        parameters: the kernel's arguments: ``"input weight bias? | stride padding"``; tensors stand before
            the bar, ``?`` marks one that may be None, ``*`` a list of tensors.
        name: the operator's name, if it is not the function's.
        namespaces: where the function is offered: ``""`` for ``flambeau`` itself, ``"nn.functional"``, ...
        method: whether it is also a method of Tensor.
        operator: special methods that are this function, such as ``"__matmul__"``.
        mutates: the kernel writes into its first argument.
        inplace: name of the derived in-place method (the function must accept ``out``).

    The decorated body validates its arguments and ends with ``return NAME.run(...)``.
    """

    def declare(function: Callable[..., Any]) -> Declared:
        op = Operator(name or function.__name__, "primitive", parameters, function)
        op.mutates = mutates
        dunders = (operator,) if isinstance(operator, str) else operator
        declared = publish(op, function, namespaces, method, dunders, inplace)
        declared.run = _mutating_runner(op) if mutates else _kernel_runner(op)
        return declared

    return declare


def view_op(
    parameters: str, *, namespaces: str | Sequence[str] = "", method: bool = True
) -> Callable[[Callable[..., Any]], Declared]:
    """Declare an operator whose result views its argument's memory.

    The body returns the view with its canonical arguments recorded by ``NAME.run(view, self, ...)``.
    """

    def declare(function: Callable[..., Any]) -> Declared:
        op = Operator(function.__name__, "view", parameters, function)
        declared = publish(op, function, namespaces, method, ())

        def run(result: Tensor, *args: Any) -> Tensor:
            node = args[0].node
            if node is not None and mode.enabled:
                record(op, args, result)
            return result

        declared.run = run
        return declared

    return declare


@overload
def composite(function: Callable[..., Any]) -> Declared: ...


@overload
def composite(
    *,
    name: str | None = None,
    namespaces: str | Sequence[str] = "",
    method: bool = True,
    operator: str | Sequence[str] = (),
    inplace: str | None = None,
) -> Callable[[Callable[..., Any]], Declared]: ...


def composite(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    namespaces: str | Sequence[str] = "",
    method: bool = True,
    operator: str | Sequence[str] = (),
    inplace: str | None = None,
) -> Any:
    """Declare an operator made of others.  A backend may override it with a kernel of the same signature."""

    def declare(body: Callable[..., Any]) -> Declared:
        op = Operator(name or body.__name__, "composite", "", body)
        op.body = body
        dunders = (operator,) if isinstance(operator, str) else operator

        @functools.wraps(body)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return _overridden(op, args, kwargs) if op.overridden else body(*args, **kwargs)
            except AttributeError as error:
                raise explained(error, op.name, body, args, kwargs) from None

        registry.overrides[op.name] = lambda on: setattr(op, "overridden", on)
        return publish(op, call, namespaces, method, dunders, inplace)

    return declare(function) if function is not None else declare


def _overridden(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A composite for which some backend has a kernel; override.py says when it serves."""
    bound = op.binding.bind(args, kwargs)
    tensor = next((each for each in bound if isinstance(each, Tensor)), None)
    if tensor is None:  # one in a list, if there is any
        tensor = next((part for each in bound if isinstance(each, (list, tuple)) for part in each), None)
        if not isinstance(tensor, Tensor):
            return cast(Callable[..., Any], op.body)(*args, **kwargs)
    key = tensor.key
    for each in bound:
        if isinstance(each, Tensor) and each.key.layout is not key.layout:
            key = meeting(op.name, key, tensor, each)
    kernel = op.table.get(key) or op.resolve(key)
    return kernel(*bound)


def _kernel_runner(op: Operator) -> Callable[..., Any]:
    """The way from canonical arguments to the kernel and, if wanted, onto the graph."""
    table, resolve = op.table, op.resolve
    count = len(op.tensors)

    if count == 0:
        raise ValueError(f"{op.name}: a primitive takes at least one tensor; factories use Memory.")

    if count == 1 and not op.lists and not op.optional:

        def run1(self: Tensor, *rest: Any) -> Any:
            result = (table.get(self.key) or resolve(self.key))(self, *rest)
            if self.node is not None and mode.enabled and op.differentiable is not False:
                record(op, (self, *rest), result)
            return result

        return run1

    if count == 2 and not op.lists and not op.optional:

        def run2(self: Tensor, other: Tensor, *rest: Any) -> Any:
            key, theirs = self.key, other.key
            if key is not theirs and (key.device is not theirs.device or key.layout is not theirs.layout):
                key = meeting(op.name, key, self, other)
            result = (table.get(key) or resolve(key))(self, other, *rest)
            if (self.node is not None or other.node is not None) and mode.enabled and op.differentiable is not False:
                record(op, (self, other, *rest), result)
            return result

        return run2

    def run(*args: Any) -> Any:
        first = args[0][0] if 0 in op.lists else args[0]
        key = first.key
        tracked = False
        for each in args[:count]:
            for part in each if type(each) is list or type(each) is tuple else (each,):
                if part is not None:
                    theirs = part.key
                    if key is not theirs and (key.device is not theirs.device or key.layout is not theirs.layout):
                        key = meeting(op.name, key, first, part)
                    tracked = tracked or part.node is not None
        result = (table.get(key) or resolve(key))(*args)
        if tracked and mode.enabled and op.differentiable is not False:
            record(op, args, result)
        return result

    return run


def _mutating_runner(op: Operator) -> Callable[..., Any]:
    """Like the kernel runner, for kernels that write into their first argument."""
    others = len(op.tensors) - 1
    table = op.table

    def run(target: Tensor, *rest: Any) -> Tensor:
        key = target.key
        recording = target.node is not None and tracked(target)
        for each in rest[:others]:
            for part in (each,) if each is None or isinstance(each, Tensor) else each:
                if part is not None:
                    theirs = part.key
                    if key is not theirs and (key.device is not theirs.device or key.layout is not theirs.layout):
                        key = meeting(op.name, key, target, part)
                    recording = recording or (part.node is not None and tracked(part))
        if not target.geometry.dense:
            writable(target, op.name)
        recording = recording and mode.enabled and op.differentiable is not False
        snapshot = before_write(op, target) if recording else None
        (table.get(key) or op.resolve(key))(target, *rest)
        touch(target)
        if recording:
            record_inplace(op, target, (target, *rest), snapshot)
        return target

    return run
