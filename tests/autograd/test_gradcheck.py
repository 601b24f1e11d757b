"""gradcheck accepts what is right and finds what is wrong, and says where."""

import pytest

import flambeau
from flambeau.autograd import Function, GradcheckError, gradcheck, gradgradcheck

t = flambeau.tensor


def leaf(*values, dtype=flambeau.float64):
    return t(list(values), dtype=dtype, requires_grad=True)


class Wrong(Function):
    """Right but for one element."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        wrong = 2 * x * grad
        return wrong + flambeau.tensor([0, 0, 0.25], dtype=x.dtype) * grad


class WrongSecond(Function):
    """The first gradient is right and has no history."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach()
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.x**2 * grad


def test_right_gradients():
    x, y = leaf(0.5, -1.0, 2.0), leaf(1.5, 0.5, -0.5)
    for fast in (False, True):
        assert gradcheck(lambda x, y: x * y + x.exp(), (x, y), fast_mode=fast)
        assert gradcheck(lambda x, y: (x.sin(), (x * y).sum()), (x, y), fast_mode=fast)
        assert gradgradcheck(lambda x, y: (x * x * y, x.sin()), (x, y), fast_mode=fast)
    assert gradgradcheck(lambda x: (x * x)[None, :].t(), x, gen_non_contig_grad_outputs=True)
    assert gradcheck(lambda x, n: x * n, (x, 3))
    assert gradcheck(lambda x: x.sum(), leaf(2.0).detach().reshape(()).requires_grad_())


def test_values_are_as_before():
    x = leaf(0.1, 0.2)
    gradcheck(lambda x: x * x, x)
    assert x.tolist() == [0.1, 0.2] and x.grad is None and x._version == 0


def test_wrong_gradients_are_located():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(Wrong.apply, x)
    text = str(caught.value)
    assert "Jacobian mismatch for output 0 with respect to input 0: 1 of 9 elements differ." in text
    assert "d output[2] / d input[2] is 6.25 by backward and 6 by differences" in text
    assert gradcheck(Wrong.apply, x, raise_exception=False) is False
    with pytest.raises(GradcheckError, match="along a random direction"):
        gradcheck(Wrong.apply, x, fast_mode=True)


def test_first_gradients_that_lost_their_history_are_found():
    x = leaf(1.0, 2.0)
    assert gradcheck(WrongSecond.apply, x)
    with pytest.raises(GradcheckError, match="While checking second gradients: Jacobian mismatch for output 0"):
        gradgradcheck(WrongSecond.apply, x)
    assert gradgradcheck(WrongSecond.apply, x, raise_exception=False) is False


def test_outputs_that_hide_their_dependence_are_found():
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: (x * 2).detach(), leaf(1.0))
    assert gradcheck(lambda x: flambeau.ones(2, dtype=flambeau.float64), leaf(1.0))
    assert gradcheck(lambda x: (x * 2, x.detach()), leaf(1.0))


def test_random_backwards_are_found():
    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * (1 + 1e-9 * flambeau.rand(1, dtype=flambeau.float64))

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Noisy.apply, leaf(1.0))
    assert gradcheck(Noisy.apply, leaf(1.0), nondet_tol=1e-6)


def test_nan_and_infinity_agree_with_themselves_only():
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: x.sqrt(), leaf(0.0))


@pytest.mark.filterwarnings("ignore:gradcheck")
def test_arguments():
    with pytest.raises(ValueError, match="at least one input with requires_grad=True"):
        gradcheck(lambda x: x, leaf(1.0).detach())
    with pytest.raises(ValueError, match="elements of input 0 share memory"):
        gradcheck(lambda x: x * 2, leaf(1.0).detach().expand(3).requires_grad_())


def test_single_precision_is_warned_about():
    with pytest.warns(UserWarning, match="input 0 is float32"):
        gradcheck(lambda x: x * 2, leaf(1.0, dtype=flambeau.float32), eps=1e-2)


def test_views_as_inputs():
    base = t([[1.0, 2.0], [3.0, 4.0]], dtype=flambeau.float64)
    assert gradcheck(lambda x: x * x, base.t().detach().requires_grad_())
    assert gradcheck(lambda x: x * x, base[:, 1].detach().requires_grad_())
