"""Activations against their definitions in float64: values, infinities, NaN, in place, gradients, arguments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
where, exp = np.where, np.exp
#: the function with its arguments, and what it means
CASES = {
    "relu": (F.relu, lambda a: where(a > 0, a, where(a != a, a, 0))),
    "relu6": (F.relu6, lambda a: np.clip(a, 0, 6)),
    "threshold": (lambda x: F.threshold(x, 0.25, -2.0), lambda a: where(a <= 0.25, -2.0, a)),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 2.0), lambda a: np.clip(a, -0.5, 2)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda a: where(a > 0, a, 0.2 * a)),
    "prelu": (lambda x: F.prelu(x, x.new_tensor([0.3])), lambda a: where(a > 0, a, 0.3 * a)),
    "elu": (lambda x: F.elu(x, 1.5), lambda a: where(a > 0, a, 1.5 * np.expm1(np.minimum(a, 0)))),
    "selu": (F.selu, lambda a: SELU_SCALE * where(a > 0, a, SELU_ALPHA * np.expm1(np.minimum(a, 0)))),
    "celu": (lambda x: F.celu(x, 2.0), lambda a: np.maximum(a, 0) + np.minimum(2 * np.expm1(np.minimum(a, 0) / 2), 0)),
    "sigmoid": (flambeau.sigmoid, special.expit),
    "logsigmoid": (F.logsigmoid, lambda a: -np.logaddexp(0, -a)),
    "tanh": (flambeau.tanh, np.tanh),
    "tanhshrink": (F.tanhshrink, lambda a: a - np.tanh(a)),
    "softsign": (F.softsign, lambda a: a / (1 + np.abs(a))),
    "softplus": (lambda x: F.softplus(x, 2.0, 10.0), lambda a: where(a * 2 > 10, a, np.logaddexp(0, 2 * a) / 2)),
    "softshrink": (lambda x: F.softshrink(x, 0.4), lambda a: where(a > 0.4, a - 0.4, where(a < -0.4, a + 0.4, where(a != a, a, 0)))),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), lambda a: where((a > 0.4) | (a < -0.4) | (a != a), a, 0)),
    "gelu": (F.gelu, lambda a: a * special.ndtr(a)),
    "gelu tanh": (
        lambda x: F.gelu(x, approximate="tanh"), lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
    ),
    "silu": (F.silu, lambda a: a * special.expit(a)),
    "hardsigmoid": (F.hardsigmoid, lambda a: np.clip(a / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, lambda a: a * np.clip(a / 6 + 0.5, 0, 1)),
    "mish": (F.mish, lambda a: a * np.tanh(np.logaddexp(0, a))),
    "glu": (lambda x: F.glu(x, -1), lambda a: a[..., : a.shape[-1] // 2] * special.expit(a[..., a.shape[-1] // 2 :])),
}  # fmt: skip
CASES = {
    name: case
    for name, case in CASES.items()
    if name.split()[0] not in ("mish", "hardsigmoid", "hardswish") or hasattr(F, name)
}
#: where the slope jumps, so that differences say nothing
CORNERS = [0, 0.25, -0.5, 2, 6, 0.4, -0.4, 3, -3, 5]
rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype):
    ours, meaning = CASES[name]
    a = (
        np.concatenate([rng.standard_normal(52) * 3, [0, -0.0, 1e-4, -20, 20, 90, -90, 0.25]])
        .reshape(5, 12)
        .astype(dtype)
    )
    expected = meaning(a.astype(np.float64))
    rtol = {"float16": 3e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    for x in (flambeau.tensor(a), flambeau.tensor(a.T.copy()).t(), flambeau.tensor(np.repeat(a, 2, 0))[::2]):
        result = ours(x)
        assert result.dtype is x.dtype
        np.testing.assert_allclose(result.numpy().astype(np.float64), expected, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(x.numpy(), a)  # nothing was written
    assert ours(flambeau.empty(0, 4, dtype=x.dtype)).shape == (0, 2 if name == "glu" else 4)
    if name != "glu":
        np.testing.assert_allclose(ours(flambeau.tensor(a[0, 0])).item(), expected[0, 0], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", [each for each in CASES if each != "glu"])
def test_nan_and_infinities(name):
    ours, meaning = CASES[name]
    a = np.array([np.nan, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        expected = meaning(a)
    result = ours(flambeau.tensor(a)).numpy()
    assert np.isnan(result[0])
    finite = ~np.isnan(expected[1:])  # where the formula is not 0 times infinity
    np.testing.assert_array_equal(result[1:][finite], expected[1:][finite])


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    ours, _ = CASES[name]
    a = rng.standard_normal((3, 4)) * 2
    for corner in CORNERS:
        a[np.abs(a - corner) < 0.02] += 0.1
    x = flambeau.tensor(a, requires_grad=True)
    assert gradcheck(ours, (x,)) and gradgradcheck(ours, (x,))


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "threshold", "hardtanh", "leaky_relu", "elu", "selu", "celu", "silu"]
)
def test_in_place(name):
    options = {
        "threshold": (0.25, -2.0),
        "hardtanh": (-0.5, 2.0),
        "leaky_relu": (0.2,),
        "elu": (1.5,),
        "celu": (2.0,),
    }.get(name, ())
    a = rng.standard_normal((3, 4))
    x = flambeau.tensor(a)
    expected = CASES[name][1](a)
    assert getattr(F, name)(x, *options, inplace=True) is x
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-12)
    leaf = flambeau.tensor(a, requires_grad=True)
    getattr(F, name)(leaf * 1, *options, inplace=True).sum().backward()
    other = flambeau.tensor(a, requires_grad=True)
    getattr(F, name)(other, *options).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), other.grad.numpy(), rtol=1e-12)


def test_prelu_has_a_slope_for_each_channel():
    x, w = rng.standard_normal((2, 3, 4)), np.array([0.1, 0.2, 0.3])
    result = F.prelu(flambeau.tensor(x), flambeau.tensor(w))
    np.testing.assert_allclose(result.numpy(), np.where(x > 0, x, x * w[:, None]))
    with pytest.raises(RuntimeError, match="3"):
        F.prelu(flambeau.tensor(x), flambeau.tensor(w[:2]))


@pytest.mark.parametrize("training", [True, False])
def test_rrelu(training):
    x = flambeau.tensor(-np.ones(2000))
    flambeau.manual_seed(0)
    slopes = -F.rrelu(x, 0.1, 0.5, training=training).numpy()
    if training:
        assert 0.1 <= slopes.min() < 0.12 and 0.48 < slopes.max() <= 0.5 and abs(slopes.mean() - 0.3) < 0.01
    else:
        np.testing.assert_allclose(slopes, 0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.glu(x[:, :3], 1), "3"), (lambda x: F.softshrink(x, -1.0), "lambda"),
        (lambda x: F.gelu(x, approximate="sin"), "approximate"), (lambda x: F.rrelu(x, 0.5, 0.1, training=True), "lower|upper"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises((RuntimeError, ValueError, NotImplementedError), match=message):
        call(flambeau.ones(2, 4))
