"""DataParallel: the same results and gradients as one call, whatever the structure of the results."""

from collections import namedtuple

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.nn import parallel

DEVICES = ["cpu", "cpu", "cpu"]
Point = namedtuple("Point", "x y")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("shift", flambeau.ones(2))

    def forward(self, x, scale=1.0, fail=False):
        if fail:
            raise ValueError("no")
        return (self.layer(x) + self.shift) * scale


class Structured(Net):
    def forward(self, x):
        y = super().forward(x)
        return {"y": y, "point": Point(y * 2, [y.sum()]), "none": None}


def test_results_and_gradients_are_those_of_one_call():
    model, x = Net(), flambeau.randn(7, 3)
    wrapped = nn.DataParallel(model, DEVICES)
    np.testing.assert_allclose(wrapped(x, scale=2.0).detach().numpy(), model(x, scale=2.0).detach().numpy(), rtol=1e-6)
    (wrapped(x) ** 2).sum().backward()
    parallel_grad = model.layer.weight.grad.clone()
    model.zero_grad()
    (model(x) ** 2).sum().backward()
    np.testing.assert_allclose(parallel_grad.numpy(), model.layer.weight.grad.numpy(), rtol=1e-5)
    assert [name for name, _ in wrapped.named_parameters()] == ["module.layer.weight", "module.layer.bias"]
    assert nn.DataParallel(model)(x).shape == (7, 2)
    assert wrapped(x[:2]).shape == (2, 2)  # fewer rows than devices


def test_structures_and_grad_mode():
    model, x = Structured(), flambeau.randn(6, 3)
    result = nn.DataParallel(model, DEVICES)(x)
    alone = model(x)
    assert isinstance(result["point"], Point) and result["none"] is None
    np.testing.assert_allclose(result["point"].x.detach().numpy(), alone["point"].x.detach().numpy(), rtol=1e-6)
    assert result["point"].y[0].shape == (3,)
    np.testing.assert_allclose(result["point"].y[0].sum().item(), alone["y"].sum().item(), rtol=1e-5)
    with flambeau.no_grad():
        assert not nn.DataParallel(model, DEVICES)(x)["y"].requires_grad


def test_errors_come_through():
    with pytest.raises(ValueError, match="no"):
        nn.DataParallel(Net(), DEVICES)(flambeau.randn(6, 3), fail=True)
    with pytest.raises(ValueError, match="0-dim tensor"):
        parallel.scatter(flambeau.tensor(1.0), DEVICES)
    with pytest.raises(ValueError, match="same keys"):
        parallel.gather([{"a": 1}, {"b": 1}], "cpu")
    with pytest.raises(ValueError, match="got int"):
        parallel.gather([1, 2], "cpu")


def test_parts():
    x = flambeau.arange(6)
    parts = parallel.scatter({"x": x, "n": 3}, DEVICES)
    assert [each["x"].tolist() for each in parts] == [[0, 1], [2, 3], [4, 5]] and parts[0]["n"] == 3
    assert parallel.data_parallel(nn.Linear(1, 1), flambeau.zeros(4, 1), DEVICES).shape == (4, 1)
