"""``opcheck``: whether a custom operator keeps what its declaration promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..autograd.gradcheck import GradcheckError, gradcheck
from ..dtype import DTYPES, bfloat16, float16, float32, float64
from ..errors import AutogradError, FlambeauError
from ..geometry import strided
from ..tensor import tensors_in, view
from .custom import CustomOp, mapped

__all__ = ["CheckError", "opcheck"]


#: With what a kernel says that it does not serve a call: as good as an answer.
_REFUSALS: Final = (FlambeauError, TypeError, RuntimeError, ValueError)


class CheckError(FlambeauError, AssertionError):
    """A custom operator does not do what its declaration says."""


def opcheck(
    op: CustomOp,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = ("schema", "gradient", "dtype", "strides", "empty", "fake"),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check a custom operator on sample inputs.

    Args:
        op: made by :func:`custom_op`.
        args: its arguments; floating-point tensors that require grad have their gradients checked, in float64.
        kwargs: more arguments, by name.
        test_utils: which checks: ``schema`` (what is written, what results share memory with), ``gradient`` (against
            differences, or a clear error where there is none), ``dtype`` (other element types give the same values, or
            a clear error), ``strides`` (non-contiguous and offset tensors give the same), ``empty`` (sizes of 0 give a
            result or a clear error), ``fake`` (the fake and the shape rule describe the result).
        raise_exception: raise at the first check that fails.
        atol, rtol: tolerances of the comparisons; by default those of the element type.

    Returns:
        for each check ``"SUCCESS"``, or what is wrong.

    Raises:
        AssertionError: a check failed.
    """
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    outcome = {}
    given = op.schema.bind(tuple(args), kwargs or {})
    for name in names:
        if name not in _CHECKS:
            raise CheckError(f"opcheck knows {', '.join(_CHECKS)}; got {name!r}.")
        try:
            _CHECKS[name](op, given, (rtol, atol))
        except CheckError as error:
            if raise_exception:
                raise
            outcome[name] = str(error)
        else:
            outcome[name] = "SUCCESS"
    return outcome


def _plain(tensor: Any) -> Any:
    return tensor.detach().clone()


def _results(op: CustomOp, given: Sequence[Any]) -> list[Any]:
    """What a call gives, or leaves in the argument that it writes into."""
    result = op(*given)
    if op.schema.mutated:
        return [dict(zip([each.name for each in op.schema.arguments], given, strict=True))[op.schema.mutated[0]]]
    return list(result) if op.schema.several else [result]


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    if tensor.dtype.is_floating_point:
        tensor = tensor.to(float64)
    array: np.ndarray[Any, Any] = tensor.detach().cpu().numpy()
    return array


def _compare(op: CustomOp, what: str, got: list[Any], wanted: list[Any], tolerances: tuple[Any, Any]) -> None:
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if a.shape != b.shape:
            raise CheckError(
                f"{op.name}, {what}: result {number} has the shape {list(a.shape)}, expected {list(b.shape)}."
            )
        rtol, atol = tolerances
        default = _TOLERANCES.get(a.dtype.name, 0.0)
        x, y = _array(a), _array(b)
        close = np.isclose(
            x, y, rtol=default if rtol is None else rtol, atol=default if atol is None else atol, equal_nan=True
        )
        if not close.all():
            place = tuple(int(i) for i in np.argwhere(~close)[0])
            raise CheckError(
                f"{op.name}, {what}: result {number} is {x[place].item()!r} at {list(place)}, expected {y[place].item()!r}; "
                f"{int((~close).sum())} of {close.size} elements differ."
            )


_TOLERANCES: Final = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-5, "complex128": 1e-10,
}  # fmt: skip


def _schema(op: CustomOp, given: list[Any], _: Any) -> None:
    copies = mapped(given, _plain)
    before = [_array(each).copy() for each in tensors_in(copies)]
    names = [each.name for each in op.schema.arguments]
    op(*copies)
    for name, value in zip(names, copies, strict=True):
        for each in tensors_in([value]):
            was = before.pop(0)
            changed = not np.array_equal(was, _array(each), equal_nan=was.dtype.kind in "fc")
            if changed and name not in op.schema.mutated:
                raise CheckError(
                    f"{op.name}: its kernel wrote into {name!r}.\nCompute into new memory, or declare mutates_args=({name!r},)."
                )


