"""What must hold before a tensor is written, before two tensors meet, and of arguments that are to be tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..autograd.grad_mode import no_grad
from ..autograd.node import Leaf, edge
from ..errors import ArgumentTypeError, AutogradError, DeviceError, shown
from ..key import Key
from ..layout import strided
from ..tensor import Tensor, make
from .plans import reads_of

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["before_write", "device_mismatch", "explained", "meeting", "writable"]


def writable(target: Tensor, name: str) -> None:
    """Refuse a write into memory that several indices share."""
    geometry = target.geometry
    if not geometry.dense and geometry.overlapping:
        raise AutogradError(
            f"unsupported operation: {name} would write to a tensor of shape {list(geometry.shape)} and strides "
            f"{geometry.strides}, more than one element of which refers to a single memory location.\n"
            "Please clone() the tensor before performing the operation."
        )


def before_write(op: Operator, target: Tensor) -> Tensor:
    """The target's old value for the graph: a copy if a formula reads it, else an empty-handed twin.

    Raises:
        RuntimeError: the target is a leaf that requires grad, or a view of one.
    """
    own = isinstance(target.node, Leaf)
    if own or (target.base is not None and isinstance(target.base.node, Leaf)):
        raise AutogradError(
            f"{'' if own else 'a view of '}a leaf Variable that requires grad is being used in an in-place operation "
            f"({op.name}, shape {list(target.shape)}).\n"
            "Use the out-of-place form, or wrap the update in flambeau.no_grad()."
        )
    node = edge(target)
    first = op.parameters[0]
    formulas = [op.joint] if op.joint is not None else list(op.formulas.values())
    if any(first in reads_of(each) for each in formulas if each is not None):
        with no_grad():
            twin = cast(Any, target).clone()
    else:
        twin = make(target.key, target.geometry, target.memory)
    twin.node, twin.output = node, target.output
    return cast(Tensor, twin)


def device_mismatch(name: str, a: Tensor, b: Tensor) -> DeviceError:
    """The error for tensors on two devices."""
    return DeviceError(
        f"Expected all tensors to be on the same device, but {name} got {a.device} (shape {list(a.shape)}) "
        f"and {b.device} (shape {list(b.shape)}).\nMove one with .to({str(a.device)!r})."
    )


def meeting(name: str, key: Key, first: Tensor, other: Tensor) -> Key:
    """The key that serves a call where tensors of two devices or layouts meet: that of the one without strides.

    Raises:
        RuntimeError: the devices differ.
    """
    if other.key.device is not key.device:
        raise device_mismatch(name, first, other)
    return other.key if key.layout is strided else key


def explained(
    error: AttributeError, name: str, body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    """What a call that failed is told: which argument is no tensor though its annotation is, or the error as it was."""
    signature = inspect.signature(body)
    for parameter, value in signature.bind(*args, **kwargs).arguments.items():
        if signature.parameters[parameter].annotation == "Tensor" and not isinstance(value, Tensor):
            return ArgumentTypeError(
                f"{name}() expects a Tensor as {parameter!r}, got {type(value).__name__}: {shown(value)}.\n"
                "Convert it first with flambeau.tensor(...)."
            )
    return error
