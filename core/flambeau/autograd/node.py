"""The graph: nodes, their formulas, and how an operator's call becomes a node."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ..errors import AutogradError, MissingKernelError
from ..tensor import VIEW, Tensor, alias, clock

__all__ = [
    "Differentiable",
    "Leaf",
    "Node",
    "Plan",
    "edge",
    "inputs_of",
    "record",
    "record_inplace",
    "refresher",
    "tracked",
]

#: A node and which of its outputs.
Edge = tuple["Node | Leaf", int]


class Differentiable(Protocol):
    """What recording needs of an operator."""

    name: str
    #: positions of the arguments that may be tensors, or lists of them
    tensors: tuple[int, ...]
    #: whether formulas may return tensors that others hold too
    lends: bool

    #: those made before, by which inputs need gradients: a one followed by a bit for each
    plans: dict[int, Plan]

    def plan(self, wanted: int, args: tuple[Any, ...]) -> Plan: ...


def inputs_of(wanted: int) -> tuple[bool, ...]:
    """Which inputs need gradients, from the bits that plans are kept by."""
    return tuple(bit == "1" for bit in f"{wanted:b}"[1:])


class Plan:
    """What a node keeps and computes, for one operator and one set of inputs that need gradients."""

    __slots__ = ("holds", "lone", "pick", "result", "run", "skipped", "tensors")

    def __init__(
        self,
        pick: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        run: Callable[[Any, tuple[Any, ...]], Sequence[Any]],
        result: int | None,
        tensors: tuple[int, ...] | None = None,
        lone: bool = False,
        skipped: int = 0,
    ) -> None:
        #: chooses what is saved from the arguments followed by the result
        self.pick = pick
        #: (gradients of the outputs, saved) -> gradients of the inputs, in the order of the edges
        self.run = run
        #: where among what is saved the result is, if it is
        self.result = result
        #: how many of several results are left out before those that are saved
        self.skipped = skipped
        #: where among what is saved tensors may be; None: anywhere
        self.tensors = tensors
        #: whether tensors are saved, so that a second backward must be asked for
        self.holds = tensors is None or bool(tensors)
        #: whether one input alone gets a gradient, so that no two inputs can get the same tensor
        self.lone = lone


class Node:
    """One recorded operator call; ``tensor.grad_fn`` shows it."""

    __slots__ = ("__weakref__", "edges", "hooks", "metadata", "op", "plan", "preference", "saved", "sequence", "trace")

    #: (node, output number) for each differentiable input, None where it needs no gradient
    edges: tuple[tuple[Node | Leaf, int] | None, ...]
    #: (key, geometry) of each output; a bare pair if there is one output
    metadata: Any
    op: Any
    plan: Plan
    #: what the formulas read; None when it was freed
    saved: tuple[Any, ...] | None
    #: tick of the clock at which it was recorded
    sequence: int

    def __init__(self) -> None:
        self.hooks: Any = None
        self.preference: Any = None
        self.trace: Any = None

    def name(self) -> str:
        """``MulBackward0``-style name, as PyTorch prints it."""
        return (
            "".join(part.capitalize() for part in self.op.name.rpartition("::")[2].strip("_").split("_")) + "Backward0"
        )

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | Leaf | None, int], ...]:
        """The nodes that this one's gradients flow to, with their output numbers."""
        return tuple(each or (None, 0) for each in self.edges)

    def unpack(self) -> tuple[Any, ...]:
        """What was saved, checked to be as it was.

        Raises:
            RuntimeError: the graph was freed, or a saved tensor was changed in place.
        """
        saved = self.saved
        if saved is None:
            raise AutogradError(
                f"Trying to backward through the graph a second time ({self.name()}): saved tensors have been freed.\n"
                "Pass retain_graph=True to the first backward() or grad() call."
            )
        places = self.plan.tensors
        for place in range(len(saved)) if places is None else places:
            each = saved[place]
            kind = type(each)
            if kind is Tensor or isinstance(each, Tensor):
                shared = each.shared
                if shared is not None and shared.written > self.sequence:
                    self.check(each)
            elif kind is list or kind is tuple:
                for part in each:
                    if isinstance(part, Tensor):
                        self.check(part)
        return saved

    def complete(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        """Zeros for outputs that nothing depends on."""
        some: Any = next(each for each in grads if each is not None)
        return [
            some.new_zeros(described[1].shape, dtype=described[0].dtype) if each is None and described else each
            for each, described in zip(grads, self.metadata, strict=True)
        ]

    def with_history(self, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """What was saved, with a saved result again computed by this node.

        A result is kept without its history, because a node that holds its own output would never be freed.
        """
        place = self.plan.result
        if place is None:
            return saved
        result = saved[place]
        if isinstance(result, Tensor):
            again: Any = self._owned(result, 0)
        else:
            again = [self._owned(each, number) for number, each in enumerate(result, self.plan.skipped)]
        return (*saved[:place], again, *saved[place + 1 :])

    def _owned(self, tensor: Tensor, output: int) -> Tensor:
        if tensor.key.dtype.category < 2:
            return tensor
        twin = alias(tensor)
        twin.node = self
        if output:
            twin.output = output
        return twin

    def check(self, tensor: Tensor) -> None:
        shared = tensor.shared
        if shared is not None and shared.written > self.sequence:
            raise AutogradError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{tensor.dtype.name} tensor of shape {list(tensor.shape)}, saved by {self.op.name}, "
                f"is at version {shared.version}.\n"
                "Use the out-of-place form of the operator that changed it, or change a clone()."
            )


class Leaf:
    """Where a gradient ends: adds it to the ``grad`` of a tensor that asked for gradients."""

    __slots__ = ("__weakref__", "hooks", "sequence", "tensor")

    edges: Final = ()

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)
        self.sequence = clock()
        self.hooks: Any = None

    def name(self) -> str:
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"

    @property
    def next_functions(self) -> tuple[()]:
        return ()

    @property
    def variable(self) -> Tensor | None:
        """The tensor whose ``grad`` this adds to."""
        return self.tensor()


