"""arange, range, linspace, logspace and eye against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flambeau

numbers = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 3))


@settings(max_examples=60, deadline=None)
@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 7), st.booleans())
def test_whole_steps(start, end, step, backwards):
    start, end, step = (
        (max(start, end), min(start, end), -step) if backwards else (min(start, end), max(start, end), step)
    )
    result = flambeau.arange(start, end, step)
    assert result.dtype is flambeau.int64
    np.testing.assert_array_equal(result.numpy(), np.arange(start, end, step))
    np.testing.assert_array_equal(
        flambeau.arange(start, end, step, dtype=flambeau.float32).numpy(), np.arange(start, end, step, np.float32)
    )


@settings(max_examples=60, deadline=None)
@given(numbers, st.floats(0.01, 20).map(lambda x: round(x, 3)), st.floats(0.05, 3).map(lambda x: round(x, 3)))
def test_steps_with_a_point(start, length, step):
    result = flambeau.arange(start, start + length, step, dtype=flambeau.float64)
    expected = np.arange(start, start + length, step)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, st.integers(0, 30))
def test_linspace(start, end, steps):
    result = flambeau.linspace(start, end, steps, dtype=flambeau.float64)
    np.testing.assert_allclose(result.numpy(), np.linspace(start, end, steps), rtol=1e-12, atol=1e-12)
    if steps > 1:
        assert result[0].item() == start and result[-1].item() == end  # the ends are exact


@pytest.mark.parametrize("base", [2.0, 10.0])
def test_logspace(base):
    result = flambeau.logspace(-2, 2, 9, base=base, dtype=flambeau.float64)
    np.testing.assert_allclose(result.numpy(), np.logspace(-2, 2, 9, base=base), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float16", "float32", "float64"])
def test_dtypes(dtype):
    kind = getattr(flambeau, dtype)
    np.testing.assert_array_equal(flambeau.arange(5, dtype=kind).numpy(), np.arange(5, dtype=dtype))
    np.testing.assert_array_equal(flambeau.eye(3, 4, dtype=kind).numpy(), np.eye(3, 4, dtype=dtype))
    out = flambeau.empty(0, dtype=kind)
    assert flambeau.arange(2, 8, 3, out=out) is out and out.tolist() == [2, 5]


def test_odds_and_ends():
    assert flambeau.arange(0).shape == (0,) and flambeau.arange(3, 3).shape == (0,)
    assert flambeau.arange(0.5).tolist() == [0] and flambeau.arange(2.0).dtype is flambeau.float32
    assert flambeau.range(1, 4).tolist() == [1, 2, 3, 4] and flambeau.range(0, 1, 0.5).tolist() == [0, 0.5, 1]
    assert flambeau.arange(flambeau.tensor(3)).tolist() == [0, 1, 2]
    assert flambeau.eye(2).tolist() == [[1, 0], [0, 1]] and flambeau.eye(0).shape == (0, 0)
    target = flambeau.zeros(2, 3)
    flambeau.arange(3, out=target[1])
    assert target.tolist() == [[0, 0, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flambeau.arange(0, 1, 0), (RuntimeError, ValueError), "step must be nonzero"),
        (lambda: flambeau.arange(0, 5, -1), (RuntimeError, ValueError), "step"),
        (lambda: flambeau.arange(0, float("inf")), (RuntimeError, ValueError), "inf"),
        (lambda: flambeau.linspace(0, 1, -1), (RuntimeError, ValueError), "steps"),
        (lambda: flambeau.eye(-1), (RuntimeError, ValueError), "-1"),
        (lambda: flambeau.arange("a"), TypeError, "expects numbers, got str"),
        (lambda: flambeau.arange(flambeau.ones(2)), RuntimeError, "0-dimensional"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
