"""Nonlinearities as modules.

``inplace=True`` overwrites the input, which saves memory where its old value is not needed.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ops.creation import full
from . import functional as F
from .module import Module
from .parameter import Parameter
from .sizes import shown

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Inplace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return shown(self, inplace=False)


class ReLU(_Inplace):
    """``max(0, x)``."""

    def forward(self, input: Any) -> Any:
        return input.relu_() if self.inplace else input.relu()


class ReLU6(_Inplace):
    """``min(max(0, x), 6)``."""

    def forward(self, input: Any) -> Any:
        return F.relu6(input, inplace=self.inplace)


class SELU(_Inplace):
    """Self-normalising ELU.  Source: Klambauer et al., "Self-normalizing neural networks", 2017."""

    def forward(self, input: Any) -> Any:
        return F.selu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``."""

    def forward(self, input: Any) -> Any:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))``.  Source: Misra, "Mish", 2019."""

    def forward(self, input: Any) -> Any:
        return F.mish(input, inplace=self.inplace)


class Hardsigmoid(_Inplace):
    """``min(max(x / 6 + 1 / 2, 0), 1)``."""

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, inplace=self.inplace)


class Hardswish(_Inplace):
    """``x * hardsigmoid(x)``."""

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, inplace=self.inplace)


class ELU(Module):
    """x where positive, else ``alpha * (exp(x) - 1)``.

    Source: Clevert et al., "Fast and accurate deep network learning by exponential linear units", 2015.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "alpha", inplace=False)


class CELU(ELU):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """x where positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "negative_slope", inplace=False)


class RReLU(Module):
    """Leaky ReLU whose slope is drawn from [lower, upper) in training, and is their mean in evaluation."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "lower", "upper", inplace=False)


class Threshold(Module):
    """x where above ``threshold``, else ``value``."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "threshold", "value", inplace=False)


class Hardtanh(Module):
    """x bounded to [min_val, max_val].

    Raises:
        ValueError: ``max_val`` is not above ``min_val``.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise ArgumentError(f"max_val must be larger than min_val, got {max_val} and {min_val}.")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "min_val", "max_val", inplace=False)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Any) -> Any:
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        return input.tanh()


class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class GELU(Module):
    """``x * Phi(x)``, Phi the normal distribution function; ``approximate='tanh'`` for the quicker formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return shown(self, "approximate")


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; x itself where ``beta * x`` is above ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return shown(self, "beta", "threshold")


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where ``|x| > lambd``, else 0."""

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by ``lambd``."""

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)


class PReLU(Module):
    """x where positive, else ``weight * x`` with a learned weight.

    Args:
        num_parameters: 1, or one for each channel (dimension 1).
        init: the weight to begin with.

    Source: He et al., "Delving deep into rectifiers", 2015.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return shown(self, "num_parameters")


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class _OverDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return shown(self, "dim")


class Softmax(_OverDim):
    """``exp(x)`` divided by its sum over a dimension."""

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_OverDim):
    """The logarithm of :class:`Softmax`."""

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_OverDim):
    """:class:`Softmax` of ``-x``."""

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """:class:`Softmax` over the channels of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: Any) -> Any:
        if input.geometry.ndim not in (3, 4):
            raise ArgumentError(f"Softmax2d: expected input to be 3D or 4D, got {input.geometry.ndim}D instead")
        return F.softmax(input, -3)
