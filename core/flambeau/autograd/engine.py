"""Backward: gradients flow from outputs to inputs, latest node first.

A node's sequence number is larger than those of the nodes it got its inputs from,
so taking the largest pending number visits each node after all that use its result.
No recursion, no counting pass; a gradient lives only until its node has run.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, Final

from ..errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError
from ..geometry import Geometry
from ..key import Key, intern
from ..layout import strided
from ..tensor import Tensor, constant, make
from .grad_mode import mode
from .node import Leaf, Node, edge, watcher

__all__ = ["backward", "grad"]

_accumulating: Final = threading.Lock()


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of ``tensors`` with respect to the graph's leaves to their ``grad``.

    Args:
        tensors: what to differentiate.
        grad_tensors: the gradient of each; may be left out for tensors of one element.
        retain_graph: keep what was saved, so that backward can run again; ``create_graph`` by default.
        create_graph: record the backward pass itself, for higher derivatives.

    Raises:
        RuntimeError: a tensor has no history, or needs a gradient that was not given.
    """
    roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _run(_start(roots, _listed(grad_tensors, len(roots))), keep, create_graph, None)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; nothing is accumulated.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what; tensors that require grad.
        grad_outputs: the gradient of each output; may be left out for tensors of one element.
        retain_graph: keep what was saved; ``create_graph`` by default.
        create_graph: record the backward pass itself, for higher derivatives.
        only_inputs: must be True.
        allow_unused: give None for an input that the outputs do not depend on, instead of an error.

    >>> import flambeau
    >>> x = flambeau.tensor(3.0, requires_grad=True)
    >>> flambeau.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if not only_inputs:
        raise ArgumentError("only_inputs=False is no longer supported; call backward() to reach all leaves.")
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    places: list[tuple[Node | Leaf, int]] = []
    for each in wanted:
        node = edge(each)
        if node is None:
            raise AutogradError(
                f"One of the differentiated Tensors does not require grad: shape {list(each.shape)}, {each.dtype.name}.\n"
                "Call requires_grad_() on it before it is used."
            )
        places.append((node, each.output))
    captured: dict[tuple[Node | Leaf, int], Tensor | None] = dict.fromkeys(places)
    _run(_start(roots, _listed(grad_outputs, len(roots))), keep, create_graph, captured)
    found = tuple(captured[place] for place in places)
    if not allow_unused and any(each is None for each in found):
        position = found.index(None)
        raise AutogradError(
            f"One of the differentiated Tensors appears to not have been used in the graph: inputs[{position}], "
            f"shape {list(wanted[position].shape)}.\nSet allow_unused=True if this is the desired behavior."
        )
    return found


def _listed(grads: Tensor | Sequence[Tensor | None] | None, count: int) -> list[Tensor | None]:
    listed: list[Tensor | None] = (
        [None] * count if grads is None else [grads] if isinstance(grads, Tensor) else list(grads)
    )
    if len(listed) != count:
        raise AutogradError(f"got {count} tensors and {len(listed)} gradients.")
    return listed


def _start(roots: list[Tensor], grads: list[Tensor | None]) -> list[tuple[Node | Leaf, int, Tensor]]:
    started = []
    for number, (root, given) in enumerate(zip(roots, grads, strict=True)):
        if not isinstance(root, Tensor):
            raise ArgumentTypeError(f"backward() and grad() expect tensors, got {type(root).__name__}.")
        node = edge(root)
        if node is None:
            raise AutogradError(f"element {number} of tensors does not require grad and does not have a grad_fn")
        if given is None:
            if root.geometry.numel != 1:
                raise AutogradError(
                    f"grad can be implicitly created only for scalar outputs, got shape {list(root.shape)}.\n"
                    "Pass the gradient, or reduce the output first, for example with sum()."
                )
            given = _one(root)
        elif given.geometry.shape != root.geometry.shape:
            raise AutogradError(
                f"Mismatch in shape: grad_output[{number}] has a shape of {list(given.shape)} and output[{number}] has a "
                f"shape of {list(root.shape)}."
            )
        started.append((node, root.output, given))
    return started


def _one(root: Tensor) -> Tensor:
    """A one in the shape of a tensor of one element, to begin with; hooks may write into it."""
    key = root.key if root.key.layout is strided else intern(root.key.device, strided, root.key.dtype)
    one = constant(key, 1)
    return (one if root.geometry is one.geometry else make(key, root.geometry, one.memory)).clone()  # type: ignore[no-any-return]


