"""Kernels in the place of composite operators: when they serve, and their part in autograd."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import backends
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.backend import Backend, Kernel, float32, float64, int64

F = torch.nn.functional


def softmin(self, dim, dtype=None):
    """softmin of the last dimension, in one kernel."""
    a = self.numpy()
    e = np.exp(a.min(dim, keepdims=True) - a)
    return torch.from_numpy(e / e.sum(dim, keepdims=True))


@pytest.fixture
def fused():
    """Takes in a provider on the CPU that overrides softmin; with gradients if asked."""
    entered, calls = [], []

    def register(gradients=True, predicate=None, **kernels):
        def run(self, dim, dtype=None):
            calls.append("softmin")
            return softmin(self.detach(), dim, dtype)

        kernel = Kernel(run, (float32, float64), predicate)
        if gradients:

            @kernel.gradients("self")
            def _(needs, grad, dim, result):
                calls.append("backward")
                return (((result * grad).sum(dim, keepdim=True) - grad) * result,)

        backend = Backend(name="fused", device="cpu", version="1", kernels={"softmin": kernel, **kernels}, priority=10)
        entered.append(backends.register(backend, plugin="fused"))
        return calls

    yield register
    for each in entered:
        each.__exit__()


a = np.random.default_rng(0).standard_normal((3, 4))
expected = np.exp(-a) / np.exp(-a).sum(1, keepdims=True)


@pytest.mark.parametrize("gradients", [True, False])
def test_unrecorded_calls(fused, gradients):
    calls = fused(gradients)
    x = torch.tensor(a)
    for result in (F.softmin(x, 1), F.softmin(x, dim=1), F.softmin(dim=1, self=x)):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
    with torch.no_grad():
        F.softmin(torch.tensor(a, requires_grad=True), 1)
    assert calls == ["softmin"] * 4
    with backends.disable("fused"):
        np.testing.assert_allclose(F.softmin(x, 1).numpy(), expected, rtol=1e-12)
    F.softmin(torch.tensor(a).half(), 1)  # a dtype it does not serve
    assert calls == ["softmin"] * 4


def test_a_recorded_call_without_gradients_is_the_bodys(fused):
    calls = fused(gradients=False)
    x = torch.tensor(a, requires_grad=True)
    result = F.softmin(x, 1)
    assert calls == []
    result[:, 0].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected * (expected[:, :1] - (np.arange(4) == 0)), atol=1e-12)
    text = str(backends.explain("softmin", x, 1))
    assert "fused 1 (priority 10): brings no gradient for this call, which is recorded  [" in text
    assert "composite of other operators" in text and backends.explain("softmin", x.detach(), 1).provider == "fused"


def test_a_recorded_call_with_gradients(fused):
    calls = fused()
    x = torch.tensor(a, requires_grad=True)
    explanation = backends.explain("softmin", x, 1)
    with backends.trace() as ran:
        result = F.softmin(x, 1)
    assert explanation.provider == "fused" and explanation.calls == ran.direct()
    assert result.grad_fn.name() == "SoftminBackward0"
    result[:, 0].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected * (expected[:, :1] - (np.arange(4) == 0)), atol=1e-12)
    assert calls == ["softmin", "backward"]


def test_higher_derivatives_come_from_the_body(fused):
    calls = fused()
    x = torch.tensor(a, requires_grad=True)
    assert gradcheck(lambda each: F.softmin(each, 1), (x,)) and gradgradcheck(lambda each: F.softmin(each, 1), (x,))
    assert "softmin" in calls
    calls.clear()
    (first,) = torch.autograd.grad(F.softmin(x, 1)[:, 0].sum(), x, create_graph=True)
    assert calls == ["softmin"] and first.requires_grad


def test_a_predicate_sees_the_operators_arguments(fused):
    seen = []

    def accepts(self, dim, dtype=None):
        seen.append((tuple(self.shape), dim, dtype))
        return dim == 1

    calls = fused(predicate=accepts)
    x = torch.tensor(a)
    F.softmin(x, dim=0)
    F.softmin(x, dim=1)
    assert seen == [((3, 4), 0, None), ((3, 4), 1, None)] and calls == ["softmin"]
    assert "fused 1 (priority 10): declines these arguments" in str(backends.explain("softmin", x, 0))


def test_gradients_of_the_named_arguments_only(fused):
    def norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *_):
        x = input.detach().numpy()
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return torch.from_numpy(y)

    kernel = Kernel(norm, (float64,), lambda input, normalized_shape, weight, *_: weight is None)

    @kernel.gradients("input")
    def _(needs, grads, input, eps):
        assert needs == (True,) and isinstance(grads, (list, torch.Tensor))
        return (input * 0 + 7,)

    fused(layer_norm=kernel)
    x, w = torch.tensor(a, requires_grad=True), torch.ones(4, dtype=float64, requires_grad=True)
    assert backends.explain("layer_norm", x, (4,)).provider == "fused"
    F.layer_norm(x, (4,)).sum().backward()
    assert set(x.grad.reshape(-1).tolist()) == {7.0}
    assert backends.explain("layer_norm", x, (4,), w).provider == "cpu"


def test_tensors_in_lists(fused):
    calls = []

    def stack(tensors, dim=0, *, out=None):
        calls.append(len(tensors))
        return torch.from_numpy(np.stack([each.numpy() for each in tensors], dim))

    fused(stack=Kernel(stack, (int64,)))
    assert torch.stack([torch.tensor([1]), torch.tensor([2])], dim=1).tolist() == [[1, 2]] and calls == [2]
    x = torch.ones(2, requires_grad=True)
    torch.stack([x, x]).sum().backward()
    assert x.grad.tolist() == [2, 2]


def noop(*args):
    return None


def with_gradients(*names, formula):
    kernel = Kernel(noop)
    kernel.gradients(*names)(formula)
    return kernel


TERMS = "gradients of 'softmin' in terms of self, dim, dtype, result, got"
WRONG = [
    ("softmin", with_gradients("selff", formula=lambda needs, grad: None), f"{TERMS} 'selff'"),
    ("softmin", with_gradients("self", formula=lambda needs, grad, axis: None), f"{TERMS} 'axis'"),
    (
        "exp",
        with_gradients("self", formula=lambda needs, grad: None),
        "no gradients for 'exp', which has its own, got those of ('self',)",
    ),
    ("permute", Kernel(noop), "kernels of operators that compute, got one for 'permute', which is a view"),
    ("meshgrid", Kernel(noop), "kernels of operators with a fixed number of arguments, got one for 'meshgrid'"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_descriptions(number):
    name, kernel, text = WRONG[number]
    with pytest.raises(RuntimeError) as caught:
        Backend(name="fused", device="cpu", version="1", kernels={name: kernel}).validate("fancy")
    assert str(caught.value) == f"Plug-in 'fancy', backend 'fused': expected {text}."
