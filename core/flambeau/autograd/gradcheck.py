"""Comparing gradients with finite differences.

Everything is taken as a function from real numbers to real numbers: a complex number
is its two parts.  The gradient of a complex number is the derivative by its real part
plus i times the one by its imaginary part, so both sides agree on what that means.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..dtype import bfloat16, complex128, float64
from ..errors import ArgumentError, FlambeauError
from ..ops.conversion import host_array, values
from ..ops.creation import tensor
from ..tensor import Tensor
from .engine import grad as gradients

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]


class GradcheckError(FlambeauError, RuntimeError):
    """A gradient that differs from the finite differences."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    *,
    fast_mode: bool = False,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
) -> bool:
    """Check the gradients of ``func`` against central differences.

    Args:
        func: takes the inputs and returns a tensor or several.
        inputs: its arguments; the float64 tensors among them that require grad are checked.
        eps: step of the differences.
        atol: absolute tolerance.
        rtol: tolerance relative to the difference quotient.
        raise_exception: raise on a mismatch; otherwise return False.
        nondet_tol: how much two backward passes may differ.
        fast_mode: compare along one random direction instead of element by element.
        check_undefined_grad: accepted; outputs without a gradient always count as zeros.
        check_grad_dtypes: accepted; gradients always have their tensor's dtype.
        check_batched_grad: accepted; there are no batched gradients.

    Returns:
        Whether all gradients agree.

    Raises:
        GradcheckError: a gradient is wrong, and ``raise_exception``.
        ValueError: no input requires grad, or one shares memory between its elements.

    >>> import flambeau
    >>> x = flambeau.tensor([0.5, 2.0], dtype=flambeau.float64, requires_grad=True)
    >>> flambeau.autograd.gradcheck(lambda x: x * x, x)
    True
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked(arguments)
    try:
        check = _along if fast_mode else _by_element
        check(_Call(func, arguments, checked, strict=False), eps, atol, rtol)
        _repeatable(_Call(func, arguments, checked, strict=False), nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    *,
    fast_mode: bool = False,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
) -> bool:
    """Check the gradients of the gradients of ``func``; arguments as for :func:`gradcheck`.

    A first gradient that lost its history counts as wrong unless it is constant.

    Args:
        grad_outputs: gradients of the outputs, random if not given.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = _checked(arguments)
    outputs = _Call(func, arguments, checked, strict=False).outputs
    if grad_outputs is None:
        rng = np.random.default_rng(1)
        seeds = [_random_like(each, rng, gen_non_contig_grad_outputs) for each in outputs]
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    count = len(arguments)

    def first(*everything: Any) -> tuple[Tensor, ...]:
        arguments, seeds = everything[:count], everything[count:]
        results = _differentiable(func(*arguments))
        wanted = [arguments[i] for i in checked]
        found = gradients(results, wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None)

    everything = (*arguments, *seeds)
    try:
        call = _Call(first, everything, _checked(everything), strict=True)
        (_along if fast_mode else _by_element)(call, eps, atol, rtol)
    except GradcheckError as error:
        if raise_exception:
            error.args = (f"While checking second gradients: {error}",)
            raise
        return False
    return True


def _checked(arguments: Sequence[Any]) -> list[int]:
    """Positions of the arguments whose gradients are compared.

    Raises:
        ValueError: there are none, or one cannot be varied element by element.
    """
    found = [i for i, each in enumerate(arguments) if isinstance(each, Tensor) and cast(Any, each).requires_grad]
    if not found:
        raise ArgumentError("gradcheck expects at least one input with requires_grad=True, got none.")
    for i in found:
        each = arguments[i]
        if each.geometry.overlapping:
            raise ArgumentError(
                f"gradcheck: elements of input {i} share memory (shape {list(each.shape)}, strides {each.stride()}).\n"
                "Pass x.contiguous()."
            )
        if each.dtype not in (float64, complex128):
            warnings.warn(
                f"gradcheck: input {i} is {each.dtype.name}; differences are only reliable in float64.", stacklevel=3
            )
    return found


