"""The backward pass: what flows, what is kept, what is refused."""

import gc
import threading
import weakref

import numpy as np
import pytest

import flambeau
from flambeau.autograd import backward, grad
from flambeau.errors import AutogradError

t = flambeau.tensor


def leaf(*values, **options):
    return t(list(values), dtype=flambeau.float64, requires_grad=True, **options)


# ---------------------------------------------------------------- depth and order


def test_very_deep_chains_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y * 1.00001
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 1.00001**100_000, rtol=1e-9)
    y = x
    for _ in range(100_000):
        y = y + 1
    del y  # freeing a deep graph needs none either


def test_wide_graphs_accumulate_in_one_visit_of_each_node():
    x = leaf(2.0)
    visits = []
    y = x * 3
    y.register_hook(lambda g: visits.append(g.item()))
    total = y
    for _ in range(50):
        total = total + y
    total.sum().backward()
    assert visits == [51.0] and x.grad.tolist() == [153.0]


def test_doubling_dag_is_linear_in_its_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
    y.sum().backward()
    assert x.grad.item() == 2.0**60


# ---------------------------------------------------------------- roots and results


def test_backward_adds_to_grad():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7, 7]
    x.grad = None
    (x * 2).backward(t([1.0, 10.0], dtype=flambeau.float64))
    assert x.grad.tolist() == [2, 20]


def test_backward_of_several_tensors():
    x = leaf(1.0, 2.0)
    backward([x.sum(), x * 2], [None, t([1.0, 1.0], dtype=flambeau.float64)])
    assert x.grad.tolist() == [3, 3]


def test_a_leaf_is_its_own_root():
    x = leaf(3.0)
    x.sum().backward()
    x.backward(t([5.0], dtype=flambeau.float64))
    assert x.grad.tolist() == [6.0]


def test_grad_leaves_grad_alone():
    x, y = leaf(1.0), leaf(2.0)
    assert [each.item() for each in grad((x * x * y).sum(), [x, y])] == [4.0, 1.0]
    assert x.grad is None and y.grad is None


def test_grad_of_what_is_in_between():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    dy, dx = grad(z, [y, x])
    assert (dy.item(), dx.item()) == (8.0, 32.0)


def test_gradient_of_an_input_for_itself():
    x = leaf(2.0)
    assert grad(x.sum(), x)[0].item() == 1.0
    y = x * 3
    assert grad(y, y, t([4.0], dtype=flambeau.float64))[0].item() == 4.0


def test_gradients_take_their_tensor_s_dtype_and_shape():
    x = flambeau.ones(3, 1, dtype=flambeau.float32, requires_grad=True)
    y = flambeau.ones(4, dtype=flambeau.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype is flambeau.float32 and x.grad.tolist() == [[4.0]] * 3
    assert y.grad.dtype is flambeau.float64 and y.grad.tolist() == [3.0] * 4


def test_two_leaves_never_share_a_gradient():
    x, y = leaf(1.0), leaf(1.0)
    (x + y).sum().backward()
    x.grad.add_(1)
    assert y.grad.item() == 1.0
    seed = t([1.0], dtype=flambeau.float64)
    z = leaf(1.0)
    z.backward(seed)
    z.grad.add_(1)
    assert seed.item() == 1.0


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: (x * 2).backward(), RuntimeError, r"created only for scalar outputs, got shape \[2\]"),
        (lambda x: x.detach().backward(), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda x: (x * 2).backward(t([1.0])), RuntimeError, r"grad_output\[0\] has a shape of \[1\]"),
        (lambda x: backward([x.sum()], [None, None]), RuntimeError, "got 1 tensors and 2 gradients"),
        (lambda x: backward(3), TypeError, "not iterable"),
        (lambda x: backward([3]), TypeError, "expect tensors, got int"),
        (lambda x: grad(x.sum(), x.detach()), RuntimeError, "One of the differentiated Tensors does not require grad"),
        (lambda x: grad(x.sum(), leaf(1.0)), RuntimeError, r"not have been used.*\nSet allow_unused=True"),
        (lambda x: grad(x.sum(), x, only_inputs=False), ValueError, "only_inputs=False"),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(leaf(1.0, 2.0))


def test_unused_inputs_are_none_when_allowed():
    x, y = leaf(1.0), leaf(1.0)
    dx, dy = grad((x * 2).sum(), [x, y], allow_unused=True)
    assert dx.item() == 2 and dy is None


def test_an_error_in_a_formula_names_the_operator():
    x = leaf(1.0)

    def bad(grad):
        raise ValueError("inside")

    y = x * 2
    y.register_hook(bad)
    with pytest.raises(ValueError, match="inside"):
        y.sum().backward()


# ---------------------------------------------------------------- retaining and freeing


def test_a_second_backward_must_be_asked_for():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12.0
    with pytest.raises(AutogradError, match=r"(?s)backward through the graph a second time.*retain_graph=True"):
        y.backward()


def test_a_graph_that_saved_nothing_can_run_again():
    x = leaf(1.0)
    y = x + 1
    for _ in range(2):
        y.backward(flambeau.ones(1, dtype=flambeau.float64))
    assert x.grad.item() == 2.0


def test_saved_tensors_go_as_the_pass_goes():
    x = leaf(*range(10))
    seen = []
    a = x * x
    b = a * a
    held = weakref.ref(b)
    c = b * b
    del b
    assert held() is not None
    a.register_hook(lambda g: seen.append(held() is None))
    c.sum().backward()
    assert seen == [True]