class _Refresher:
    """Rebuilds the history of a view whose base was written; installed by the view operators."""

    rebuild: Callable[[Tensor], Node]
    scatter: Callable[[Tensor, Tensor], None]


refresher: Final = _Refresher()


def edge(tensor: Tensor) -> Node | Leaf | None:
    """What computes a tensor's gradient, brought up to date if it is a view of something written since."""
    node = tensor.node
    base = tensor.base
    if base is None:
        return node  # type: ignore[return-value]
    shared = tensor.shared
    assert shared is not None
    if node is VIEW:
        if not shared.rebased or edge(base) is None:
            return None
    elif node is None or type(node) is Leaf or shared.rebased <= node.sequence:  # type: ignore[union-attr]
        return node  # type: ignore[return-value]
    tensor.node = node = refresher.rebuild(tensor)
    tensor.output = 0
    return node


def tracked(tensor: Tensor) -> bool:
    """Whether a tensor has history, or is a leaf that wants gradients."""
    node = tensor.node
    if node is None:
        return False
    return node is not VIEW or (tensor.shared.rebased != 0 and edge(tensor) is not None)  # type: ignore[union-attr]


def record(op: Differentiable, args: tuple[Any, ...], result: Any) -> None:
    """Attach a node to the result of ``op(*args)`` if any input needs a gradient."""
    edges: list[tuple[Node | Leaf, int] | None] = []
    wanted = 1
    for position in op.tensors:
        each = args[position]
        if isinstance(each, Tensor):
            node = each.node
            if node is not None and each.base is not None:
                node = edge(each)
            if node is not None:
                edges.append((node, each.output))  # type: ignore[arg-type]
                wanted += wanted + 1
                continue
        elif isinstance(each, (list, tuple)):
            found = [_edge_of(part) for part in each]
            edges += found
            wanted += wanted + any(found)
            continue
        edges.append(None)
        wanted += wanted
    if not wanted & (wanted - 1):  # only the leading one
        return
    plan = op.plans.get(wanted) or op.plan(wanted, args)
    single = isinstance(result, Tensor)
    if single and result.key.dtype.category != 2:
        if result.key.dtype.category < 2:
            return
        _require_no_conjugate(op, plan.pick(args if plan.result is None else (*args, result)))
    node = _new(Node)
    node.op, node.plan, node.edges = op, plan, tuple(edges)
    node.hooks = node.preference = node.trace = None
    if watcher.watching:
        watcher.see(node)
    if single:
        node.saved = plan.pick(args if plan.result is None else (*args, alias(result)))
        node.sequence = clock()
        node.metadata = (result.key, result.geometry)
        result.node = node
        if result.output:
            result.output = 0
        return
    outputs = list(result)
    node.saved = plan.pick(args if plan.result is None else (*args, [alias(each) for each in outputs]))
    node.sequence = clock()
    node.metadata = [(each.key, each.geometry) for each in outputs]
    for number, each in enumerate(outputs):
        if each.key.dtype.category >= 2:
            each.node = node
            if number:
                each.output = number


def _require_no_conjugate(op: Differentiable, saved: tuple[Any, ...]) -> None:
    """Refuse to record a complex result whose gradient needs the conjugate of what is saved.

    Raises:
        NotImplementedError: a complex tensor or number is among it.
    """
    for each in saved:
        if isinstance(each, complex) or (isinstance(each, Tensor) and each.key.dtype.is_complex):
            raise MissingKernelError(
                f'"{op.name}" has no gradient for {each.key.dtype.name if isinstance(each, Tensor) else each}: '
                "it would need its conjugate.\nDetach the operands, or compute with real and imaginary parts."
            )


def _edge_of(item: Any) -> tuple[Node | Leaf, int] | None:
    node = edge(item) if isinstance(item, Tensor) else None
    return None if node is None else (node, item.output)


class _Watcher:
    """Sees every node as it is made, and what its backward gave."""

    #: each is called with a new node: anomaly detection, scoped preferences
    watching: tuple[Callable[[Node], None], ...] = ()
    check: Callable[[Node, Sequence[Any]], None] | None = None

    def __init__(self) -> None:
        self._changing = threading.Lock()

    def watch(self, function: Callable[[Node], None], wanted: Callable[[], bool]) -> None:
        """Let a function see new nodes from now on, or no longer."""
        with self._changing:
            others = tuple(each for each in self.watching if each is not function)
            self.watching = (*others, function) if wanted() else others

    def see(self, node: Node) -> None:
        """Show a new node to all that watch."""
        for each in self.watching:
            each(node)


watcher: Final = _Watcher()
_new: Final = object.__new__


def record_inplace(op: Differentiable, target: Tensor, args: tuple[Any, ...], snapshot: Tensor | None) -> None:
    """Record a write into ``target``, which has happened and is ``args[0]``.

    ``snapshot`` stands for the value that was overwritten; it carries the old history.
    """
    before = (snapshot, *args[1:]) if snapshot is not None else args
    record(op, before, target)
    node = target.node
    shared = target.shared
    if shared is None or node is None or node is VIEW:
        return
    if target.base is not None:
        refresher.scatter(target.base, target)
        shared.rebased = clock()
    else:
        shared.rebased = node.sequence  # type: ignore[union-attr]