def _differentiable(results: Any) -> list[Tensor]:
    listed = [results] if isinstance(results, Tensor) else list(results)
    return [each for each in listed if isinstance(each, Tensor) and cast(Any, each).requires_grad]


def _floating(results: Any) -> list[Tensor]:
    listed = [results] if isinstance(results, Tensor) else list(results)
    return [each for each in listed if isinstance(each, Tensor) and each.dtype.category >= 2]


def _reals(array: Array) -> Array:
    """A fresh flat array of real numbers: complex ones as two."""
    flat = np.array(array.reshape(-1))
    return flat.view(np.float64 if flat.dtype.itemsize == 16 else np.float32) if flat.dtype.kind == "c" else flat


def _dense(each: Any) -> Tensor:
    return cast(Tensor, each.to_dense() if each.is_sparse else each)


def _numbers(each: Tensor) -> Array:
    return _reals(values(each)).astype(np.float64)


def _like(each: Tensor, reals: Array) -> Tensor:
    """A tensor like another with these real numbers."""
    kind = np.float32 if each.dtype is bfloat16 else each.dtype.numpy
    array = reals.view(np.complex128).astype(kind) if each.dtype.is_complex else reals.astype(kind)
    return tensor(array.reshape(each.shape), dtype=each.dtype, device=each.device)


def _random_like(each: Tensor, rng: Any, strided: bool) -> Tensor:
    seed: Any = _like(each, rng.standard_normal(_numbers(each).size))
    if strided and each.ndim:
        seed = seed.unsqueeze(-1).expand(*each.shape, 2).contiguous().select(-1, 0)
    return cast(Tensor, seed.detach().requires_grad_())


class _Call:
    """A function with its arguments, as a function of real numbers."""

    def __init__(self, func: Callable[..., Any], arguments: Sequence[Any], checked: list[int], strict: bool) -> None:
        self.func, self.arguments, self.checked = func, arguments, checked
        #: whether outputs without history are compared too, as constants
        self.choose = _floating if strict else _differentiable
        results = func(*arguments)
        self.outputs = self.choose(results)
        if not self.outputs and not strict and _floating(results):
            # Nothing claims a gradient: then nothing may depend on the inputs.
            self.choose = _floating
            self.outputs = _floating(results)

    def numbers(self) -> list[Array]:
        return [_numbers(each) for each in self.choose(self.func(*self.arguments))]

    def backward(self, output: int, seed: Array) -> list[Array]:
        """The gradient of ``seed @ output`` for each checked input."""
        inputs = [self.arguments[i] for i in self.checked]
        target = self.outputs[output]
        if not cast(Any, target).requires_grad:
            return [np.zeros(_numbers(each).size) for each in inputs]
        found = gradients(target, inputs, _like(target, seed), retain_graph=True, allow_unused=True)
        for number, (each, given) in enumerate(zip(inputs, found, strict=True)):
            if given is not None and given.shape != each.shape:
                raise GradcheckError(
                    f"Input {self.checked[number]} has shape {list(each.shape)}, its gradient {list(given.shape)}."
                )
        return [
            np.zeros(_numbers(each).size) if given is None else _numbers(_dense(given))
            for each, given in zip(inputs, found, strict=True)
        ]

    def vary(self, position: int, direction: Array, step: float) -> list[Array]:
        """Difference quotients of the outputs when one input moves along a direction, both ways."""
        each: Any = self.arguments[position]
        before = _numbers(each)
        try:
            _store(each, before + step * direction)
            up = self.numbers()
            _store(each, before - step * direction)
            down = self.numbers()
        finally:
            _store(each, before)
        return [(a - b) / (2 * step) for a, b in zip(up, down, strict=True)]


def _store(each: Tensor, reals: Array) -> None:
    """Overwrite values behind autograd's back."""
    fresh = _like(each, reals)
    if each.key.memory.host:
        host_array(each)[...] = host_array(fresh)
    else:
        cast(Any, each).data.copy_(fresh)


def _close(a: Array, b: Array, atol: float, rtol: float) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(a - b) <= atol + rtol * np.abs(b)) | (a == b) | (np.isnan(a) & np.isnan(b)))


