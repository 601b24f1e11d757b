"""Initialisation of parameters, in place and without history.

Each function ends with an underscore and returns its tensor; the names without it are deprecated.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Final

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError
from ..tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

_GAINS: Final = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity's input should be spread to keep the variance.

    Args:
        nonlinearity: ``'linear'``, ``'conv2d'``, ``'sigmoid'``, ``'tanh'``, ``'relu'``, ``'leaky_relu'``, ``'selu'``
        param: the negative slope of ``'leaky_relu'``, 0.01 if not given.

    Raises:
        ValueError: the nonlinearity is unknown.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ArgumentError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            f"Unsupported nonlinearity {nonlinearity}: expected one of {', '.join([*_GAINS, 'leaky_relu'])}."
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with uniform values from [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b) if generator is None else tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with normal values."""
    with no_grad():
        return tensor.normal_(mean, std) if generator is None else tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill with normal values restricted to [a, b], by inverting the distribution function."""
    with no_grad():
        low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
        uniform_(tensor, low, high, generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(min=a, max=b)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Make a matrix the identity.

    Raises:
        ValueError: it is no matrix.
    """
    if tensor.geometry.ndim != 2:
        raise ArgumentError(f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}.")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Make the weight of a convolution (out, in, ...) pass its input channels on, in each group.

    Raises:
        ValueError: the tensor has not 3 to 5 dimensions, or its outputs do not divide into groups.
    """
    ndim = tensor.geometry.ndim
    if ndim not in (3, 4, 5):
        raise ArgumentError(f"Only tensors with 3, 4, or 5 dimensions are supported, got shape {list(tensor.shape)}.")
    if tensor.shape[0] % groups:
        raise ArgumentError(f"dim 0 must be divisible by groups, got {tensor.shape[0]} and {groups}.")
    outputs = tensor.shape[0] // groups
    with no_grad():
        tensor.zero_()
        middle = tensor
        for size in reversed(tensor.shape[2:]):
            middle = middle.select(-1, size // 2)
        for group in range(groups):
            middle.narrow(0, group * outputs, outputs).diagonal().fill_(1.0)
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs feed one output, and how many outputs one input feeds."""
    shape = tensor.shape
    if len(shape) < 2:
        raise ArgumentError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got shape {list(shape)}."
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with uniform values of variance ``2 gain^2 / (fan_in + fan_out)``.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with normal values of variance ``2 gain^2 / (fan_in + fan_out)``; see :func:`xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _fans(tensor)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan_in if mode == "fan_in" else fan_out)


def kaiming_uniform_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill with uniform values of variance ``gain^2 / fan``.

    Args:
        a: the negative slope after this layer, for ``'leaky_relu'``.
        mode: keep the variance of the forward (``'fan_in'``) or of the backward pass (``'fan_out'``).
        nonlinearity: whose gain to use.

    Source: He et al., "Delving deep into rectifiers", 2015.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill with normal values of variance ``gain^2 / fan``; arguments as for :func:`kaiming_uniform_`."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with a (semi-)orthogonal matrix; trailing dimensions are flattened.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013.
    """
    if tensor.geometry.ndim < 2:
        raise ArgumentError(f"Only tensors with 2 or more dimensions are supported, got shape {list(tensor.shape)}.")
    if not tensor.geometry.numel:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.geometry.numel // rows
    with no_grad():
        q = normal_(tensor.new_empty((min(rows, columns), max(rows, columns))), generator=generator)
        for index in range(len(q)):
            row, before = q[index], q[:index]
            for _ in range(2 * bool(index)):  # twice is enough (Giraud et al., 2005)
                row.sub_(before.t().mv(before.mv(row)))
            row.div_(row.norm())
        tensor.copy_((q if rows < columns else q.t()).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill with normal values, and in each column a share ``sparsity`` of zeros.

    Source: Martens, "Deep learning via Hessian-free optimization", 2010.
    """
    if tensor.geometry.ndim != 2:
        raise ArgumentError(f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}.")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        normal_(tensor, 0.0, std, generator)
        # The order of random keys is a random permutation of each column.
        order = uniform_(tensor.new_empty((rows, columns)), generator=generator).argsort(0)
        return tensor.masked_fill_(order < zeros, 0.0) if zeros else tensor


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    new = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"nn.init.{new[:-1]} is now deprecated in favor of nn.init.{new}.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = new[:-1]
    old.__doc__ = f"Deprecated: use :func:`{new}`."
    return old


uniform, normal, constant = _deprecated(uniform_), _deprecated(normal_), _deprecated(constant_)
eye, dirac, orthogonal, sparse = _deprecated(eye_), _deprecated(dirac_), _deprecated(orthogonal_), _deprecated(sparse_)
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
