"""Dropout: random zeros in training, nothing in evaluation."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from . import functional as F
from .module import Module
from .sizes import shown

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Set elements to zero with probability p and scale the others by ``1 / (1 - p)``, in training.

    Args:
        p: probability of a zero, in [0, 1].
        inplace: overwrite the input.

    Source: Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors", 2012.

    Raises:
        ValueError: ``p`` is outside [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return shown(self, "p", "inplace")


class Dropout(_Dropout):
    __doc__ = _Dropout.__doc__

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """:class:`Dropout` of whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """:class:`Dropout` of whole channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """:class:`Dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout to SELU's saturation value that keeps mean and variance.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017.
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """:class:`AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)
