"""Operators with a backward of their own."""

import gc
import weakref

import numpy as np
import pytest

import flambeau
from flambeau.autograd import Function, grad, gradcheck, gradgradcheck
from flambeau.autograd.function import once_differentiable

t = flambeau.tensor


def leaf(*values):
    return t(list(values), dtype=flambeau.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


class Exp(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


class Affine(Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.scale = scale
        return x * scale + shift

    @staticmethod
    def backward(ctx, grad):
        assert ctx.needs_input_grad == (True, False, False)
        return grad * ctx.scale, None, None


class SinCos(Function):
    @staticmethod
    def forward(ctx, x):
        sin, cos = x.sin(), x.cos()
        ctx.save_for_backward(sin, cos)
        return sin, cos

    @staticmethod
    def backward(ctx, ds, dc):
        sin, cos = ctx.saved_tensors
        return ds * cos - dc * sin


class NewStyle(Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (Cube.apply, 1),
        (Exp.apply, 1),
        (lambda x: Affine.apply(x, 2.0, 1), 1),
        (SinCos.apply, 1),
        (lambda x: SinCos.apply(x)[1], 1),
        (NewStyle.apply, 2),
    ],
)
def test_first_and_second_gradients(function, count):
    inputs = tuple(leaf(*np.random.default_rng(i).standard_normal(3)) for i in range(count))
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_third_order_through_saved_results():
    x = leaf(0.5)
    y = Exp.apply(x).sum()
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
    assert np.allclose(y.item(), np.exp(0.5))


def test_what_the_graph_shows():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward" and repr(y).endswith("grad_fn=<CubeBackward>)")
    assert y.grad_fn.saved_tensors[0] is x
    with flambeau.no_grad():
        assert Cube.apply(x).grad_fn is None
    assert Cube.apply(x.detach()).grad_fn is None


def test_backward_twice_and_changed_saved_tensors():
    x = leaf(2.0)
    y = Cube.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"a second time \(CubeBackward\)"):
        y.sum().backward()
    z = x * 1
    y = Cube.apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*saved by Cube"):
        y.sum().backward()


def test_results_do_not_keep_themselves_alive():
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(leaf(1.0))
        held = weakref.ref(y.grad_fn)
        del y
        assert held() is None
    finally:
        gc.enable()


class Counting(Function):
    @staticmethod
    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        order = x.argsort()
        values = x[order]
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)
        return values, order, x * 2

    @staticmethod
    def backward(ctx, dv, do, dx):
        (order,) = ctx.saved_tensors
        if dx is None:
            return flambeau.zeros_like(dv).index_put((order,), dv), None
        return flambeau.zeros_like(dv).index_put((order,), dv) + 2 * dx, None


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_without_gradient(materialize):
    x = leaf(3.0, 1.0, 2.0)
    values, order, _ = Counting.apply(x, materialize)
    assert values.requires_grad and not order.requires_grad
    (values * t([1.0, 10.0, 100.0], dtype=flambeau.float64)).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_floating_outputs_can_be_marked_too():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            constant = x.detach() * 5
            ctx.mark_non_differentiable(constant)
            return x * 2, constant

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    a, b = Two.apply(leaf(1.0))
    assert a.requires_grad and not b.requires_grad


class Double_(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_writing_into_an_argument():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = Double_.apply(y)
    assert z is y and y.tolist() == [6.0, 12.0] and y.grad_fn.name() == "Double_Backward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_writing_into_a_view():
    x = leaf(1.0, 2.0)
    y = x * 3
    Double_.apply(y[0])
    (y * t([1.0, 10.0], dtype=flambeau.float64)).sum().backward()
    assert x.grad.tolist() == [6.0, 30.0]


def test_writing_refuses_leaves_and_forgotten_results():
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad is being used.*\(Double_"):
        Double_.apply(leaf(1.0))

    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned"):
        Forgets.apply(leaf(1.0) * 1)


def test_an_argument_passed_through_is_another_tensor():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(1.0)
    y = Identity.apply(x)
    assert y is not x and x.is_leaf and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.item() == 7.0


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return t(2 * x.detach().numpy()) * grad


def test_once_differentiable():
    x = leaf(3.0)
    assert grad(Once.apply(x).sum(), x)[0].item() == 6.0
    (first,) = grad(Once.apply(x).sum(), x, create_graph=True)
    assert first.item() == 6.0 and first.requires_grad
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once"):
        first.sum().backward()


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        (lambda g: (g,), RuntimeError, r"BadBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, None, g), RuntimeError, r"\(expected 2, got 3\)"),
        (lambda g: (g, g), RuntimeError, "gradient different from None at position 1"),
        (lambda g: (3.0, None), TypeError, "expected a Tensor or None as gradient 0, got float"),
        (lambda g: (g.new_zeros(5), None), RuntimeError, r"invalid gradient: got shape \[5\] but expected \[2\]"),
    ],
)
def test_what_backward_may_return(returned, kind, message):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return returned(grad)

    with pytest.raises(kind, match=message):
        Bad.apply(leaf(1.0, 2.0) * 1, 2).sum().backward()


def test_extra_nones_and_no_gradient_are_fine():
    class Lazy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None, None, None

    x = leaf(1.0)
    Lazy.apply(x).sum().backward()
    assert x.grad is None


def test_old_style_functions_say_what_to_do():
    class Old(Function):
        def forward(self, x):
            return x

    with pytest.raises(RuntimeError, match=r"(?s)Legacy autograd function.*call Old.apply"):
        Old()(leaf(1.0))
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Function.apply(leaf(1.0))

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the backward function"):
        Half.apply(leaf(1.0)).sum().backward()


def test_only_tensors_can_be_saved():
    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)

    with pytest.raises(TypeError, match="can only save tensors, got int 3"):
        Saves.apply(leaf(1.0))


def test_none_can_be_saved_and_any_attribute_set():
    class Notes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.saved, ctx.op, ctx.note = 1, 2, "three"
            ctx.save_for_backward(None, x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert (ctx.saved, ctx.op, ctx.note) == (1, 2, "three")
            assert ctx.saved_tensors[0] is None
            return grad * 2

    x = leaf(1.0)
    Notes.apply(x).sum().backward()
    assert x.grad.item() == 2.0


def test_once_differentiable_raises_also_where_a_gradient_may_be_left_out():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return 3 * grad * ctx.saved_tensors[0] ** 2

    x = flambeau.tensor([2.0], requires_grad=True)
    (first,) = flambeau.autograd.grad(Cube.apply(x), x, create_graph=True)
    assert first.tolist() == [12]
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        flambeau.autograd.grad(first, x, allow_unused=True)
