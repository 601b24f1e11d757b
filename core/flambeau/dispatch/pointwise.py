"""Operators that work element by element: their bodies are made here, from a rule and an arity.

The straight way is short: both operands of one key, or a tensor and a number that
does not change its dtype, go to the kernel after one table lookup.  Everything else
(promotion, devices, ``out=``, errors) is in ``general``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..autograd.grad_mode import mode, no_grad
from ..autograd.node import record, record_inplace, tracked
from ..dtype import bool_, can_cast, default, dtype as Dtype, float64, of_scalar, promote_types
from ..errors import ArgumentTypeError, AutogradError, DtypeError, ShapeError, shown
from ..geometry import broadcast_shapes
from ..key import Key
from ..layout import strided
from ..tensor import Tensor, constant, touch
from .operator import Declared, Operator, publish
from .writes import before_write, device_mismatch, writable

__all__ = ["BOOL", "COMMON", "FLOAT", "finish_out", "finish_outs", "pointwise", "result_type"]

#: How the dtype in which an operator computes follows from the common dtype of its operands.
COMMON: Final = "common"
FLOAT: Final = "float"  # integers compute, and result, in the default floating-point type
BOOL: Final = "bool"  # like COMMON; the kernel's result is bool

NUMBERS: Final = (bool, int, float, complex)


def result_type(*operands: Any) -> Dtype:
    """The dtype that tensors and Python numbers combine to.

    Tensors with dimensions decide; a 0-dim tensor or a number only matters if it is of
    a higher category (bool < integer < floating point < complex).

    >>> import flambeau
    >>> flambeau.result_type(flambeau.ones(2, dtype=flambeau.int8), 3)
    flambeau.int8
    """
    tiers: list[Dtype | None] = [None, None, None]  # dimensioned tensors, 0-dim tensors, numbers
    for each in operands:
        if isinstance(each, Tensor):
            tier, dtype = (0 if each.geometry.ndim else 1), each.key.dtype
        else:
            tier, dtype = 2, of_scalar(type(each))
        before = tiers[tier]
        tiers[tier] = dtype if before is None else promote_types(before, dtype)
    result: Dtype | None = None
    for dtype in tiers:  # type: ignore[assignment]
        if dtype is not None and (result is None or dtype.category > result.category):
            result = _raised(result, dtype)
    if result is None:
        raise ArgumentTypeError("result_type() expects at least one tensor or number, got none.")
    return result


def _raised(lower: Dtype | None, dtype: Dtype) -> Dtype:
    # A complex number beside a float64 tensor needs the precision of both.
    if lower is not None and dtype.is_complex and lower.is_floating_point:
        return promote_types(lower, dtype) if lower is float64 else dtype
    return dtype


def _number(each: Any) -> Any:
    """A Python number for a NumPy one, else the argument itself."""
    return each.item() if isinstance(each, np.generic) else each


class Pointwise:
    """The rule of one pointwise operator."""

    __slots__ = ("check", "op", "promote", "tensor_first")

    def __init__(
        self, op: Operator, promote: str, check: Callable[[Dtype], str | None] | None, tensor_first: bool
    ) -> None:
        self.op, self.promote, self.check, self.tensor_first = op, promote, check, tensor_first

    def compute_dtype(self, operands: Sequence[Any]) -> Dtype:
        """The dtype the kernel works in.

        Raises:
            RuntimeError: the operator does not exist for this dtype.
        """
        dtype = result_type(*operands)
        if self.check is not None:
            problem = self.check(dtype)
            if problem:
                raise DtypeError(f"{self.op.name}: {problem}, got {_describe(operands)}.")
        if self.promote is FLOAT and dtype.category < 2:
            return default.dtype
        return dtype

    def prepare(self, operands: Sequence[Any]) -> tuple[Key, list[Any]]:
        """The key to compute with, and the operands converted to it (numbers as they are)."""
        first: Tensor | None = None
        for each in operands:
            if isinstance(each, Tensor):
                if (
                    first is None
                    or (first.geometry.ndim == 0 and first.key.memory.host and each.geometry.ndim)
                    or (first.key.layout is strided and each.key.layout is not strided)
                ):
                    first = each
            elif type(each) not in NUMBERS:
                raise ArgumentTypeError(
                    f"{self.op.name}() expects tensors and numbers, got {type(each).__name__}: {shown(each)}.\n"
                    "Convert it first with flambeau.tensor(...)."
                )
        if first is None:
            raise ArgumentTypeError(f"{self.op.name}() expects at least one tensor, got {_describe(operands)}.")
        if self.tensor_first and not isinstance(operands[0], Tensor):
            raise ArgumentTypeError(
                f"{self.op.name}() expects a Tensor first, got {_describe(operands)}.\n"
                "Convert the number with flambeau.tensor(...), or exchange the operands."
            )
        key = first.key.of(self.compute_dtype(operands))
        converted = []
        for each in operands:
            if isinstance(each, Tensor) and each.key is not key:
                if each.key.device is not key.device:
                    if each.geometry.ndim or not each.key.memory.host:
                        raise device_mismatch(self.op.name, first, each)
                    each = each.to(key.device)
                each = each.to(key.dtype)
            converted.append(each)
        return key, converted

    def general(self, operands: Sequence[Any], out: Tensor | None = None) -> Tensor:
        """Any operands; ``out`` receives the result if given."""
        key, operands = self.prepare([_number(each) for each in operands])
        kernel = self.op.table.get(key) or self.op.resolve(key)
        tensors = [each if isinstance(each, Tensor) else constant(key, each) for each in operands]
        if out is not None:
            return finish_out(self.op.name, out, operands, lambda: kernel(*tensors))
        result: Tensor = kernel(*tensors)
        if mode.enabled and self.op.differentiable is not False:
            record(self.op, tuple(operands), result)
        return result

    def inplace(self, target: Tensor, others: Sequence[Any]) -> Tensor:
        """Write the result into the first operand.

        Raises:
            RuntimeError: the result has another shape, or a dtype that the target cannot hold.
        """
        op = self.op
        others = [_number(each) for each in others]
        key, operands = self.prepare((target, *others))
        shapes = [each.geometry.shape for each in operands if isinstance(each, Tensor)]
        shape = shapes[0] if len(shapes) == 1 else broadcast_shapes(*shapes)
        if shape != target.geometry.shape:
            raise ShapeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)} in {op.name}_().\n"
                f"Use the out-of-place form {op.name}()."
            )
        result_dtype = bool_ if self.promote is BOOL else key.dtype
        if self.promote is not BOOL and not can_cast(result_dtype, target.key.dtype):
            raise DtypeError(
                f"result type {_titled(result_dtype)} can't be cast to the desired output type {_titled(target.key.dtype)} "
                f"in {op.name}_().\nUse the out-of-place form {op.name}()."
            )
        writable(target, op.name)
        recording = mode.enabled and op.differentiable is not False
        recording = recording and any(tracked(each) for each in operands if isinstance(each, Tensor))
        if recording and key is not target.key:
            # The conversions have history too: compute beside the target, then copy.
            return target.copy_(self.general((target, *others)))  # type: ignore[no-any-return]
        snapshot = before_write(op, target) if recording else None
        kernel = op.table.get(key) or op.resolve(key)
        tensors = [each if isinstance(each, Tensor) else constant(key, each) for each in operands]
        if result_dtype is key.dtype is target.key.dtype and not _partial_overlap(target, others):
            kernel(*tensors, out=target)
            touch(target)
        else:
            _copy_into(target, kernel(*tensors))
        if recording:
            record_inplace(op, target, tuple(operands), snapshot)
        return target


def _partial_overlap(target: Tensor, others: Sequence[Any]) -> bool:
    """Whether another operand shares some memory with the target, but not element for element."""
    for each in others:
        if isinstance(each, Tensor) and each.shared is not None and target.shared is not None:
            same = each.geometry is target.geometry and each.offset == target.offset
            if each.shared.memory is target.shared.memory and not same:
                return True
    return False


def _copy_into(target: Tensor, source: Tensor) -> None:
    with no_grad():
        target.copy_(source)


def finish_out(name: str, out: Tensor, inputs: Sequence[Any], compute: Callable[[], Tensor]) -> Tensor:
    """Compute and store into ``out``, which takes the result's shape.

    Raises:
        RuntimeError: ``out`` cannot hold the result's dtype, or history was asked for.
        TypeError: ``out`` is no tensor.
    """
    finish_outs(name, (out,), inputs, lambda: (compute(),))
    return out


def finish_outs(
    name: str, outs: Sequence[Tensor], inputs: Sequence[Any], compute: Callable[[], Sequence[Tensor]]
) -> Any:
    """Compute several results and store each into its tensor, or none if one of them cannot be.

    Raises:
        RuntimeError: as for :func:`finish_out`.
        TypeError: as for :func:`finish_out`, or the number of tensors is wrong.
    """
    if not isinstance(outs, (tuple, list)):
        raise ArgumentTypeError(f"{name}(): out must be a tuple of tensors, got {type(outs).__name__}.")
    for out in outs:
        _may_receive(name, out, inputs)
    with no_grad():
        results = compute()
        if len(outs) != len(results):
            raise ArgumentTypeError(f"{name}(): expected {len(results)} tensors as out, got {len(outs)}.")
        for out, result in zip(outs, results):
            _fits(name, out, result)
        for out, result in zip(outs, results):
            if out.geometry.shape != result.geometry.shape:
                out.resize_(result.geometry.shape)
            out.copy_(result)
    return results if type(results) is tuple else type(results)(*outs)


def _may_receive(name: str, out: Tensor, inputs: Sequence[Any]) -> None:
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{name}(): out must be a Tensor, got {type(out).__name__}.")
    if mode.enabled and (tracked(out) or any(isinstance(each, Tensor) and tracked(each) for each in inputs)):
        raise AutogradError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad.\nDrop out=, or run it in flambeau.no_grad()."
        )


def _fits(name: str, out: Tensor, result: Tensor) -> None:
    if result.key.device is not out.key.device:
        raise device_mismatch(name, result, out)
    if not can_cast(result.key.dtype, out.key.dtype):
        raise DtypeError(
            f"result type {_titled(result.key.dtype)} can't be cast to the desired output type "
            f"{_titled(out.key.dtype)} in {name}(out=...)."
        )
    if out.geometry.shape == result.geometry.shape:
        writable(out, name)
    elif tracked(out):
        raise AutogradError(f"{name}(): out requires grad and has shape {list(out.shape)}, not {list(result.shape)}.")


_TITLES: Final = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def _titled(dtype: Dtype) -> str:
    return _TITLES[dtype.name]


def _describe(operands: Sequence[Any]) -> str:
    return " and ".join(
        f"{each.key.dtype.name}{list(each.shape)}" if isinstance(each, Tensor) else repr(each) for each in operands
    )


def pointwise(
    *,
    promote: str = COMMON,
    check: Callable[[Dtype], str | None] | None = None,
    name: str | None = None,
    namespaces: str | Sequence[str] = "",
    method: bool = True,
    operator: str | Sequence[str] = (),
    inplace: bool = True,
    tensor_first: bool = False,
) -> Callable[[Callable[..., Any]], Declared]:
    """Declare an operator that works element by element; the body of the function is not used.

    Args:
        promote: COMMON, FLOAT or BOOL.
        check: given the operands' common dtype, says what is wrong with it, or None.
        name: the operator's name, if it is not the function's.
        namespaces: where the function is offered.
        method: whether it is also a method of Tensor.
        operator: special methods that are this function, such as ``"__mul__"``.
        inplace: whether there is an in-place form, ``NAME_``.
        tensor_first: whether a number as the first operand is refused.
    """

    def declare(function: Callable[..., Any]) -> Declared:
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        op = Operator(name or function.__name__, "pointwise", " ".join(parameters), function)
        rule = Pointwise(op, promote, check, tensor_first)
        call, call_ = _CALLERS[len(parameters)](rule)
        for each, suffix in ((call, ""), (call_, "_")):
            each.__name__ = each.__qualname__ = op.name + suffix
            each.__module__ = function.__module__
        call.__doc__ = function.__doc__
        call_.__doc__ = f"In-place form of :func:`{op.name}`."
        dunders = (operator,) if isinstance(operator, str) else operator
        declared = publish(op, call, namespaces, method, dunders, f"{op.name}_" if inplace else None)
        op.body_of_inplace, op.declared_with = call_, function
        op.returns(_bool_like if promote is BOOL else _like)
        declared.run = call
        return declared

    return declare


def _like(*operands: Tensor) -> Any:
    """What a kernel returns: with the strides of dense operands that have the same, else contiguous."""
    geometries = [each.geometry for each in operands]
    shape = broadcast_shapes(*[each.shape for each in geometries])
    full = next(each for each in geometries if each.shape == shape) if shape in [x.shape for x in geometries] else None
    same = full is not None and full.dense and all(each is full or each.numel == 1 for each in geometries)
    return full if same and len(operands) < 3 else shape


def _bool_like(*operands: Tensor) -> Any:
    return _like(*operands), bool_


def _unary(rule: Pointwise) -> tuple[Callable[..., Any], Callable[..., Any]]:
    op, table, general, inplace = rule.op, rule.op.table, rule.general, rule.inplace
    direct = rule.promote is not FLOAT and rule.check is None

    def call(self: Tensor, *, out: Tensor | None = None) -> Tensor:
        if out is None:
            try:
                key = self.key
            except AttributeError:
                return general((self,))
            if direct or key.dtype.category == 2:
                kernel = table.get(key)
                if kernel is not None:
                    result: Tensor = kernel(self)
                    if self.node is not None and mode.enabled and op.differentiable is not False:
                        record(op, (self,), result)
                    return result
        return general((self,), out)

    def call_(self: Tensor) -> Tensor:
        if (self.node is None or not mode.enabled) and self.geometry.dense and (direct or self.key.dtype.category == 2):
            kernel = table.get(self.key)
            if kernel is not None and rule.promote is not BOOL:
                kernel(self, out=self)
                touch(self)
                return self
        return inplace(self, ())

    return call, call_


def _quick(rule: Pointwise) -> Callable[[Sequence[Any]], Tensor]:
    """The straight way for any number of operands: tensors of one key, and numbers that keep its dtype."""
    op, table, general = rule.op, rule.op.table, rule.general
    subclasses = Tensor.subclasses
    direct = rule.promote is not FLOAT and rule.check is None

    def run(operands: Sequence[Any]) -> Tensor:
        key: Key | None = None
        for each in operands:
            kind = type(each)
            if kind is Tensor or kind in subclasses:
                key = each.key
                break
        if key is None:
            return general(operands)
        kernel = table.get(key)
        if kernel is None or not (direct or key.dtype.category == 2):
            return general(operands)
        constants, keeps = key.constants, key.keeps
        history, tensors = False, []
        for each in operands:
            kind = type(each)
            if kind is Tensor or kind in subclasses:
                if each.key is not key:
                    return general(operands)
                history = history or each.node is not None
                tensors.append(each)
            elif kind in keeps:
                number = constants.get(each or repr(each))
                tensors.append(constant(key, each) if number is None else number)
            else:
                return general(operands)
        result: Tensor = kernel(*tensors)
        if history and mode.enabled and op.differentiable is not False:
            record(op, tuple(operands), result)
        return result

    return run


def _binary(rule: Pointwise) -> tuple[Callable[..., Any], Callable[..., Any]]:
    op, table, general, inplace = rule.op, rule.op.table, rule.general, rule.inplace
    several = general if rule.tensor_first else _quick(rule)
    subclasses = Tensor.subclasses
    direct = rule.promote is not FLOAT and rule.check is None

    def call(self: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        if out is None:
            kind = type(other)
            try:
                key = self.key
                if kind is Tensor or kind in subclasses:
                    if key is other.key:
                        kernel = table.get(key)
                        if kernel is not None and (direct or key.dtype.category == 2):
                            result: Tensor = kernel(self, other)
                            if (
                                (self.node is not None or other.node is not None)
                                and mode.enabled
                                and op.differentiable is not False
                            ):
                                record(op, (self, other), result)
                            return result
                elif kind in key.keeps:
                    kernel = table.get(key)
                    if kernel is not None and (direct or key.dtype.category == 2):
                        number = key.constants.get(other or repr(other))
                        result = kernel(self, constant(key, other) if number is None else number)
                        if self.node is not None and mode.enabled and op.differentiable is not False:
                            record(op, (self, other), result)
                        return result
            except AttributeError:
                if isinstance(self, Tensor):
                    raise
                return several((self, other))  # a number first
        return general((self, other), out)

    def call_(self: Tensor, other: Any) -> Tensor:
        key = self.key
        if (self.node is None or not mode.enabled) and self.geometry.dense and (direct or key.dtype.category == 2):
            kernel = table.get(key)
            if kernel is not None and rule.promote is not BOOL:
                kind = type(other)
                if kind is Tensor or kind in subclasses:
                    tracked = other.node is not None and mode.enabled
                    shared = other.shared
                    if (
                        key is other.key
                        and not tracked
                        and (shared is None or shared is not self.shared)  # memory of its own: any strides will do
                        and (self.geometry is other.geometry or self.geometry.shape == other.geometry.shape)
                    ):
                        kernel(self, other, out=self)
                        touch(self)
                        return self
                elif kind in key.keeps:
                    number = key.constants.get(other or repr(other))
                    kernel(self, constant(key, other) if number is None else number, out=self)
                    touch(self)
                    return self
        return inplace(self, (other,))

    return call, call_


def _ternary(rule: Pointwise) -> tuple[Callable[..., Any], Callable[..., Any]]:
    several, general, inplace = _quick(rule), rule.general, rule.inplace

    def call(self: Any, a: Any, b: Any, *, out: Tensor | None = None) -> Tensor:
        return several((self, a, b)) if out is None else general((self, a, b), out)

    def call_(self: Tensor, a: Any, b: Any) -> Tensor:
        return inplace(self, (a, b))

    return call, call_


def _quaternary(rule: Pointwise) -> tuple[Callable[..., Any], Callable[..., Any]]:
    several, general, inplace = _quick(rule), rule.general, rule.inplace

    def call(self: Any, a: Any, b: Any, c: Any, *, out: Tensor | None = None) -> Tensor:
        return several((self, a, b, c)) if out is None else general((self, a, b, c), out)

    def call_(self: Tensor, a: Any, b: Any, c: Any) -> Tensor:
        return inplace(self, (a, b, c))

    return call, call_


_CALLERS: Final[dict[int, Callable[[Pointwise], tuple[Callable[..., Any], Callable[..., Any]]]]] = {
    1: _unary,
    2: _binary,
    3: _ternary,
    4: _quaternary,
}