def _leads_to(roots: Sequence[Node | Leaf], targets: set[Node | Leaf]) -> set[Node | Leaf]:
    """The nodes from which some target can be reached."""
    useful = set(targets)
    order: list[Node | Leaf] = []
    seen = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        order.append(node)
        for each in node.edges:
            if each is not None and each[0] not in seen:
                seen.add(each[0])
                stack.append(each[0])
    order.sort(key=lambda node: node.sequence)
    for node in order:
        if any(each is not None and each[0] in useful for each in node.edges):
            useful.add(node)
    return useful


def _run(
    started: list[tuple[Node | Leaf, int, Tensor]],
    keep: bool,
    create_graph: bool,
    captured: dict[tuple[Node | Leaf, int], Tensor | None] | None,
) -> None:
    pending: dict[Node, Any] = {}  # gradients of nodes' outputs: one, or a list if there are several
    heap: list[tuple[int, Node]] = []
    leaves: dict[Leaf, Tensor] = {}  # they wait for the end, so that an error on the way changes no gradient
    lent: set[Leaf] = set()  # leaves whose gradient something else may hold as well
    useful: set[Node | Leaf] = set()
    stops: set[Node | Leaf] = set()
    if captured is not None:
        stops = {node for node, _ in captured}
        useful = _leads_to([node for node, _, _ in started], stops)
    before = mode.enabled
    mode.enabled = create_graph
    entered: Any = None  # the choice of providers of the forward calls whose gradients are being computed
    try:
        for node, output, grad in started:
            if captured is not None and node not in useful:
                continue
            if type(node) is Leaf:
                lent.add(node)
                _arrive(leaves, node, grad)
            else:
                _add(pending, heap, node, output, grad)  # type: ignore[arg-type]
        while heap:
            node = heappop(heap)[1]
            grads = pending.pop(node)
            if node.hooks is not None:
                entered = _switch(entered, None)
                grads = _run_hooks(node, grads, captured is None)
            if captured is not None:
                if node in stops:
                    _capture(captured, node, grads)
                if not any(each is not None and each[0] in useful for each in node.edges):
                    continue
            if type(grads) is list:
                grads = node.complete(grads)
            saved = node.unpack()
            if create_graph:
                saved = node.with_history(saved)
            plan = node.plan
            try:
                if node.preference is not entered:
                    entered = _switch(entered, node.preference)
                results = plan.run(grads, saved)
                if watcher.check is not None:
                    watcher.check(node, results)
            except Exception as error:
                _explain(node, error)
                raise
            if not keep and plan.holds:
                node.saved = None
            for target, result in zip(node.edges, results):
                if target is None or result is None:
                    continue
                to, output = target
                if captured is not None and to not in useful:
                    continue
                if type(to) is Leaf:
                    if result is grads or node.op.lends or (not plan.lone and _repeated(result, results)):
                        lent.add(to)
                    _arrive(leaves, to, result)
                    continue
                described = to.metadata  # type: ignore[union-attr]
                if (
                    to in pending
                    or described[0] is not result.key
                    or (described[1] is not result.geometry and described[1].shape != result.geometry.shape)
                ):
                    _add(pending, heap, to, output, result)  # type: ignore[arg-type]
                else:  # the first gradient of a node's only output
                    pending[to] = result  # type: ignore[index]
                    heappush(heap, (-to.sequence, to))  # type: ignore[misc]
            del saved, grads, results, result
        entered = _switch(entered, None)
        for leaf, grad in leaves.items():
            if leaf.hooks is not None:
                grad = _run_hooks(leaf, grad, captured is None)
            if captured is None:
                _accumulate(leaf, grad, create_graph, leaf in lent)
            elif leaf in stops:
                _capture(captured, leaf, grad)
    finally:
        _switch(entered, None)
        mode.enabled = before


def _arrive(leaves: dict[Leaf, Tensor], leaf: Leaf, grad: Tensor) -> None:
    """Add a gradient to what has arrived at a leaf."""
    tensor = leaf.tensor()
    if tensor is not None:
        if grad.key is not tensor.key or grad.geometry is not tensor.geometry:
            grad = _fitted(leaf, grad, tensor.key, tensor.geometry)
        before = leaves.get(leaf)
        leaves[leaf] = grad if before is None else before + grad  # type: ignore[operator]


