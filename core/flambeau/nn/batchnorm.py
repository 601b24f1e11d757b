"""Normalisation over the batch, and over each instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..dtype import int64
from ..errors import ArgumentError
from ..ops.creation import ones, tensor, zeros
from . import functional as F, init
from .module import Module
from .parameter import Parameter
from .sizes import shown

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _Norm(Module):
    _version = 2
    #: numbers of dimensions that the input may have
    ndims: ClassVar[tuple[int, ...]]

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
        device: Any,
        dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features, device=device, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features, device=device, dtype=dtype)) if affine else None)
        running = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if running else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if running else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if running else None)

    def reset_running_stats(self) -> None:
        """Forget the statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics and make the affine map the identity."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check(self, input: Any) -> None:
        if input.geometry.ndim not in self.ndims:
            wanted = " or ".join(f"{each}D" for each in self.ndims)
            raise ArgumentError(f"expected {wanted} input (got {input.geometry.ndim}D input)")

    def extra_repr(self) -> str:
        return f"{self.num_features}, " + shown(self, "eps", "momentum", "affine", "track_running_stats")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Mapping[str, Any], *rest: Any
    ) -> None:
        # Before version 2 the batches were not counted.
        name = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and name not in state_dict:
            state_dict[name] = self.num_batches_tracked.detach().clone()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_Norm):
    """Subtract the mean and divide by the standard deviation of each channel over the batch; then ``weight``, ``bias``.

    Args:
        num_features: size of dimension 1.
        eps: added to the variance.
        momentum: share of the new batch in the running statistics; None averages all batches evenly.
        affine: learn ``weight`` and ``bias``.
        track_running_stats: keep running statistics and use them in evaluation.

    Source: Ioffe and Szegedy, "Batch normalization", 2015.

    Raises:
        ValueError: the input has the wrong number of dimensions.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Any) -> Any:
        self._check(input)
        factor = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if factor is None:
                factor = 1.0 / self.num_batches_tracked.item()
        running = not self.training or self.track_running_stats
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(
            input, self.running_mean if running else None, self.running_var if running else None, self.weight,
            self.bias,
            by_batch, 0.0 if factor is None else factor, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """:class:`BatchNorm2d` for any number of dimensions, in a single process."""

    ndims = (2, 3, 4, 5)


class _InstanceNorm(_Norm):
    """Subtract the mean and divide by the standard deviation of each channel of each instance.

    Args:
        num_features: size of the channel dimension.
        eps: added to the variance.
        momentum: share of the new batch in the running statistics.
        affine: learn ``weight`` and ``bias``.
        track_running_stats: keep running statistics and use them in evaluation.

    Input (N, C, ...) or (C, ...).  Source: Ulyanov et al., "Instance normalization", 2016.

    Raises:
        ValueError: the input has the wrong number of dimensions.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Any) -> Any:
        self._check(input)
        single = input.geometry.ndim == self.ndims[0]
        by_instance = self.training or not self.track_running_stats
        result = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
            by_instance, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (4, 5)
