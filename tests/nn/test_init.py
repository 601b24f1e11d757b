"""Initialisation: ranges, moments, structure, old names."""

import math

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.nn import init


def test_constants_and_structure():
    x = flambeau.empty(3, 4)
    assert init.constant_(x, 2.5) is x and x.tolist() == [[2.5] * 4] * 3
    assert init.ones_(x).sum().item() == 12 and init.zeros_(x).sum().item() == 0
    assert init.eye_(x).tolist() == np.eye(3, 4).tolist()
    kernel = init.dirac_(flambeau.empty(4, 2, 3, 3), groups=2).numpy()
    wanted = np.zeros((4, 2, 3, 3))
    for out, into in ((0, 0), (1, 1), (2, 0), (3, 1)):
        wanted[out, into, 1, 1] = 1
    np.testing.assert_array_equal(kernel, wanted)
    with pytest.raises(ValueError, match="2 dimensions"):
        init.eye_(flambeau.empty(3))
    with pytest.raises(ValueError, match="3, 4, or 5 dimensions"):
        init.dirac_(x)
    with pytest.raises(ValueError, match="divisible by groups"):
        init.dirac_(flambeau.empty(3, 1, 1), groups=2)


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2) and init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
    with pytest.raises(ValueError, match="Unsupported nonlinearity sine"):
        init.calculate_gain("sine")
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", "x")


@pytest.mark.parametrize(
    ("fill", "bound", "spread"),
    [
        (lambda t: init.uniform_(t, -2, 3), None, 5 / math.sqrt(12)),
        (lambda t: init.normal_(t, 1, 0.5), None, 0.5),
        (lambda t: init.xavier_uniform_(t, 2.0), 2 * math.sqrt(6 / 1300), 2 * math.sqrt(2 / 1300)),
        (lambda t: init.xavier_normal_(t), None, math.sqrt(2 / 1300)),
        (
            lambda t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
            math.sqrt(6 / 500),
            math.sqrt(2 / 500),
        ),
        (lambda t: init.kaiming_normal_(t, a=1.0), None, math.sqrt(1 / 800)),
    ],
)
def test_distributions(fill, bound, spread):
    flambeau.manual_seed(11)
    x = fill(flambeau.empty(50, 80, 10)).numpy()
    assert abs(x.std() / spread - 1) < 0.02
    if bound is not None:
        assert 0.98 * bound < abs(x).max() <= bound * (1 + 1e-6)


def test_truncated_normal():
    flambeau.manual_seed(1)
    x = init.trunc_normal_(flambeau.empty(20000), mean=1.0, std=2.0, a=0.0, b=2.0).numpy()
    assert x.min() >= 0 and x.max() <= 2 and abs(x.mean() - 1) < 0.02 and x.std() < 2 / math.sqrt(12)


def test_fans_need_two_dimensions():
    for fill in (init.xavier_uniform_, init.kaiming_normal_):
        with pytest.raises(ValueError, match="fewer than 2 dimensions"):
            fill(flambeau.empty(3))
    with pytest.raises(ValueError, match="Mode sideways not supported"):
        init.kaiming_uniform_(flambeau.empty(3, 3), mode="sideways")


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 2, 3)])
def test_orthogonal(shape):
    x = init.orthogonal_(flambeau.empty(*shape, dtype=flambeau.float64), gain=3.0).numpy().reshape(shape[0], -1)
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(product, 9 * np.eye(len(product)), atol=1e-10)


def test_sparse():
    x = init.sparse_(flambeau.empty(10, 30), sparsity=0.34).numpy()
    assert ((x == 0).sum(0) == 4).all()
    with pytest.raises(ValueError, match="2 dimensions"):
        init.sparse_(flambeau.empty(3), 0.5)


def test_no_history_and_old_names():
    weight = nn.Parameter(flambeau.empty(2, 2))
    init.normal_(weight)
    assert weight.is_leaf and weight.requires_grad
    with pytest.warns(FutureWarning, match=r"nn.init.constant is now deprecated in favor of nn.init.constant_\."):
        init.constant(weight, 1.0)
    assert weight.sum().item() == 4
    for name in ("uniform", "normal", "eye", "dirac", "xavier_uniform", "kaiming_normal", "orthogonal", "sparse"):
        assert getattr(init, name).__name__ == name
