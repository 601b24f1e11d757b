"""Custom operators: schema, kernels for devices, backward, shapes, and what ``opcheck`` finds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

import flambeau
from flambeau import Tensor
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.library import custom_op, opcheck
from flambeau.library.check import CheckError
from flambeau.library.schema import ShapeRule

x3 = np.array([0.5, -1.0, 2.0])


@pytest.fixture
def define():
    """``custom_op`` whose operators are taken away after the test."""
    made = []

    def declare(name, **options):
        def keep(function):
            made.append(custom_op(name, **options)(function))
            return made[-1]

        return keep

    yield declare
    for each in made:
        each.remove()


def cube(x: Tensor, scale: float = 1.0) -> Tensor:
    """``scale * x ** 3`` by NumPy: nothing that autograd could see through."""
    return flambeau.from_numpy(x.numpy() ** 3 * x.numpy().dtype.type(scale))


def test_call_and_keywords(define):
    op = define("test::cube")(cube)
    for result in (op(flambeau.tensor(x3), 2.0), op(scale=2.0, x=flambeau.tensor(x3))):
        np.testing.assert_array_equal(result.numpy(), 2 * x3**3)
    np.testing.assert_array_equal(op(flambeau.tensor(x3)).numpy(), x3**3)
    assert op.__name__ == "cube" and op.__doc__ == cube.__doc__ and op.name == "test::cube"
    assert repr(op) == "<custom operator test::cube(x: Tensor, scale: float = 1.0) -> Tensor>"


def test_without_backward_differentiation_raises_and_never_detaches(define):
    op = define("test::cube")(cube)
    x = flambeau.tensor(x3, requires_grad=True)
    y = op(x)
    assert y.requires_grad and repr(y.grad_fn) == "<CubeBackward0>"
    message = (
        "the derivative for 'x' of test::cube is not implemented.\n"
        "Detach it (x.detach()) if its gradient is not wanted."
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        y.sum().backward()
    assert x.grad is None


def test_formulas_differentiate_twice(define):
    op = define("test::cube")(cube)
    op.gradient(x=lambda grad, x, scale: grad * 3 * scale * x * x)
    x = flambeau.tensor(x3, requires_grad=True)
    assert gradcheck(lambda x: op(x, 0.5), [x]) and gradgradcheck(lambda x: op(x, 0.5), [x])


def test_a_formula_given_after_use_counts(define):
    op = define("test::cube")(cube)
    x = flambeau.tensor(x3, requires_grad=True)
    op(x)
    op.gradient(x=lambda grad, x: grad * 3 * x * x)
    op(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x3**2)


def join(parts: Sequence[Tensor], factor: float, shift: Tensor | None = None) -> tuple[Tensor, Tensor]:
    total = sum(np.sum(each.numpy()) for each in parts) * factor
    moved = total if shift is None else total + shift.numpy()
    return flambeau.tensor(total), flambeau.tensor(moved)


def test_lists_optionals_and_several_results_with_a_ctx(define):
    op = define("test::join")(join)
    assert op.op.parameters == ("parts", "shift", "factor")

    def setup(ctx, inputs, output):
        ctx.shapes, ctx.factor, ctx.wanted = [each.shape for each in inputs[0]], inputs[1], ctx.needs_input_grad

    def backward(ctx, total, moved):
        assert ctx.wanted == ([True, False], False, True)
        return [(total + moved).expand(shape) * ctx.factor for shape in ctx.shapes], None, moved

    op.register_autograd(backward, setup_context=setup)
    a, b = flambeau.tensor(x3, requires_grad=True), flambeau.tensor([1.0, 2.0], dtype=flambeau.float64)
    shift = flambeau.tensor(4.0, dtype=flambeau.float64, requires_grad=True)
    first, second = op([a, b], 3.0, shift)
    assert first.item() == 13.5 and second.item() == 17.5
    (first * 2 + second).backward()
    np.testing.assert_array_equal(a.grad.numpy(), [9.0, 9.0, 9.0])
    assert shift.grad.item() == 1.0 and b.grad is None
    with flambeau.no_grad():
        assert op([a], 1.0)[0].grad_fn is None


def test_a_backward_with_the_wrong_number_of_gradients(define):
    op = define("test::cube")(cube)
    op.register_autograd(lambda ctx, grad: grad)
    y = op(flambeau.tensor(x3, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"test::cube: its backward returned 1 gradients, expected 2\.\n"):
        y.sum().backward()


def test_writing_into_an_argument(define):
    @define("test::scale_", mutates_args=("x",))
    def scale_(by: float, x: Tensor) -> None:
        x.mul_(by)

    scale_.gradient(x=lambda grad, by: grad * by)
    leaf = flambeau.tensor(x3, requires_grad=True)
    x = leaf * 1
    assert scale_(3.0, x) is None
    np.testing.assert_array_equal(x.detach().numpy(), 3 * x3)
    x.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [3.0, 3.0, 3.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        scale_(3.0, leaf)
    np.testing.assert_array_equal(leaf.detach().numpy(), x3)
    squared = leaf * 1
    product = squared * squared
    scale_(2.0, squared)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    assert opcheck(scale_, (2.0, leaf)) == dict.fromkeys(
        ("schema", "gradient", "dtype", "strides", "empty", "fake"), "SUCCESS"
    )
    with pytest.raises(RuntimeError, match="test::scale_ writes into 'x': its backward cannot be a function of ctx"):
        scale_.register_autograd(lambda ctx, grad: (None, grad))


def test_kernels_belong_to_devices_dtypes_and_predicates(define):
    @define("test::which", device_types=())
    def which(x: Tensor) -> Tensor:
        raise AssertionError("never called")

    x = flambeau.ones(2)
    with pytest.raises(NotImplementedError) as caught:
        which(x)
    assert '"test::which" not implemented for float32 on cpu' in str(caught.value)
    which.register_kernel("cpu", lambda x: x.new_full(x.shape, 1), dtypes=[flambeau.float32])

    @which.register_kernel("cpu", predicate=lambda x: x.shape[0] > 2, priority=1)
    def large(x):
        return x.new_full(x.shape, 2)

    assert which(x)[0].item() == 1 and which(flambeau.ones(3))[0].item() == 2
    assert which(flambeau.ones(3, dtype=flambeau.int64))[0].item() == 2
    with pytest.raises(RuntimeError, match="both serve test::which on cpu"):
        which.register_kernel("cpu", lambda x: x)
    assert "test::which" in str(flambeau.explain("test::which", x))


@pytest.mark.parametrize(
    "kernel, message",
    [
        (
            lambda x: x,
            "test::bad: its kernel returned an argument, of shape [3].\nReturn new memory, for example a clone().",
        ),
        (lambda x: x[1:], "test::bad: its kernel returned a view of an argument, of shape [2].\nReturn new memory"),
        (lambda x: 3.0, "test::bad: expected its kernel to return a Tensor, got float 3.0."),
    ],
)
def test_results_are_tensors_in_new_memory(define, kernel, message):
    @define("test::bad")
    def bad(x: Tensor) -> Tensor:
        return kernel(x)

    with pytest.raises((RuntimeError, TypeError), match=re.escape(message)):
        bad(flambeau.tensor(x3))


def test_calls_that_do_not_fit_the_signature(define):
    op = define("test::cube")(cube)
    signature = "\nIts signature is test::cube(x: Tensor, scale: float = 1.0) -> Tensor."
    for args, kwargs, what in [
        ((), {}, "missing a required argument: 'x'."),
        ((flambeau.ones(1), 1.0, 2.0), {}, "too many positional arguments."),
        ((flambeau.ones(1),), {"size": 3}, "got an unexpected keyword argument 'size'."),
        ((3.0,), {}, "expected a Tensor as 'x', got float 3.0."),
    ]:
        with pytest.raises(TypeError) as caught:
            op(*args, **kwargs)
        assert str(caught.value) == f"test::cube: {what}{signature}"


def no_annotation(x, y: Tensor) -> Tensor: ...
def varargs(*x: Tensor) -> Tensor: ...
def no_tensor(x: float) -> Tensor: ...
def no_result(x: Tensor): ...


@pytest.mark.parametrize(
    "name, function, options, message",
    [
        ("cube", cube, {}, "Expected an operator's name like 'mylib::scale', got 'cube'."),
        ("a::b::c", cube, {}, "Expected an operator's name like 'mylib::scale', got 'a::b::c'."),
        ("a::f", no_annotation, {}, "a::f: the argument 'x' has no annotation.\nSay what it is: Tensor,"),
        ("a::f", varargs, {}, "a::f: *x is not a fixed argument.\nName every argument of the operator."),
        ("a::f", no_tensor, {}, "a::f: an operator takes at least one Tensor, which says on what device it runs; got"),
        ("a::f", no_result, {}, "a::f: expected the annotation -> Tensor, or -> tuple[Tensor, ...], got"),
        (
            "a::f",
            cube,
            {"mutates_args": ("y",)},
            "a::f: mutates_args names 'y', which is no Tensor argument of a::f(x: Tensor",
        ),
        ("a::f", cube, {"mutates_args": "x"}, "a::f: an operator that writes into its argument returns nothing, got"),
        ("a::f", cube, {"shapes": "(n -> (n)"}, "a::f: cannot read the shapes '(n -> (n)'.\nWrite them as"),
        (
            "a::f",
            cube,
            {"shapes": "(n), (n) -> (n)"},
            "a::f: shapes '(n), (n) -> (n)' describe 2 arguments; the operator has 1",
        ),
    ],
)
def test_declarations_that_cannot_be(name, function, options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        custom_op(name, function, **options)


def test_declaring_again_replaces(define):
    define("test::cube")(cube)

    @define("test::cube")
    def cube_of_zero(x: Tensor) -> Tensor:
        return x.new_zeros(x.shape)

    assert cube_of_zero(flambeau.tensor(x3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "rule, shapes, expected",
    [
        ("(n, k), (k, m) -> (n, m)", [(2, 3), (3, 4)], [(2, 4)]),
        ("(n, k), (k, m) -> (n, m)", [(5, 1, 2, 3), (7, 3, 4)], [(5, 7, 2, 4)]),
        ("(n), () -> (), (n)", [(6, 4), ()], [(6,), (6, 4)]),
        ("(3), (n, 3) -> (n)", [(3,), (0, 3)], [(0,)]),
        ("(n, k), (k, m) -> (n, m)", [(2, 3), (4, 4)], "a [2, 3], b [4, 4]:\nk is 4 in b and 3 in a."),
        ("(n, k), (k, m) -> (n, m)", [(3,), (3, 4)], "a [3], b [3, 4]:\na has 1 dimensions, needs 2."),
        ("(3), (n, 3) -> (n)", [(2,), (5, 3)], "a [2], b [5, 3]:\n3 is 2 in a and 3 in the operator."),
        ("(n), (n) -> (n)", [(2, 4), (3, 4)], "a [2, 4], b [3, 4]:\n[2] and [3] before the named dimensions do not broadcast."),
    ],
)  # fmt: skip
def test_shape_rules(rule, shapes, expected):
    checked = ShapeRule("test::op", rule)
    if isinstance(expected, list):
        assert checked.check(["a", "b"], shapes) == expected
        return
    with pytest.raises(RuntimeError) as caught:
        checked.check(["a", "b"], shapes)
    assert str(caught.value) == f"test::op: expected shapes {rule}, got {expected}"


def test_shapes_are_checked_before_the_kernel(define):
    @define("test::inner", shapes="(n), (n) -> ()")
    def inner(a: Tensor, b: Tensor) -> Tensor:
        return flambeau.tensor(float(np.vdot(a.numpy(), b.numpy())))

    assert inner(flambeau.ones(3), flambeau.ones(3)).item() == 3
    with pytest.raises(RuntimeError, match="n is 4 in b and 3 in a"):
        inner(flambeau.ones(3), flambeau.ones(4))


def _check(define, function, message, *args, check=None, setup=lambda op: None, **options):
    op = define("test::faulty", **options)(function)
    setup(op)
    with pytest.raises(AssertionError, match=re.escape(message)):
        opcheck(op, args)
    outcome = opcheck(op, args, raise_exception=False)
    assert message in outcome.pop(check) and set(outcome.values()) <= {"SUCCESS"}


def test_opcheck_finds_each_fault(define):
    x = flambeau.tensor(x3)

    def writes(x: Tensor) -> Tensor:
        result = x * 2
        x.zero_()
        return result

    _check(define, writes, "test::faulty: its kernel wrote into 'x'.", x, check="schema")

    def plain(x: Tensor) -> Tensor:
        return x * 2

    tracked = flambeau.tensor(x3, requires_grad=True)
    _check(define, plain, "an argument requires grad, and there is no backward.", tracked, check="gradient")
    _check(
        define, plain, "test::faulty, gradient:", tracked, check="gradient",
        setup=lambda op: op.gradient(x=lambda grad: grad * 3),
    )  # fmt: skip

    def ignores_strides(x: Tensor) -> Tensor:
        from flambeau_cpu._kernels import ffi

        flat = np.frombuffer(ffi.buffer(x.memory, x.numel() * x.dtype.itemsize), x.numpy().dtype)
        return flambeau.from_numpy(flat.reshape(x.shape) * 2)

    _check(define, ignores_strides, "strided tensors at an offset: result 0 is", x, check="strides")

    def knows_float64_only(x: Tensor) -> Tensor:
        return x * 2 if x.dtype is flambeau.float64 else x * 0

    _check(define, knows_float64_only, "as float16: result 0 is 0.0 at [0], expected 1.0", x, check="dtype")
    _check(
        define, plain, "result 0 has the shape [3], its fake says [1]", x, check="fake",
        setup=lambda op: op.register_fake(lambda x: x.new_zeros(1)),
    )  # fmt: skip
    _check(define, plain, "the rule (n) -> () says []", x, check="fake", shapes="(n) -> ()")


def test_opcheck_names_its_checks(define):
    op = define("test::cube")(cube)
    with pytest.raises(CheckError, match="opcheck knows schema, gradient, dtype, strides, empty, fake; got 'speed'"):
        opcheck(op, (flambeau.ones(1),), test_utils="speed")


def test_an_exporter_finds_its_hook(define):
    op = define("test::cube")(cube)

    @op.register_export("onnx")
    def symbolic(graph, x, scale):
        return ("Pow", x, 3)

    assert op.exports["onnx"] is symbolic
