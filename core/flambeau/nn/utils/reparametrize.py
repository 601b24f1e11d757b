"""Weights that are computed from other parameters before each forward."""

from __future__ import annotations

from typing import Any, TypeVar

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError
from .. import functional as F
from ..module import Module
from ..parameter import Parameter

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def _norm_except(v: Any, dim: int | None) -> Any:
    """The norm over all dimensions but one, kept; over all for None."""
    if dim is None:
        return v.norm()
    dims = [each for each in range(v.geometry.ndim) if each != dim % v.geometry.ndim]
    return (v * v).sum(dims, keepdim=True).sqrt() if dims else v.abs()


class WeightNorm:
    """Computes ``weight = weight_g * weight_v / |weight_v|`` before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute(self, module: Module) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / _norm_except(v, self.dim))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))


def _hooked(module: Module, kind: type, name: str) -> int | None:
    hooks = module._hooks.forward_pre if module._hooks is not None else {}
    for number, (hook, _) in hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            return number
    return None


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Learn the size and the direction of a weight apart.

    Args:
        name: of the parameter, which ``name_g`` and ``name_v`` replace.
        dim: that sizes are kept for; None for one size.

    Source: Salimans and Kingma, "Weight normalization", 2016.

    Raises:
        RuntimeError: it was applied before.
    """
    if _hooked(module, WeightNorm, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    norm = WeightNorm(name, None if dim == -1 else dim)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(_norm_except(weight.detach(), norm.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach().clone()))
    setattr(module, name, norm.compute(module))
    module.register_forward_pre_hook(norm)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again.

    Raises:
        ValueError: there is no weight norm on it.
    """
    number = _hooked(module, WeightNorm, name)
    if number is None or module._hooks is None:
        raise ArgumentError(f"weight_norm of '{name}' not found in {module}")
    norm: Any = module._hooks.forward_pre.pop(number)[0]
    with no_grad():
        weight = norm.compute(module)
    for each in (name, name + "_g", name + "_v"):
        delattr(module, each)
    module.register_parameter(name, Parameter(weight))
    return module


class SpectralNorm:
    """Divides ``weight_orig`` by an estimate of its largest singular value before each forward."""

    def __init__(self, name: str, iterations: int, dim: int, eps: float) -> None:
        if iterations <= 0:
            raise ArgumentError(f"Expected n_power_iterations to be positive, but got n_power_iterations={iterations}")
        self.name, self.iterations, self.dim, self.eps = name, iterations, dim, eps

    def matrix(self, weight: Any) -> Any:
        """The weight with ``dim`` first and all others in one."""
        if self.dim:
            weight = weight.permute(self.dim, *[each for each in range(weight.geometry.ndim) if each != self.dim])
        return weight.reshape(weight.shape[0], -1)

    def compute(self, module: Module, iterate: bool) -> Any:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if iterate:
            with no_grad():
                for _ in range(self.iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
        sigma = u.clone().dot(matrix.mv(v.clone()))
        return weight / sigma

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, estimated by power iteration in training.

    Args:
        name: of the parameter, which ``name_orig`` replaces.
        n_power_iterations: before each forward.
        eps: smallest norm to divide by.
        dim: of the outputs; 0, or 1 for transposed convolutions, if not given.

    Source: Miyato et al., "Spectral normalization for generative adversarial networks", 2018.

    Raises:
        RuntimeError: it was applied before.
    """
    if _hooked(module, SpectralNorm, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    norm = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = getattr(module, name)
    with no_grad():
        rows, columns = norm.matrix(weight).shape
        u = F.normalize(weight.new_empty((rows,)).normal_(), dim=0, eps=eps)
        v = F.normalize(weight.new_empty((columns,)).normal_(), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(norm)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the normalised weight a parameter again.

    Raises:
        ValueError: there is no spectral norm on it.
    """
    number = _hooked(module, SpectralNorm, name)
    if number is None or module._hooks is None:
        raise ArgumentError(f"spectral_norm of '{name}' not found in {module}")
    norm: Any = module._hooks.forward_pre.pop(number)[0]
    with no_grad():
        weight = norm.compute(module, False)
    for each in (name, name + "_orig", name + "_u", name + "_v"):
        delattr(module, each)
    module.register_parameter(name, Parameter(weight))
    return module
