"""Launchers of recurrent.c."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from flambeau.backend import AllocationError, Key, Tensor, contiguous, empty

from .._kernels import ffi, lib
from ..launch import find

_KINDS: Final = {"lstm": 0, "gru": 1, "tanh": 2, "relu": 3}
_KEPT: Final = {"lstm": 5, "gru": 4, "tanh": 0, "relu": 0}


@lru_cache(256)
def _sizes(kind: str, reverse: bool, batch: int, width: int, sizes: tuple[int, ...]) -> Any:
    return ffi.new("int64_t[]", [_KINDS[kind], int(reverse), batch, width, len(sizes), *sizes])


def _flat(tensor: Tensor | None) -> Any:
    if tensor is None or tensor.geometry.contiguous:
        return tensor
    return tensor.contiguous()  # type: ignore[attr-defined]


def _run(kernel: Any, tensors: Sequence[Any], q: Any) -> None:
    pointers = ffi.new("void *[]", [ffi.NULL if each is None else ffi.cast("void *", each.memory) for each in tensors])
    if lib.fb_call_n(kernel, pointers, q):
        raise AllocationError(
            "The host could not allocate the working memory of a recurrent layer.\nUse smaller batches."
        )


def _forward(kernel: Any, key: Key) -> Callable[..., Any]:
    def launch(
        gates: Tensor, hx: Tensor, cx: Tensor | None, weight: Tensor, bias: Tensor | None, kept: Tensor | None,
        kind: str,
        sizes: tuple[int, ...], reverse: bool,
    ) -> Any:  # fmt: skip
        inputs = [_flat(each) for each in (gates, hx, cx, weight, bias)]
        rows, (batch, width) = gates.shape[0], hx.shape
        if kept is None:
            kept = empty(key, contiguous((rows * width * _KEPT[kind],)))
        states = contiguous((batch, width))
        out, h = empty(key, contiguous((rows, width))), empty(key, states)
        c = None if cx is None else empty(key, states)
        _run(kernel, (out, h, c, *inputs, kept), _sizes(kind, reverse, batch, width, sizes))
        return (out, h) if c is None else (out, h, c)

    return launch


def _backward(kernel: Any, key: Key) -> Callable[..., Any]:
    def launch(
        grads: Sequence[Tensor], gates: Tensor, hx: Tensor, cx: Tensor | None, weight: Tensor, bias: Tensor | None,
        kept: Tensor | None, output: Tensor, kind: str, sizes: tuple[int, ...], reverse: bool, needs: Sequence[bool],
    ) -> Any:  # fmt: skip
        dgates = empty(key, contiguous(gates.shape))
        # The gradients of the last states become those of the first.
        states = [each.contiguous() if not each.geometry.contiguous else each.clone() for each in grads[1:]]  # type: ignore[attr-defined]
        dh, dc = states[0], states[1] if cx is not None else None
        dweight = empty(key, contiguous(weight.shape)) if needs[3] else None
        dbias = empty(key, contiguous(bias.shape)) if bias is not None and needs[4] else None
        tensors = (dgates, dh, dc, dweight, dbias, _flat(grads[0]), None, None)
        rest = [_flat(each) for each in (hx, cx, weight, kept, output)]
        q = _sizes(kind, reverse, hx.shape[0], hx.shape[1], sizes)
        _run(kernel, (*tensors, *rest), q)
        return [dgates, dh, dc, dweight, dbias]

    return launch


class _Family:
    """The recurrent kernel ``name`` of each dtype."""

    predicate = None

    def __init__(self, name: str, launcher: Callable[[Any, Key], Any]) -> None:
        self.name, self.launcher = name, launcher

    def build(self, key: Key) -> Any:
        kernel = find(self.name, key.dtype)
        return None if kernel is None else self.launcher(kernel, key)


KERNELS: Final[dict[str, Any]] = {
    "recurrent_layer": _Family("recurrent", _forward),
    "recurrent_layer_backward": _Family("recurrent_backward", _backward),
}
