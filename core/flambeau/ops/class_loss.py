"""Losses of scores of classes against class numbers or class probabilities."""

from __future__ import annotations

from typing import Any, Final

from ..dispatch.operator import primitive
from ..dtype import float32, int64, uint8
from ..errors import ArgumentError, ArgumentTypeError, BoundsError, DtypeError, ShapeError
from ..geometry import Geometry, contiguous
from ..tensor import Tensor, constant, empty
from .loss import MEAN, declare_loss, reduce_loss, reduction_of
from .ranges import arange
from .ternary import where

__all__ = ["cross_entropy", "nll_loss"]

_MOST_FITS: Final = 1024


@primitive("self target weight? scratch | normalise reduction ignore_index", method=False, namespaces=())
def class_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    scratch: Tensor,
    normalise: bool,
    reduction: str,
    ignore_index: int,
) -> Any:
    """The negated score, or log-softmax of the scores, of each target class.

    Args:
        self: scores (N, C, ...).
        target: class numbers (N, ...), int64.
        weight: of each class.
        scratch: flat, one element more than ``target``; a kernel leaves there what its gradient wants.
        normalise: whether the scores still need log-softmax.
    """
    return class_loss.run(self, target, weight, scratch, normalise, reduction, ignore_index)


@class_loss.composite
def _class_loss(
    self: Any, target: Any, weight: Any, scratch: Any, normalise: bool, reduction: str, ignore_index: int
) -> Any:
    hot, factors = _targets(self, target, weight, ignore_index)
    scores = self.log_softmax(1) if normalise else self
    values = _chosen(hot, -scores) * factors
    return values.sum() / factors.sum() if reduction == MEAN else reduce_loss(values, reduction)