def _by_element(call: _Call, eps: float, atol: float, rtol: float) -> None:
    sizes = [_numbers(each).size for each in call.outputs]
    analytical = []  # for each output and checked input: (elements of the output, elements of the input)
    for output, size in enumerate(sizes):
        rows = [call.backward(output, np.eye(1, size, element).reshape(-1)) for element in range(size)]
        widths = [_numbers(call.arguments[i]).size for i in call.checked]
        analytical.append([np.array([row[k] for row in rows]).reshape(size, width) for k, width in enumerate(widths)])
    for k, position in enumerate(call.checked):
        width = _numbers(call.arguments[position]).size
        columns = [call.vary(position, np.eye(1, width, element).reshape(-1), eps) for element in range(width)]
        for output, size in enumerate(sizes):
            numerical = np.array([column[output] for column in columns]).reshape(width, size).T
            _compare(call, output, position, analytical[output][k], numerical, atol, rtol)


def _compare(
    call: _Call, output: int, position: int, analytical: Array, numerical: Array, atol: float, rtol: float
) -> None:
    wrong = ~_close(analytical, numerical, atol, rtol)
    if not wrong.any():
        return
    with np.errstate(invalid="ignore"):
        worst = np.where(wrong, np.nan_to_num(np.abs(analytical - numerical), nan=np.inf, posinf=np.inf), -1)
    row, column = np.unravel_index(int(worst.argmax()), worst.shape)
    raise GradcheckError(
        f"Jacobian mismatch for output {output} with respect to input {position}: {int(wrong.sum())} of {wrong.size} "
        f"elements differ.\n"
        f"Worst: d output{_index(call.outputs[output], int(row))} / d input"
        f"{_index(call.arguments[position], int(column))} is "
        f"{analytical[row, column]:.8g} by backward and {numerical[row, column]:.8g} by differences "
        f"(tolerance {atol:g} + {rtol:g} relative).\n"
        f"By backward:\n{_abridged(analytical)}\nBy differences:\n{_abridged(numerical)}"
    )


_SHOWN: Final = 8


def _abridged(matrix: Array) -> str:
    with np.printoptions(precision=5, threshold=_SHOWN * _SHOWN, edgeitems=_SHOWN // 2, linewidth=110, suppress=True):
        return str(matrix)


def _index(each: Tensor, position: int) -> str:
    part = ""
    if each.dtype.is_complex:
        part = ".imag" if position % 2 else ".real"
        position //= 2
    return f"{[int(i) for i in np.unravel_index(position, tuple(each.shape))] if each.ndim else ''}{part}"


def _along(call: _Call, eps: float, atol: float, rtol: float) -> None:
    rng = np.random.default_rng(0)
    for output, each in enumerate(call.outputs):
        seed = rng.standard_normal(_numbers(each).size)
        found = call.backward(output, seed)
        for k, position in enumerate(call.checked):
            direction = rng.standard_normal(found[k].size)
            direction /= max(float(np.linalg.norm(direction)), 1e-30)
            moved = call.vary(position, direction, eps)[output]
            by_backward, by_difference = np.array(found[k] @ direction), np.array(seed @ moved)
            if not _close(by_backward, by_difference, atol * max(1.0, float(np.linalg.norm(seed))), rtol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {output} with respect to input {position}: along a random direction "
                    f"the derivative is {by_backward:.8g} by backward and {by_difference:.8g} by differences.\n"
                    "Pass fast_mode=False to see the elements."
                )


def _repeatable(call: _Call, tolerance: float) -> None:
    rng = np.random.default_rng(2)
    for output, each in enumerate(call.outputs):
        seed = rng.standard_normal(_numbers(each).size)
        for number, (a, b) in enumerate(zip(call.backward(output, seed), call.backward(output, seed), strict=True)):
            if not _close(a, b, tolerance, 0.0).all():
                raise GradcheckError(
                    f"Backward is not reentrant: two passes gave different gradients of input {call.checked[number]} "
                    f"(largest difference {np.nanmax(np.abs(a - b)):.3g}, tolerance {tolerance:g})."
                )
