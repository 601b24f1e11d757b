"""Operators that C++ declares: schema, dispatch, gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.dispatch.operator import operators
from flambeau.library import CustomOp, opcheck


@pytest.fixture(autouse=True)
def known(declared):
    """The module's operators are among all operators while a test of them runs, and no longer."""
    operators.update({each.name: each.op for each in vars(declared).values() if isinstance(each, CustomOp)})
    yield
    for name in [each for each in operators if "::" in each]:
        del operators[name]


@pytest.fixture
def x():
    return torch.tensor([-2.0, -0.5, 0.0, 0.3, 4.0], dtype=torch.float64, requires_grad=True)


def test_the_schema_is_the_signature(declared):
    assert isinstance(declared.softclip, CustomOp) and declared.softclip.name == "declared::softclip"
    schema = str(declared.joined.schema).replace("collections.abc.Sequence", "list")  # as pybind11 names it
    assert schema == "declared::joined(xs: list[Tensor], bias: Tensor | None = None) -> Tensor"
    assert declared.parts.schema.several and declared.doubled_.schema.mutated == ("x",)
    assert "A soft clip." in declared.softclip.__doc__


def test_values(declared, x):
    a = x.detach().numpy()
    np.testing.assert_allclose(declared.softclip(x, limit=2.0).detach().numpy(), 2 * np.tanh(a / 2))
    np.testing.assert_allclose(declared.softclip(x.float()).detach().numpy(), np.tanh(a), rtol=1e-6)
    product, raised = declared.parts(x, x, power=3)
    np.testing.assert_allclose(product.detach().numpy(), a * a)
    np.testing.assert_allclose(raised.detach().numpy(), a**3)
    np.testing.assert_allclose(declared.joined([x.detach(), x.detach()], x.detach()).numpy(), 3 * a)
    y = torch.ones(2, 3).t()
    assert declared.doubled_(y) is None and y.tolist() == [[2, 2], [2, 2], [2, 2]]


def test_gradients(declared, x):
    y = (x.detach() + 1).requires_grad_()
    assert gradcheck(declared.softclip, (x, 2.0)) and gradgradcheck(declared.softclip, (x, 2.0))
    assert gradcheck(declared.parts, (x, y, 3)) and gradgradcheck(declared.parts, (x, y, 3))
    assert gradcheck(declared.cube, (x,))


def test_it_passes_the_checks_of_custom_operators(declared, x):
    for op, args in ((declared.softclip, (x, 2.0)), (declared.cube, (x,)), (declared.opaque, (x.detach(),))):
        assert set(opcheck(op, args).values()) == {"SUCCESS"}


def test_a_backward_by_pointers_is_not_differentiated_again(declared, x):
    (grad,) = torch.autograd.grad(declared.cube(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(grad.detach().numpy(), 3 * x.detach().numpy() ** 2)
    message = (
        r"declared::cube: its backward was not composed of operators, so it has no derivative of its own\.\nCompose"
    )
    with pytest.raises(RuntimeError, match=message):
        grad.sum().backward()
    (grad,) = torch.autograd.grad(declared.cube(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=message):
        torch.autograd.grad(grad.sum(), x, allow_unused=True)


def test_without_a_backward_nothing_is_detached_in_silence(declared, x):
    with pytest.raises(RuntimeError, match=r"the derivative for 'arg0' of declared::opaque is not implemented"):
        declared.opaque(x).sum().backward()


def test_shapes_are_checked_before_anything_runs(declared, x):
    with pytest.raises(
        RuntimeError,
        match=r"expected shapes \(n\), \(n\) -> \(n\), \(n\), got x \[5\], y \[2\]:\nn is 2 in y and 5 in x",
    ):
        declared.parts(x, x[:2])


def test_a_kernel_for_another_device(declared):
    pytest.importorskip("flambeau_numpy_device")
    with torch.backends.trace() as calls:
        result = declared.opaque(torch.tensor([1.0, 2.0], device="numpy"))
    assert result.device.type == "numpy" and result.tolist() == [2, 3]
    assert calls.calls[0].provider == "declared::opaque" and calls.calls[0].device == "numpy"


def test_an_exporter_hangs_its_part_on_it(declared):
    @declared.softclip.register_export("text")
    def write(limit):
        return f"softclip({limit})"

    assert declared.softclip.exports["text"](2) == "softclip(2)"


def test_a_backward_that_does_not_fit(build):
    source = """
    at::Tensor twice(const at::Tensor& x, double by) { return x * by; }
    at::Tensor twice_backward(const at::Tensor& grad) { return grad * 2; }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { FLAMBEAU_OPERATOR(m, unfit, twice, twice_backward); }
    """
    with pytest.raises(
        TypeError,
        match=r"unfit::twice: its backward has 1 parameters, expected 3: the gradient of each result \(1\) and",
    ):
        build("unfit", source)


def test_a_backward_that_returns_too_few(build, x):
    source = """
    at::Tensor product(const at::Tensor& x, const at::Tensor& y) { return x * y; }
    at::Tensor product_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& y) { return grad * y; }
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { FLAMBEAU_OPERATOR(m, few, product, product_backward); }
    """
    op = build("few", source).product
    with pytest.raises(
        RuntimeError, match="few::product: its backward returned 1 gradients, expected 2, of arg0, arg1"
    ):
        op(x, x).sum().backward()
