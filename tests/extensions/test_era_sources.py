"""Sources in the style of PyTorch 0.4 build unchanged: two translation units, a class, loops over raw memory."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau.autograd import Function, gradcheck

SOURCES = Path(__file__).parent / "sources"


def arguments(dtype=flambeau.float64, batch=3, features=4, state=5):
    flambeau.manual_seed(0)
    shapes = (batch, features), (3 * state, state + features), (1, 3 * state), (batch, state), (batch, state)
    return [flambeau.randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]


def by_numpy(x, weights, bias, h, c):
    """The cell, from its equations."""
    gates = np.concatenate([h, x], 1) @ weights.T + bias
    i, o, g = np.split(gates, 3, 1)
    i, o = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-o))
    new = c + np.where(g > 0, g, np.expm1(g)) * i
    return np.tanh(new) * o, new


def test_forward_has_the_values_of_the_equations(cell):
    given = arguments()
    h, c = cell.forward(*given)[:2]
    expected = by_numpy(*(each.detach().numpy() for each in given))
    np.testing.assert_allclose(h.detach().numpy(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(c.detach().numpy(), expected[1], rtol=1e-12)


def test_composed_forward_differentiates_by_itself(cell):
    assert gradcheck(lambda *given: tuple(cell.forward(*given)[:2]), arguments())


def test_backward_written_by_hand_passes_gradcheck(cell):
    class Cell(Function):
        @staticmethod
        def forward(ctx, x, weights, bias, h, c):
            outputs = cell.forward(x, weights, bias, h, c)
            ctx.save_for_backward(*outputs[1:], weights)
            return tuple(outputs[:2])

        @staticmethod
        def backward(ctx, grad_h, grad_c):
            d_h, d_x, d_weights, d_bias, d_c = cell.backward(
                grad_h.contiguous(), grad_c.contiguous(), *ctx.saved_tensors
            )
            return d_x, d_weights, d_bias, d_h, d_c

    assert gradcheck(Cell.apply, arguments())


def test_a_class_with_members(multiplier):
    twice = multiplier.Multiplier(2)
    x = flambeau.ones(2, 3, dtype=flambeau.float64)
    np.testing.assert_array_equal(twice.forward(x).numpy(), np.full((2, 3), 2.0))
    assert twice.scale() is None
    twice.scale(by=0.25)
    np.testing.assert_array_equal(twice.weight().numpy(), np.full((2, 3), 1.0))
    assert multiplier.Multiplier.__doc__ == "Multiplies by a matrix."
    assert inspect.getdoc(twice.scale) == "scale(self: Multiplier, by: float = 2.0) -> None\n\nScale the weight."
    assert str(inspect.signature(twice.scale)) == "(by=2.0)"
    with pytest.raises(TypeError, match=re.escape("__init__(): argument 'rows' must be int, got str: 'a'.")):
        multiplier.Multiplier("a")
    with pytest.raises(TypeError, match="argument 'self' must be Multiplier, got int: 3"):
        multiplier.Multiplier.scale(3, 2.0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_dispatch_over_element_types(multiplier, dtype):
    x = flambeau.tensor([1, 2, 3, 4]).to(getattr(flambeau, dtype))
    result = multiplier.running_sum(x)
    assert result.dtype is x.dtype and result.tolist() == [1, 3, 6, 10]


def test_loops_over_offset_and_empty_memory(multiplier):
    x = flambeau.arange(10.0)[3:6]
    assert multiplier.running_sum(x).tolist() == [3, 7, 12]
    assert multiplier.running_sum(x[:0]).tolist() == []


def test_accessors_follow_strides(multiplier):
    x = flambeau.arange(12.0, dtype=flambeau.float64).reshape(3, 4).t()[1:]
    np.testing.assert_array_equal(multiplier.trace_of(x).numpy(), [np.trace(x.numpy())])


def test_checks_become_exceptions_with_file_and_line(multiplier):
    line = next(i for i, text in enumerate((SOURCES / "loops.cpp").read_text().splitlines(), 1) if "a matrix" in text)
    with pytest.raises(RuntimeError, match=rf"^expected a matrix\n\(at .*loops\.cpp:{line}\)$"):
        multiplier.trace_of(flambeau.ones(3))
    with pytest.raises(RuntimeError, match=r"^x must be contiguous\n\(at .*loops\.cpp:\d+\)$"):
        multiplier.running_sum(flambeau.ones(2, 3).t())
    with pytest.raises(RuntimeError, match=r"^\"running_sum\" not implemented for 'Bool'\n\(at .*loops\.cpp:\d+\)$"):
        multiplier.running_sum(flambeau.ones(2) > 0)
    with pytest.raises(RuntimeError, match=r"^data<float64>\(\): the tensor holds float32\.\nConvert it first"):
        multiplier.trace_of(flambeau.ones(2, 2))