def _gradient(op: CustomOp, given: list[Any], _: Any) -> None:
    wanted = [each for each in tensors_in(given) if each.dtype.is_floating_point and each.requires_grad]
    if not wanted:
        return

    def promoted(each: Any) -> Any:
        if not each.dtype.is_floating_point:
            return each
        return each.detach().to(float64).clone().requires_grad_(each.requires_grad)

    copies = mapped(given, promoted)
    tensors = [each for each in tensors_in(copies) if each.requires_grad]

    def call(*changed: Any) -> Any:
        rest = iter(changed)
        now = mapped(copies, lambda each: next(rest) if each.requires_grad else each)
        if op.schema.mutated:
            now = mapped(now, lambda each: each.clone() if each.requires_grad else each)
        floating = [each for each in _results(op, now) if each.dtype.is_floating_point]
        return floating[0] if len(floating) == 1 else tuple(floating)

    try:
        gradcheck(call, tensors)
    except (AutogradError, GradcheckError) as error:
        if "derivative for" in str(error):
            raise CheckError(
                f"{op.name}: an argument requires grad, and there is no backward.\n"
                "Give one with gradient(...) or register_autograd(...), or check tensors that do not require grad."
            ) from error
        raise CheckError(f"{op.name}, gradient: {error}") from error


def _dtype(op: CustomOp, given: list[Any], tolerances: tuple[Any, Any]) -> None:
    floating = [each for each in tensors_in(given) if each.dtype.is_floating_point]
    if not floating:
        return
    wanted = _results(op, mapped(given, _plain))
    for dtype in DTYPES:
        if not dtype.is_floating_point or dtype is floating[0].dtype:
            continue

        def changed(each: Any, dtype: Any = dtype) -> Any:
            return each.detach().to(dtype).clone() if each.dtype.is_floating_point else _plain(each)

        try:
            got = _results(op, mapped(given, changed))
        except _REFUSALS:
            continue
        narrow = dtype if dtype in (float16, bfloat16) else float32
        limits = tuple(_TOLERANCES[narrow.name] if each is None else each for each in tolerances)
        _compare(op, f"as {dtype.name}", got, wanted, (limits[0], limits[1]))


def _spread(tensor: Any) -> Any:
    """The same values with gaps between them, at an offset."""
    shape = tensor.shape
    wide = tensor.new_zeros([2 * size + 1 for size in shape])
    strides = tuple(2 * each for each in wide.stride())
    inner = view(wide, strided(type(shape)(shape), strides), sum(wide.stride()) if tensor.numel() else 0)
    made: Any = inner
    made.copy_(tensor.detach())
    return made


def _turned(tensor: Any) -> Any:
    """The same values, last dimension slowest."""
    order = tuple(reversed(range(tensor.dim())))
    return _plain(tensor).permute(order).contiguous().permute(order)


def _strides(op: CustomOp, given: list[Any], tolerances: tuple[Any, Any]) -> None:
    wanted = _results(op, mapped(given, _plain))
    for what, change in (("strided tensors at an offset", _spread), ("transposed tensors", _turned)):
        _compare(op, what, _results(op, mapped(given, change)), wanted, tolerances)


def _empty(op: CustomOp, given: list[Any], _: Any) -> None:
    dims = max((each.dim() for each in tensors_in(given)), default=0)
    for dim in range(dims):

        def cut(each: Any, dim: int = dim) -> Any:
            return each.detach().narrow(dim, 0, 0).clone() if each.dim() > dim else _plain(each)

        try:
            _results(op, mapped(given, cut))
        except (*_REFUSALS, IndexError):
            continue


def _fake(op: CustomOp, given: list[Any], _: Any) -> None:
    results = _results(op, mapped(given, _plain))
    wanted = op.result_shapes(given)
    if op.shapes is not None and wanted is not None:
        for number, (each, shape) in enumerate(zip(results, wanted, strict=True)):
            if tuple(each.shape) != shape:
                raise CheckError(
                    f"{op.name}: result {number} has the shape {list(each.shape)}; the rule {op.shapes.text} says {list(shape)}."
                )
    if op.fake is None:
        return
    made = op.fake(*mapped(given, _plain))
    for number, (each, like) in enumerate(zip(results, list(made) if op.schema.several else [made], strict=True)):
        for what in ("shape", "dtype", "device"):
            got, wanted = (getattr(one, what) for one in (each, like))
            if got != wanted:
                if what == "shape":
                    got, wanted = list(got), list(wanted)
                raise CheckError(f"{op.name}: result {number} has the {what} {got}, its fake says {wanted}.")


_CHECKS: Final[dict[str, Callable[[CustomOp, list[Any], tuple[Any, Any]], None]]] = {
    "schema": _schema, "gradient": _gradient, "dtype": _dtype, "strides": _strides, "empty": _empty, "fake": _fake,
}  # fmt: skip
