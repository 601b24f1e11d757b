"""Padding against numpy.pad; gradients; errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

rng = np.random.default_rng(0)
NAMES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "uint8", "float16"])
def test_constant(dtype):
    x = (rng.standard_normal((2, 3, 4)) * 3).astype(dtype)
    value = True if dtype == "bool" else 7
    for tensor in (flambeau.tensor(x), flambeau.tensor(np.ascontiguousarray(x.T)).permute(2, 1, 0)):
        result = F.pad(tensor, (1, 2, 0, 3), value=value)
        np.testing.assert_array_equal(result.numpy(), np.pad(x, [(0, 0), (0, 3), (1, 2)], constant_values=value))
    np.testing.assert_array_equal(
        F.pad(flambeau.tensor(x), (-1, 1)).numpy(), np.pad(x[..., 1:], [(0, 0), (0, 0), (0, 1)])
    )
    assert F.pad(flambeau.tensor(x), (-2, -2)).shape == (2, 3, 0)
    assert F.pad(flambeau.tensor(x), (-3, 1, 0, 0)).shape == (2, 3, 2)


@pytest.mark.parametrize("mode", NAMES)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_from_itself(mode, dims, dtype):
    x = (rng.standard_normal((2, 3, 5, 4, 6)[: dims + 2]) * 9).astype(dtype)
    pads = [(2, 1), (0, 3), (1, 2)][:dims]
    flat = [each for pair in reversed(pads) for each in pair]
    expected = np.pad(x, [(0, 0), (0, 0), *pads], mode=NAMES[mode])
    np.testing.assert_array_equal(F.pad(flambeau.tensor(x), flat, mode=mode).numpy(), expected)
    np.testing.assert_array_equal(F.pad(flambeau.tensor(x)[0], flat, mode=mode).numpy(), expected[0])


def test_cut_and_from_itself():
    x = np.arange(6.0).reshape(1, 1, 6)
    np.testing.assert_array_equal(F.pad(flambeau.tensor(x), (-1, 2), "circular").numpy()[0, 0], [1, 2, 3, 4, 5, 1, 2])
    np.testing.assert_array_equal(F.pad(flambeau.tensor(x), (2, -1), "reflect").numpy()[0, 0], [2, 1, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(F.pad(flambeau.tensor(x), (-2, 1), "replicate").numpy()[0, 0], [2, 3, 4, 5, 5])


@pytest.mark.parametrize("mode", ["constant", *NAMES])
def test_gradients(mode):
    x = flambeau.tensor(rng.standard_normal((1, 2, 3, 4)), requires_grad=True)
    assert gradcheck(lambda v: F.pad(v, (2, 1, -1, 1), mode), x)
    assert gradgradcheck(lambda v: F.pad(v, (2, 1, -1, 1), mode), x)


def test_result_is_fresh():
    x = flambeau.zeros(1, 2, 3)
    for mode in ("constant", *NAMES):
        F.pad(x, (0, 0), mode).add_(1)
    assert x.sum().item() == 0


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda x: F.pad(x, (1,)), RuntimeError, "divisible by 2"),
        (lambda x: F.pad(x, (1,) * 8), RuntimeError, "at most twice the input's dimensions \\(3\\)"),
        (lambda x: F.pad(x, (-3, -2)), RuntimeError, "negative output size"),
        (
            lambda x: F.pad(x, (4, 0), "reflect"),
            RuntimeError,
            "less than the corresponding input dimension.*\\(4, 0\\)",
        ),
        (lambda x: F.pad(x, (5, 0), "circular"), RuntimeError, "one wrap around"),
        (lambda x: F.pad(x, (1, 1), "mirror"), NotImplementedError, "unrecognised padding mode 'mirror'"),
        (lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), "reflect"), NotImplementedError, "last 1, 2 or 3"),
        (lambda x: F.pad(x, (1, 1), "reflect", 2.0), RuntimeError, "value argument"),
        (lambda x: F.pad(3, (1, 1)), TypeError, "must be a Tensor"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(flambeau.zeros(2, 3, 4))
