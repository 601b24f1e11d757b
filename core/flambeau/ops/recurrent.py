"""A layer of a recurrent network over whole sequences.

Sequences lie step by step: the rows of the first step of all, then of the second step of those that
have one, and so on; ``sizes`` says how many rows each step has, and never grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..autograd.engine import grad as gradient_of
from ..autograd.grad_mode import enable_grad, mode
from ..dispatch.operator import primitive
from ..geometry import contiguous
from ..tensor import Tensor, empty
from .views import declared

__all__ = ["GATES", "recurrent"]

#: blocks of rows in the weights of each kind of cell
GATES: Final = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
#: blocks of columns that a kernel keeps of each row for the backward pass
_KEPT: Final = {"lstm": 5, "gru": 4, "tanh": 0, "relu": 0}


def _lstm(x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    i, f, g, o = (x + h.mm(weight)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    y = h.mm(weight)
    if bias is not None:
        y = y + bias
    xr, xz, xn = x.chunk(3, 1)
    yr, yz, yn = y.chunk(3, 1)
    n = (xn + (xr + yr).sigmoid() * yn).tanh()
    return n + (xz + yz).sigmoid() * (h - n), None


def _tanh(x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    return (x + h.mm(weight)).tanh(), None


def _relu(x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    return (x + h.mm(weight)).relu(), None


_CELLS: Final[dict[str, Callable[..., tuple[Any, Any]]]] = {"lstm": _lstm, "gru": _gru, "tanh": _tanh, "relu": _relu}


@primitive("gates hx cx? weight bias? kept? | kind sizes reverse", name="recurrent_layer", method=False, namespaces=())
def recurrent(
    gates: Tensor, hx: Tensor, cx: Tensor | None, weight: Tensor, bias: Tensor | None, kind: str, sizes: Sequence[int],
    reverse: bool = False,
) -> Any:  # fmt: skip
    """Run one layer in one direction.

    Args:
        gates: what the input contributes to the gates, with all biases but ``bias``: (rows, G * width).
        hx, cx: initial states (sizes[0], width); ``cx`` for LSTM only.
        weight: of the state, (G * width, width).
        bias: of the state, for GRU only.
        kind: ``'lstm'`` (gates i, f, g, o), ``'gru'`` (r, z, n), ``'tanh'`` or ``'relu'``.
        sizes: rows of each step.
        reverse: run from the last step to the first.

    Returns:
        the states of all rows and the last state of each sequence; for LSTM also its last cell.
    """
    kept = None
    inputs = (gates, hx, cx, weight, bias)
    if mode.enabled and _KEPT[kind] and any(each is not None and each.node is not None for each in inputs):
        kept = empty(gates.key, contiguous((gates.shape[0] * hx.shape[1] * _KEPT[kind],)))
    return recurrent.run(gates, hx, cx, weight, bias, kept, kind, tuple(sizes), reverse)


@recurrent.composite
def _walk(
    gates: Any, hx: Any, cx: Any, weight: Any, bias: Any, kept: Any, kind: str, sizes: tuple[int, ...], reverse: bool
) -> Any:
    cat, cell = declared("cat"), _CELLS[kind]
    steps, across = gates.split(sizes), weight.t()
    order = range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))
    outputs: list[Any] = [None] * len(sizes)
    ended: list[Any] = []
    first = sizes[order[0]]
    h, c = hx[:first], None if cx is None else cx[:first]
    for t in order:
        running, rows = h.shape[0], sizes[t]
        if rows < running:
            ended.append((h[rows:], None if c is None else c[rows:]))
            h, c = h[:rows], None if c is None else c[:rows]
        elif rows > running:
            h, c = cat([h, hx[running:rows]]), None if c is None else cat([c, cx[running:rows]])
        h, c = cell(steps[t], h, c, across, bias)
        outputs[t] = h
    ended.append((h, c))
    lasts = [cat([each[i] for each in reversed(ended)]) for i in range(1 if cx is None else 2)]
    return (cat(outputs), *lasts)


@primitive(
    "grads* gates hx cx? weight bias? kept? output | kind sizes reverse needs", name="recurrent_layer_backward",
    method=False, namespaces=(),
)  # fmt: skip
def _backward(*args: Any) -> Any:
    """The gradients of ``recurrent_layer`` in gates, hx, cx, weight and bias, given those of its results."""
    return _backward.run(*args)


@_backward.composite
def _by_walking(
    grads: Sequence[Any], gates: Any, hx: Any, cx: Any, weight: Any, bias: Any, kept: Any, output: Any, kind: str,
    sizes: tuple[int, ...], reverse: bool, needs: Sequence[bool],
) -> Any:  # fmt: skip
    return _differentiated(grads, (gates, hx, cx, weight, bias), kind, sizes, reverse, needs, False)


_backward.nondifferentiable()


def _differentiated(
    grads: Sequence[Any], inputs: Sequence[Any], kind: str, sizes: tuple[int, ...], reverse: bool,
    needs: Sequence[bool],
    again: bool,
) -> list[Any]:  # fmt: skip
    """The gradients by running the steps one by one; differentiable themselves if ``again``."""
    with enable_grad():
        if not again:
            inputs = [each if each is None else each.detach().requires_grad_() for each in inputs]
        gates, hx, cx, weight, bias = inputs
        results = _walk(gates, hx, cx, weight, bias, None, kind, sizes, reverse)
        wanted = [i for i in range(5) if needs[i]]
        found = gradient_of(results, [inputs[i] for i in wanted], grads, create_graph=again, allow_unused=True)
    laid: list[Any] = [None] * 5
    for i, each in zip(wanted, found, strict=True):
        laid[i] = each
    return laid


@recurrent.gradients
def _(
    needs: Any, grads: Any, gates: Any, hx: Any, cx: Any, weight: Any, bias: Any, kept: Any, kind: str,
    sizes: tuple[int, ...], reverse: bool, result: Any,
) -> Any:  # fmt: skip
    if mode.enabled:
        return (*_differentiated(grads, (gates, hx, cx, weight, bias), kind, sizes, reverse, needs, True), None)
    found = _backward.run(list(grads), gates, hx, cx, weight, bias, kept, result[0], kind, sizes, reverse, tuple(needs))
    return (*found, None)
