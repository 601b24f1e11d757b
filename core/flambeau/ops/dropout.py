"""Zeroing at random, while training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, cast

from ..dispatch.operator import composite, primitive
from ..errors import ArgumentError
from ..generator import chosen
from ..tensor import Tensor
from .random import bernoulli_number_

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def _probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")


def _finished(self: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return cast(Tensor, cast(Any, self).copy_(result)) if inplace else result


@primitive("self | p seed offset", name="drop", method=False, namespaces=())
def drop(self: Tensor, p: float) -> Tensor:
    """Zero elements with probability ``p`` and divide the others by ``1 - p``; also returns which were kept."""
    seed, offset = chosen(None, self.key.device).reserve(self.geometry.numel)
    return cast(Tensor, drop.run(self, p, seed, offset)[0])


drop.gradient(self=lambda grads, others, p: grads[0] * others[0] * (1 / (1 - p)))


@composite(method=False, namespaces="nn.functional")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zero each element with probability ``p`` and divide the others by ``1 - p``.

    Source: Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors" (2012).

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    _probability(p)
    if not training or p == 0 or not input.geometry.numel:
        return input
    return _finished(input, drop(input, p) if p < 1 else cast(Any, input) * 0, inplace)


def _channels(input: Tensor, p: float, ndim: int | None = None) -> Any:
    """One and zero for each channel, which broadcasts; an input of ``ndim`` dimensions has no batch."""
    lead = 1 if input.ndim == ndim else min(2, input.ndim)
    noise = cast(Any, input).new_empty(tuple(input.shape[:lead]) + (1,) * (input.ndim - lead))
    return bernoulli_number_(noise, 1 - p)


def _feature_dropout(name: str, unbatched: int | None, what: str) -> Callable[..., Tensor]:
    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        _probability(p)
        if not training or p == 0 or not input.geometry.numel:
            return input
        if p == 1:
            return _finished(input, cast(Any, input) * 0, inplace)
        return _finished(input, cast(Any, input) * (_channels(input, p, unbatched) * (1 / (1 - p))), inplace)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"While training, zero whole channels ({what}) with probability ``p`` and divide the others by ``1 - p``.\n\n"
        'Source: Tompson et al., "Efficient object localization using convolutional networks" (2015).\n\n'
        "Raises:\n        ValueError: ``p`` is not in [0, 1]."
    )
    return cast(Callable[..., Tensor], composite(name=name, method=False, namespaces="nn.functional")(function))


dropout1d = _feature_dropout("dropout1d", 2, "of shape (N, C, L) or (C, L)")
dropout2d = _feature_dropout("dropout2d", None, "of shape (N, C, H, W)")
dropout3d = _feature_dropout("dropout3d", 4, "of shape (N, C, D, H, W) or (C, D, H, W)")

#: The negative limit of SELU: - scale * alpha.
_LIMIT: Final = 1.7580993408473766


def _alpha_dropout(name: str, channels: bool, what: str) -> Callable[..., Tensor]:
    def function(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
        _probability(p)
        if not training or p == 0 or not input.geometry.numel:
            return input
        if p == 1:
            return _finished(input, cast(Any, input) * 0, inplace)
        noise = _channels(input, p) if channels else bernoulli_number_(cast(Any, input).new_empty(input.shape), 1 - p)
        scale = 1 / math.sqrt((_LIMIT * _LIMIT * p + 1) * (1 - p))
        # Kept: scale * x; dropped: the limit, scaled; both shifted so that mean and variance stay.
        shift = noise * (_LIMIT * scale) + _LIMIT * scale * (p - 1)
        return _finished(input, cast(Any, input) * (noise * scale) + shift, inplace)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"While training, set {what} to the negative limit of SELU with probability ``p``, keeping mean and variance.\n\n"
        'Source: Klambauer et al., "Self-normalizing neural networks" (2017).\n\n'
        "Raises:\n        ValueError: ``p`` is not in [0, 1]."
    )
    return cast(Callable[..., Tensor], composite(name=name, method=False, namespaces="nn.functional")(function))


alpha_dropout = _alpha_dropout("alpha_dropout", False, "elements")
feature_alpha_dropout = _alpha_dropout("feature_alpha_dropout", True, "whole channels")