def _targets(self: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """Where in (N, C, ...) the target classes are, and the weight of each target; ignored ones are nowhere, weight 0."""
    kept = target != ignore_index
    if bool(kept.logical_and((target < 0).logical_or(target >= self.shape[1])).any()):
        raise BoundsError(f"Target out of bounds: class numbers must be in [0, {self.shape[1] - 1}].")
    along = (-1,) + (1,) * (target.ndim - 1)
    hot = (arange(self.shape[1], device=self.device).view(along) == target.unsqueeze(1)).logical_and(kept.unsqueeze(1))
    return hot, kept.to(self.dtype) if weight is None else _chosen(hot, weight.view(along))


def _chosen(hot: Any, values: Any, keepdim: bool = False) -> Any:
    """Of each target, the value of its class."""
    return where(hot, values, constant(values.key, 0)).sum(1, keepdim)


@primitive("grad self target weight? scratch | normalise reduction ignore_index", method=False, namespaces=())
def class_loss_backward(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, scratch: Tensor, normalise: bool, reduction: str,
    ignore_index: int,
) -> Any:  # fmt: skip
    """The gradient of ``class_loss`` in ``self``; ``grad`` is one number if the loss was reduced."""
    return class_loss_backward.run(grad, self, target, weight, scratch, normalise, reduction, ignore_index)


@class_loss_backward.composite
def _class_loss_backward(
    grad: Any, self: Any, target: Any, weight: Any, scratch: Any, normalise: bool, reduction: str, ignore_index: int
) -> Any:
    hot, scale = _scaled(grad, self, target, weight, reduction, ignore_index)
    zero = constant(self.key, 0)
    return (self.softmax(1) * scale if normalise else zero) - where(hot, scale, zero)


def _scaled(grad: Any, self: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> tuple[Any, Any]:
    """Where the targets' classes are, and the gradient (N, 1, ...) of each target's loss."""
    hot, factors = _targets(self, target, weight, ignore_index)
    return hot, (grad * (factors / factors.sum() if reduction == MEAN else factors)).unsqueeze(1)


class_loss.gradient(
    self=lambda grad, self, target, weight, scratch, normalise, reduction, ignore_index: class_loss_backward(
        grad, self, target, weight, scratch, normalise, reduction, ignore_index
    )
)


@class_loss_backward.gradients
def _(
    needs: Any, v: Any, grad: Any, self: Any, target: Any, weight: Any, scratch: Any, normalise: bool, reduction: str,
    ignore_index: int,
) -> Any:  # fmt: skip
    hot, unit = _scaled(grad.detach() * 0 + 1, self, target, weight, reduction, ignore_index)
    p = self.softmax(1) if normalise else None
    mean = (p * v).sum(1, keepdim=True) if normalise else 0
    along = ((mean - _chosen(hot, v, True)) * unit).squeeze(1)
    if reduction != "none":
        along = along.sum()
    bent = None
    if needs[1]:
        shared = grad if reduction != "none" else grad.unsqueeze(1)
        bent = p * (v - mean) * (unit * shared) if normalise else v * 0
    return along, bent, None, None, None


#: geometries of scores and targets that fit, with that of the scratch memory
_fits: Final[dict[tuple[Geometry, Geometry], Geometry]] = {}


def _class_loss_of(
    name: str, input: Any, target: Any, weight: Any, normalise: bool, reduction: str, ignore_index: int
) -> Any:
    """Check, bring to (N, C, ...) and (N, ...), compute."""
    try:
        key, geometry = input.key, input.geometry
        fits = _fits.get((geometry, target.geometry))
    except AttributeError:
        raise ArgumentTypeError(
            f"{name}(): expected tensors, got {type(input).__name__} and {type(target).__name__}."
        ) from None
    if fits is None:
        fits = _check_classes(name, geometry, target.geometry)
    if target.key.dtype is not int64:
        if target.key.dtype is not uint8:
            raise DtypeError(
                f"{name}: expected target of dtype int64 (class numbers), got {target.dtype.name}.\nUse target.long()."
            )
        target = target.to(dtype=int64)
    if weight is not None:
        classes = geometry.shape[geometry.ndim > 1]
        if weight.geometry.shape != (classes,) or weight.key is not key:
            raise ShapeError(
                f"{name}: weight tensor should be defined either for all {classes} classes or no classes, with "
                f"the input's "
                f"dtype {key.dtype.name}; got {weight.dtype.name}{list(weight.shape)}."
            )
    if key.dtype.category != 2:
        raise DtypeError(f'"{name}" not implemented for {key.dtype.name}: expected floating-point scores.')
    scratch = empty(key if key.dtype.itemsize >= 4 else key.of(float32), fits)
    if geometry.ndim > 1:
        return class_loss.run(input, target, weight, scratch, normalise, reduction, ignore_index)
    result = class_loss.run(
        input.unsqueeze(0), target.unsqueeze(0), weight, scratch, normalise, reduction, ignore_index
    )
    return result.squeeze(0) if reduction == "none" else result


def _check_classes(name: str, input: Geometry, target: Geometry) -> Geometry:
    shape, wanted = tuple(input.shape), tuple(target.shape)
    if not shape:
        raise ShapeError(f"{name}: expected input (C), (N, C) or (N, C, d1, ...), got a 0-dim tensor.")
    expected = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if expected != wanted:
        # PyTorch's types: a wrong batch size is a ValueError, other wrong sizes are RuntimeErrors.
        problem = ArgumentError if len(shape) != len(wanted) + 1 or shape[0] != wanted[0] else ShapeError
        raise problem(
            f"{name}: expected a target of shape {list(expected)} for input {list(shape)}, got {list(wanted)}.\n"
            "The target has the input's shape without the classes (dimension 1)."
        )
    if len(_fits) > _MOST_FITS:
        _fits.clear()
    _fits[input, target] = found = contiguous((target.numel + 1,))
    return found


@declare_loss
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log likelihood: ``-input`` at each target class.

    Args:
        input: log-probabilities (C), (N, C) or (N, C, d1, ...).
        target: class numbers of shape (), (N) or (N, d1, ...).
        weight: of each class; ``'mean'`` divides by the sum of the targets' weights.
        ignore_index: a target that counts for nothing.

    Raises:
        ValueError, RuntimeError: the shapes do not fit.
        IndexError: a target is no class.
    """
    if reduction is not MEAN or size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    return _class_loss_of("nll_loss", input, target, weight, False, reduction, ignore_index)  # type: ignore[no-any-return]


@declare_loss
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The cross entropy of ``softmax(input, dim=1)`` against classes or class probabilities.

    Args:
        input: scores (C), (N, C) or (N, C, d1, ...).
        target: class numbers of shape (), (N) or (N, d1, ...), or probabilities of the shape of ``input``.
        weight: of each class.
        ignore_index: a target that counts for nothing.
        label_smoothing: share of each target spread evenly over all classes, in [0, 1].
            Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016.

    Raises:
        ValueError, RuntimeError: the shapes do not fit, or ``label_smoothing`` is out of range.
        IndexError: a target is no class.
    """
    if reduction is not MEAN or size_average is not None or reduce is not None:
        reduction = reduction_of(reduction, size_average, reduce)
    if isinstance(target, Tensor) and target.key.dtype.category == 2 and target.geometry.shape == input.geometry.shape:
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)  # type: ignore[no-any-return]
    if label_smoothing == 0:
        return _class_loss_of("cross_entropy", input, target, weight, True, reduction, ignore_index)  # type: ignore[no-any-return]
    return _smoothed(input, target, weight, reduction, ignore_index, label_smoothing)  # type: ignore[no-any-return]


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing <= 1:
        raise ShapeError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")


def _by_class(weight: Any, ndim: int) -> Any:
    """Class weights that broadcast against (N, C, ...)."""
    return weight.reshape((1, -1) + (1,) * (ndim - 2)) if ndim > 1 else weight


def _soft_cross_entropy(input: Any, target: Any, weight: Any, reduction: str, smoothing: float) -> Any:
    _check_smoothing(smoothing)
    dim = 1 if input.geometry.ndim > 1 else 0
    if smoothing:
        target = target * (1 - smoothing) + smoothing / input.shape[dim]
    values = -input.log_softmax(dim) * target
    if weight is not None:
        values = values * _by_class(weight, input.geometry.ndim)
    values = values.sum(dim)
    return values.sum() / values.geometry.numel if reduction == MEAN else reduce_loss(values, reduction)


def _smoothed(input: Any, target: Any, weight: Any, reduction: str, ignore_index: int, smoothing: float) -> Any:
    _check_smoothing(smoothing)
    ndim = input.geometry.ndim
    scores = input.log_softmax(1 if ndim > 1 else 0)
    hard = _class_loss_of("cross_entropy", scores, target, weight, False, "none", ignore_index)
    even = -(scores if weight is None else scores * _by_class(weight, ndim)).sum(1 if ndim > 1 else 0)
    kept = target != ignore_index
    even = even.masked_fill(~kept, 0)
    values = hard * (1 - smoothing) + even * (smoothing / input.shape[1 if ndim > 1 else 0])
    if reduction != MEAN:
        return reduce_loss(values, reduction)
    total = kept.sum() if weight is None else (weight[target.masked_fill(~kept, 0)] * kept).sum()
    return values.sum() / total
