"""Clipping, vectors of parameters, weight and spectral norm, gradients of convolutions."""

import re

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.nn import functional as F, grad, utils


def parameters():
    a, b, c = (nn.Parameter(flambeau.ones(size)) for size in (2, 3, 4))
    a.grad, b.grad = flambeau.tensor([3.0, 0.0]), flambeau.tensor([0.0, -4.0, 0.0])
    return a, b, c


@pytest.mark.parametrize(("p", "norm"), [(2.0, 5.0), (1.0, 7.0), (float("inf"), 4.0)])
def test_clip_norm(p, norm):
    a, b, c = parameters()
    assert utils.clip_grad_norm_([a, b, c], 1.0, p).item() == pytest.approx(norm)
    np.testing.assert_allclose(a.grad.numpy(), [3 / norm, 0], rtol=1e-5)
    np.testing.assert_allclose(b.grad.numpy(), [0, -4 / norm, 0], rtol=1e-5)
    assert utils.clip_grad_norm_(iter([a]), 100.0, p).item() == pytest.approx(3 / norm)
    np.testing.assert_allclose(a.grad.numpy(), [3 / norm, 0], rtol=1e-5)
    assert utils.clip_grad_norm_([c], 1.0).item() == 0
    a.grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        utils.clip_grad_norm([b], 1.0)


def test_clip_value():
    a, b, _ = parameters()
    utils.clip_grad_value_([a, b], 2)
    assert a.grad.tolist() == [2, 0] and b.grad.tolist() == [0, -2, 0]


def test_vectors():
    model = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    utils.vector_to_parameters(flambeau.arange(9.0), model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and model.bias.tolist() == [6, 7, 8]
    assert isinstance(model.weight, nn.Parameter) and model.weight.requires_grad
    with pytest.raises(TypeError, match="expected Tensor"):
        utils.vector_to_parameters([1.0], model.parameters())
    for wrong in (flambeau.arange(8.0), flambeau.arange(10.0), flambeau.ones(3, 3)):
        with pytest.raises(
            RuntimeError, match=rf"the parameters' 9 elements, got shape {re.escape(str(list(wrong.shape)))}"
        ):
            utils.vector_to_parameters(wrong, model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_weight_norm():
    model = nn.Linear(4, 3)
    weight = model.weight.detach().clone()
    x = flambeau.randn(2, 4)
    before = model(x)
    assert utils.weight_norm(model) is model
    assert [name for name, _ in model.named_parameters()] == ["bias", "weight_g", "weight_v"]
    assert model.weight_g.shape == (3, 1)
    np.testing.assert_allclose(model(x).detach().numpy(), before.detach().numpy(), rtol=1e-5, atol=1e-6)
    with flambeau.no_grad():
        model.weight_g.mul_(2)
    np.testing.assert_allclose(
        (model(x) - model.bias).detach().numpy(), 2 * (before - model.bias).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    model(x).sum().backward()
    assert model.weight_g.grad is not None and model.weight_v.grad is not None
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        utils.weight_norm(model)
    utils.remove_weight_norm(model)
    np.testing.assert_allclose(model.weight.detach().numpy(), 2 * weight.numpy(), rtol=1e-5)
    assert sorted(name for name, _ in model.named_parameters()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        utils.remove_weight_norm(model)


def test_spectral_norm():
    flambeau.manual_seed(2)
    model = utils.spectral_norm(nn.Linear(5, 3), n_power_iterations=30)
    x = flambeau.randn(2, 5)
    model(x)
    assert np.linalg.svd(model.weight.detach().numpy())[1][0] == pytest.approx(1, abs=1e-3)
    model(x).sum().backward()
    assert model.weight_orig.grad is not None and "weight_u" in model.state_dict()
    u = model.weight_u.clone()
    model.eval()
    model(x)
    assert (model.weight_u == u).all()
    utils.remove_spectral_norm(model)
    assert np.linalg.svd(model.weight.detach().numpy())[1][0] == pytest.approx(1, abs=1e-3)
    with pytest.raises(ValueError, match="not found"):
        utils.remove_spectral_norm(model)
    with pytest.raises(ValueError, match="to be positive"):
        utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolution_gradients(dims):
    generator = np.random.default_rng(dims)
    x = flambeau.tensor(generator.normal(size=(2, 4) + (6,) * dims), requires_grad=True)
    w = flambeau.tensor(generator.normal(size=(6, 2) + (3,) * dims), requires_grad=True)
    options = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    y = getattr(F, f"conv{dims}d")(x, w, None, **options)
    g = flambeau.tensor(generator.normal(size=tuple(y.shape)))
    y.backward(g)
    to_input, to_weight = getattr(grad, f"conv{dims}d_input"), getattr(grad, f"conv{dims}d_weight")
    np.testing.assert_allclose(to_input(x.shape, w, g, **options).numpy(), x.grad.numpy(), atol=1e-10)
    np.testing.assert_allclose(to_weight(x, w.shape, g, **options).numpy(), w.grad.numpy(), atol=1e-10)