def _add(pending: dict[Node, Any], heap: list[Any], node: Node, output: int, grad: Tensor) -> None:
    """Add a gradient to what a node waits for."""
    metadata = node.metadata
    several = type(metadata) is list
    grad = _fitted(node, grad, *(metadata[output] if several else metadata))
    slots = pending.get(node)
    if slots is None:
        heappush(heap, (-node.sequence, node))
        if several:
            slots = [None] * len(metadata)
            slots[output] = grad
        pending[node] = slots if several else grad
    elif several:
        before = slots[output]
        slots[output] = grad if before is None else before + grad
    else:
        pending[node] = slots + grad


def _fitted(node: Node | Leaf, grad: Tensor, key: Key, geometry: Geometry) -> Tensor:
    """A gradient in the shape and dtype and on the device of its tensor."""
    if grad.geometry is not geometry and grad.geometry.shape != geometry.shape:
        grad = _reduced(node, grad, geometry)
    return grad if grad.key is key else _converted(grad, key)


def _reduced(node: Node | Leaf, grad: Tensor, geometry: Geometry) -> Tensor:
    """Sum a gradient over the dimensions along which its tensor was broadcast."""
    lead = grad.geometry.ndim - geometry.ndim
    if lead > 0 and tuple.__getitem__(grad.geometry.shape, slice(lead, None)) == geometry.shape:
        return grad.sum(tuple(range(lead)))  # type: ignore[no-any-return]
    fits = lead >= 0 and all(
        size in (1, given) for size, given in zip(geometry.shape, grad.geometry.shape[lead:], strict=True)
    )
    if not fits:
        raise ShapeError(
            f"{node.name()} returned an invalid gradient: got shape {list(grad.shape)} but expected {list(geometry.shape)}."
        )
    return grad.sum_to_size(geometry.shape)  # type: ignore[no-any-return]


def _converted(grad: Tensor, key: Key) -> Tensor:
    """A gradient in the dtype and on the device of its tensor."""
    if grad.key.layout is not key.layout:
        return grad
    if grad.key.dtype.is_complex and not key.dtype.is_complex:
        grad = grad.real
    return grad.to(key.device, key.dtype)  # type: ignore[no-any-return]


def _run_hooks(node: Node | Leaf, grads: Any, retaining: bool) -> Any:
    """Let hooks see and replace the gradients of a node's outputs."""
    several = type(grads) is list
    slots = list(grads) if several else [grads]
    for output, hooks in list(node.hooks.items()):
        for hook in list(hooks.values()):
            if slots[output] is None or (hook.retains and not retaining):
                continue
            replaced = hook(slots[output])
            if replaced is not None:
                slots[output] = replaced
    return slots if several else slots[0]


def _capture(captured: dict[tuple[Node | Leaf, int], Tensor | None], node: Node | Leaf, grads: Any) -> None:
    slots = grads if type(grads) is list else [grads]
    for output, each in enumerate(slots):
        if (node, output) in captured:
            captured[node, output] = each


def _repeated(result: Tensor, results: Sequence[Any]) -> bool:
    return sum([each is result for each in results]) > 1


def _accumulate(leaf: Leaf, grad: Tensor, create_graph: bool, lent: bool) -> None:
    tensor = leaf.tensor()
    if tensor is None:
        return
    with _accumulating:
        before = tensor.grad
        if before is None:
            # A gradient that something else holds too, or that is spread out, gets memory of its own.
            if lent or grad.shared is not None or not grad.geometry.dense:
                grad = grad.clone() if create_graph else grad.detach().clone()
            elif not create_graph and grad.node is not None:
                grad = grad.detach()
            tensor.__dict__["grad"] = grad  # it fits, so nothing need be checked
        elif create_graph or before.key.layout is not grad.key.layout:
            tensor.grad = before + grad  # type: ignore[operator]
        else:
            before.add_(grad)


def _switch(entered: Any, wanted: Any) -> Any:
    """Leave one choice of providers and enter another, where there is one; returns the latter."""
    if entered is not None:
        entered.__exit__()
    if wanted is not None:
        wanted.__enter__()
    return wanted


def _explain(node: Node, error: Exception) -> None:
    """Name the operator on an error from its formula, and the forward line if it was traced."""
    if not getattr(error, "flambeau_node", None):
        try:
            error.flambeau_node = node.op.name  # type: ignore[attr-defined]
            note = f"(in the backward pass of {node.op.name})"
            if node.trace:
                note += f"\nForward call that made this node:\n{''.join(node.trace)}"
            if hasattr(error, "add_note"):
                error.add_note(note)
        except AttributeError:
            pass
