"""Normalisation over layers, groups of channels and neighbouring channels."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ops.creation import ones, zeros
from . import functional as F, init
from .module import Module
from .parameter import Parameter
from .sizes import shown

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm"]


class LayerNorm(Module):
    """Subtract the mean and divide by the standard deviation over the last dimensions; then ``weight``, ``bias``.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: added to the variance.
        elementwise_affine: learn ``weight`` and ``bias`` of that shape.
        bias: learn ``bias``.

    Source: Ba et al., "Layer normalization", 2016.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shape = self.normalized_shape
        weight = Parameter(ones(shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.register_parameter(
            "bias", Parameter(zeros(shape, device=device, dtype=dtype)) if elementwise_affine and bias else None
        )

    def reset_parameters(self) -> None:
        """Make the affine map the identity."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, " + shown(self, "eps", "elementwise_affine")


class GroupNorm(Module):
    """Subtract the mean and divide by the standard deviation over groups of channels; then ``weight``, ``bias``.

    Args:
        num_groups: must divide ``num_channels``.
        num_channels: size of dimension 1.
        eps: added to the variance.
        affine: learn ``weight`` and ``bias`` for each channel.

    Source: Wu and He, "Group normalization", 2018.

    Raises:
        ValueError: the channels do not divide into the groups.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(ones(num_channels, device=device, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_channels, device=device, dtype=dtype)) if affine else None)

    def reset_parameters(self) -> None:
        """Make the affine map the identity."""
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, " + shown(self, "eps", "affine")


class LocalResponseNorm(Module):
    """Divide by ``(k + alpha * mean(x^2)) ** beta``, the mean over ``size`` neighbouring channels.

    Source: Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, " + shown(self, "alpha", "beta", "k")


class CrossMapLRN2d(LocalResponseNorm):
    """:class:`LocalResponseNorm` of images (N, C, H, W).

    Raises:
        ValueError: the input has not 4 dimensions.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        if input.geometry.ndim != 4:
            raise ArgumentError(f"CrossMapLRN2d: Expected input to be 4D, got {input.geometry.ndim}D instead.")
        return super().forward(input)