def test_graphs_have_no_cycles():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x.exp() * x).tanh().sum()
        node = weakref.ref(y.grad_fn)
        y.backward()
        del y
        assert node() is None
    finally:
        gc.enable()


def test_results_hold_no_history_that_nobody_needs():
    x = leaf(1.0)
    y = (x * 2).detach()
    assert not y.requires_grad and y.grad_fn is None
    with flambeau.no_grad():
        assert (x * 2).grad_fn is None


# ---------------------------------------------------------------- higher orders


def test_third_derivatives():
    x = leaf(0.3, -1.2)
    y = (x.sin() * x.exp()).sum()
    first = grad(y, x, create_graph=True)[0]
    second = grad(first.sum(), x, create_graph=True)[0]
    third = grad(second.sum(), x)[0]
    a = x.detach().numpy()
    assert np.allclose(first.detach().numpy(), np.exp(a) * (np.sin(a) + np.cos(a)))
    assert np.allclose(second.detach().numpy(), 2 * np.exp(a) * np.cos(a))
    assert np.allclose(third.numpy(), 2 * np.exp(a) * (np.cos(a) - np.sin(a)))


def test_backward_with_create_graph_gives_grads_with_history():
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    penalty = (x.grad**2).sum()
    assert np.allclose(grad(penalty, x)[0].item(), 2 * 27 * 18)


def test_backward_inside_of_no_grad_and_of_backward():
    x = leaf(2.0)
    y = (x * x).sum()
    with flambeau.no_grad():
        y.backward()
    assert x.grad.item() == 4.0

    def inner(g):
        z = leaf(5.0)
        with flambeau.enable_grad():
            (z * z).sum().backward()
        return g * z.grad

    x.grad = None
    y = x * 1
    y.register_hook(inner)
    y.sum().backward()
    assert x.grad.item() == 10.0


# ---------------------------------------------------------------- hooks


def test_hooks_see_and_replace_gradients_in_order():
    x = leaf(1.0)
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append(("a", g.item())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("c", g.item())))
    y.sum().backward(retain_graph=True)
    assert seen == [("a", 1.0), ("c", 10.0)] and x.grad.item() == 20.0
    first.remove()
    first.remove()
    y.sum().backward()
    assert seen[2:] == [("c", 10.0)]


def test_hooks_on_leaves_and_as_contexts():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 3):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.item() == 4.0


def test_hooks_refuse():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        x.detach().register_hook(print)
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="A gradient hook returns a Tensor or None, got int"):
        (x * 1).sum().backward()
    for made in (leaf(1.0, 2.0), leaf(1.0, 2.0) * 1):
        made.register_hook(lambda g: g.sum())
        with pytest.raises(RuntimeError, match=r"a gradient of the same shape: expected \[2\], got \[\]"):
            (made * 1).sum().backward()


def test_retain_grad():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.item() == 3.0 and x.grad.item() == 12.0
    x.retain_grad()
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        x.detach().retain_grad()


# ---------------------------------------------------------------- the graph as one sees it


def test_what_a_graph_shows():
    x = leaf(1.0)
    y = x * 2
    z = y + x
    assert z.grad_fn.name() == "AddBackward0"
    (first, second) = z.grad_fn.next_functions
    assert first == (y.grad_fn, 0)
    assert repr(second[0]) == "<AccumulateGrad>" and second[0].variable is x
    assert y.grad_fn.next_functions[1] == (None, 0)
    assert x.is_leaf and not y.is_leaf and x.grad_fn is None


def test_requires_grad_can_be_changed_on_leaves_only():
    x = leaf(1.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    assert not x.requires_grad_(False).requires_grad
    with pytest.raises(RuntimeError, match=r"only Tensors of floating point.*can require gradients, got int64"):
        t([1]).requires_grad_()


def test_modes():
    x = leaf(1.0)

    @flambeau.no_grad()
    def silent():
        return x * 2

    assert not silent().requires_grad
    with flambeau.no_grad():
        with flambeau.enable_grad():
            assert (x * 2).requires_grad
        assert not flambeau.is_grad_enabled()
    flambeau.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        flambeau.set_grad_enabled(True)
    with flambeau.set_grad_enabled(False):
        assert not flambeau.is_grad_enabled()
    assert flambeau.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), flambeau.no_grad():
        raise ZeroDivisionError
    assert flambeau.is_grad_enabled()


# ---------------------------------------------------------------- threads


def test_modes_belong_to_threads():
    seen = []
    with flambeau.no_grad():
        thread = threading.Thread(target=lambda: seen.append(flambeau.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_many_threads_share_leaves():
    x = leaf(1.0, 2.0)
    errors = []

    def work():
        try:
            for _ in range(200):
                (x * x).sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert x.grad.tolist() == [2.0 * 1600, 4.0 * 1600]


def test_a_gradient_that_repeats_the_one_given_knows_whose_memory_it_reads():
    x = flambeau.ones(3, requires_grad=True)
    given = flambeau.tensor(2.0)
    (repeated,) = grad(x.sum(), x, given)
    np.testing.assert_array_equal(repeated.numpy(), [2, 2, 2])
    weight = flambeau.ones(3, requires_grad=True)
    product = (weight * repeated).sum()
    given.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: float32 tensor of shape \[3\]"):
        product.backward()
