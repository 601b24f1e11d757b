"""The C++ surface: what each part of sources/surface.cpp returns, against the same in Python and NumPy."""

from __future__ import annotations

import gc
import inspect
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flambeau
import flambeau.nn.functional as F


@pytest.fixture
def x():
    return flambeau.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])


def same(tensors, expected):
    """Equal values and dtypes."""
    assert len(tensors) == len(expected)
    for number, (tensor, wanted) in enumerate(zip(tensors, expected, strict=True)):
        assert tensor.dtype is wanted.dtype, (number, tensor, wanted)
        np.testing.assert_array_equal(tensor.detach().numpy(), wanted.detach().numpy(), err_msg=str(number))


def test_factories(cpp):
    same(cpp.factories(), [
        flambeau.zeros(2, 3), flambeau.ones(2, dtype=flambeau.int64), flambeau.full((2,), 7.0, dtype=flambeau.float64),
        flambeau.empty(0, 3, dtype=flambeau.uint8), flambeau.arange(3, dtype=flambeau.float32), flambeau.arange(1, 7, 2),
        flambeau.eye(2), flambeau.zeros(()), flambeau.tensor([1.5, 2.5]), flambeau.tensor(3), flambeau.linspace(0, 1, 3),
        flambeau.zeros(1), flambeau.ones(2, dtype=flambeau.int32),
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "int16", "float16"])
def test_factories_like_another_tensor(cpp, dtype):
    dtype = getattr(flambeau, dtype)
    x = flambeau.arange(6).reshape(2, 3).to(dtype)
    same(cpp.like(x), [
        flambeau.zeros(2, 3, dtype=dtype), flambeau.ones(2, 3, dtype=flambeau.int32), flambeau.zeros(2, dtype=dtype),
        flambeau.full((1, 2), 4, dtype=dtype), flambeau.tensor(5, dtype=dtype), flambeau.full((1,), 6, dtype=dtype),
        flambeau.zeros(1, dtype=flambeau.int64), x,
    ])  # fmt: skip


def test_options_ask_for_history(cpp):
    leaf = cpp.requiring()
    assert leaf.requires_grad and leaf.is_leaf and leaf.dtype is flambeau.float64


def test_memory_of_c_is_shared_and_freed(cpp):
    before = cpp.count_deleted()
    tensor = cpp.blob([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(tensor.numpy(), [[1, 2, 3], [4, 5, 6]])
    tensor += 1
    view = tensor[1]
    del tensor
    gc.collect()
    assert cpp.count_deleted() == before and view.tolist() == [5, 6, 7]
    del view
    gc.collect()
    assert cpp.count_deleted() == before + 1
    np.testing.assert_array_equal(cpp.blob([1.0, 2.0, 3.0, 4.0], transposed=True).numpy(), [[1, 3], [2, 4]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_arithmetic_in_both_orders(cpp, x, dtype):
    x = x.to(getattr(flambeau, dtype))
    y = x.flip(0) + 1
    z = x.clone() if x.is_floating_point() else None
    if z is None:
        with pytest.raises(RuntimeError, match="can't be cast"):
            cpp.arithmetic(x, y)
        return
    z = ((x + y) - 1) * 2.0 / y
    same(cpp.arithmetic(x, y), [x + y, 1 - x, x * 2, 2.5 / y, x - y, -x, x % 2, z, x + 3, True + x])


def test_comparisons_in_both_orders(cpp, x):
    expected = [x > 1, x < 1, x == 2, x != 2, x <= x, (x > 0) & (x < 2), (x < 1) | (x > 2)]
    same(cpp.comparisons(x), expected)


def test_writes_through_parts_and_out(cpp):
    x = flambeau.zeros(3, 3)
    written, doubled = cpp.inplace(x)
    assert written is x
    expected = (np.array([[0, 5, 5], [0, 7, 7], [9, 9, 9]], np.float32) + 1) * 2
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(doubled.numpy(), 2 * expected)


def test_results_that_are_several_tensors(cpp, x):
    values, indices, ordered, top, parts, count, equal = cpp.results(x)
    same([values, indices], [*x.max(1)])
    same([ordered, top], [x.sort(1, descending=True)[0], x.topk(1)[1]])
    same(parts, x.split(1, 1))
    assert count == 2 and equal is True


def test_operators_of_every_shape_of_signature(cpp, x):
    index = flambeau.tensor([2, 0])
    same(cpp.operators(x, index), [
        flambeau.cat([x, x]), flambeau.stack([x, x], -1), x.sum(), x.sum(0), x.sum((0, 1)), x.sum(1, True), x.mean(-1),
        x.max(), flambeau.max(x, x * 2), x.view(-1), x.permute(1, 0), x.expand(2, 2, 3), x.t(), x.index_select(1, index),
        flambeau.where(x > 2, x, 0.0), x.clamp(2, 4), x.clamp_min(3), x.norm(), x.var(1, False), x.softmax(1), F.relu(x - 3),
        F.elu(x - 3, 0.5), F.leaky_relu(x - 3), x, x.flatten(), x.repeat(1, 2), flambeau.einsum("ij,kj->ik", x, x),
        x.pow(2), flambeau.pow(2, x), x.masked_fill(x > 2, -1), x.t().mm(x), F.linear(x, x), F.linear(x, x, flambeau.ones(2)),
        x, x.long(), x.gather(1, index[None]), F.conv1d(x[None], flambeau.ones(1, 2, 2)), x.std(),
        x.index_fill(1, index, 0), F.embedding(index, x.t()),
        x.sum(0, dtype=flambeau.float64), x.softmax(1, dtype=flambeau.float64), x[:, index],
        flambeau.zeros(1, dtype=flambeau.int32),
    ])  # fmt: skip


def test_operators_differentiate(cpp, x):
    index = flambeau.tensor([2, 0])
    x.requires_grad_()
    results = [each for each in cpp.operators(x, index)[:-1] if each.is_floating_point()]
    assert all(each.requires_grad for each in results)


def test_what_a_tensor_says(cpp, x):
    assert cpp.description(x) == "[2, 3][3, 1]26Floatcpu1CPUFloatType0330411" + "00"
    y = flambeau.zeros(4, 3, dtype=flambeau.int64, requires_grad=False)[1:, 1]
    assert cpp.description(y) == "[3][3]13Longcpu0CPULongType0334800" + "00"
    assert cpp.printed(x) == str(x)
    assert cpp.same(x, x) is True and cpp.same(x, x.detach()) is False


def test_elements_and_scalars(cpp, x):
    assert cpp.element(x) == 4 + 21 + 6
    assert cpp.scalars(x) == (21.0, 21, True, -21.0)
    number, integer, floating, _ = cpp.scalars(x.long())
    assert (number, integer, floating) == (21, 21, False) and type(number) is int


def test_python_functions_are_called(cpp, x):
    assert cpp.through_python(x, lambda a, b: a * b).equal(x * 2)
    with pytest.raises(KeyError, match="'mine'"):
        cpp.through_python(x, lambda a, b: {}["mine"])
    with pytest.raises(TypeError, match="expected Tensor, got int"):
        cpp.through_python(x, lambda a, b: b)


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:, 1:], lambda x: x[:0]]
)
def test_accessors(cpp, view):
    x = view(flambeau.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(cpp.transposed_sum(x).numpy(), x.numpy().sum(0))


def test_the_plain_c_structure(cpp):
    x = flambeau.zeros(2, 3, dtype=flambeau.int16)
    assert cpp.as_c(x) == [2, 2, 3, 3, 1, 0, 16, 1, 1]
    assert cpp.as_c(x.t().double()[1:]) == [2, 2, 2, *x.t().double()[1:].stride(), 2, 64, 1, 1]


def test_half_numbers(cpp):
    x = flambeau.tensor([0.0, 1.5, -2.25, float("inf")], dtype=flambeau.float16)
    assert cpp.halves(x).tolist() == [0.0, 3.0, -4.5, float("inf")]
    values = np.concatenate([
        np.random.default_rng(0).normal(0, 1, 1000) * 10.0 ** np.random.default_rng(1).integers(-9, 6, 1000),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 2.0**-24, 2.0**-25, 2.0**-14, 1 + 2.0**-11],
    ]).astype(np.float32)  # fmt: skip
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(cpp.round_half(flambeau.tensor(values)).numpy(), expected)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    every = every[~np.isnan(every)]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            cpp.halves(flambeau.tensor(every)).numpy(), (every.astype(np.float32) * 2).astype(np.float16)
        )


def test_threads_and_the_gil(cpp, x):
    assert cpp.without_gil(x).equal(x + 1)
    with pytest.raises(
        RuntimeError, match=r"on a thread that does not hold Python's lock \(the GIL\)\.\nCall operators"
    ):
        cpp.operator_without_gil(x)
    assert cpp.slow(2.0) == 4.0


def test_backward_from_cpp(cpp):
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    grad, detached = cpp.gradient(x)
    assert grad.tolist() == [2.0, 4.0] and x.grad is grad and not detached.requires_grad


def test_recording_is_turned_off_for_a_block(cpp):
    x = flambeau.ones(2, requires_grad=True)
    assert not cpp.without_history(x).requires_grad and flambeau.is_grad_enabled() and (x * 2).requires_grad


def test_tensors_in_static_variables_outlive_the_interpreter_quietly(cpp):
    script = f"""
        import importlib.util, flambeau
        spec = importlib.util.spec_from_file_location("surface", {cpp.__file__!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.keep(flambeau.ones(3))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_errors_can_be_caught_in_cpp(cpp):
    assert cpp.caught(flambeau.ones(3)).startswith("ShapeError: mm: mat1 and mat2")


@pytest.mark.parametrize("kind, error, message", [
    (0, RuntimeError, r"^got 3 of them\n\(at .*surface\.cpp:\d+\)$"),
    (1, RuntimeError, r"^kind is 1, sizes are \[2, 3\]\n\(at .*surface\.cpp:\d+\)$"),
    (2, RuntimeError, r"^Expected kind == 1 to be true, but it is false\.\n\(at .*surface\.cpp:\d+\)$"),
    (3, IndexError, "^past the end$"),
    (4, ValueError, "^not this$"),
    (5, ValueError, "^from py$"),
    (6, RuntimeError, "^The tensor is undefined: it was never given a value\\.$"),
    (7, RuntimeError, "^An operand is an undefined tensor: it was never given a value\\.$"),
    (8, IndexError, r"^Dimension out of range \(expected to be in range of \[-1, 0\], but got 3\)$"),
    (9, RuntimeError, "^a C\\+\\+ exception that is not a std::exception$"),
    (10, RuntimeError, "^accessor: expected 1 dimensions, got 2\\.$"),
    (11, MemoryError, None),
    (13, ValueError, "^caf\ufffd$"),
    (12, RuntimeError, r"^50% of 3\n\(at .*surface\.cpp:\d+\)$"),
])  # fmt: skip
def test_errors(cpp, kind, error, message):
    with pytest.raises(error, match=message):
        cpp.failing(kind)


def test_kinds_of_arguments(cpp, x):
    assert cpp.kinds(1) == "10.51text202.5Floatcpu"
    assert cpp.kinds(2, 3, False, "d", (1, 2, 3), x, [4, 5.5], flambeau.int64, "cuda:1", "j") == "230d315.5Longcuda:1j"
    assert cpp.kinds(np.int64(3), b=np.float32(0.25), i=flambeau.device("cpu")) == "30.251text202.5Floatcpu"
    signature = (
        "kinds(a: int, b: float = 0.5, c: bool = True, d: str = 'text', e: list[int] = [1, 2], f: Tensor | None = None, "
        "g: tuple[int, float] = (1, 2.5), h: dtype = flambeau.float32, i: device = device(type='cpu'), j: str = '') -> str"
    )
    assert inspect.getdoc(cpp.kinds) == signature + "\n\nAll kinds of arguments."
    assert [each.name for each in inspect.signature(cpp.kinds).parameters.values()] == list("abcdefghij")
    for wrong, name, kind, got in [
        ({"a": 1.5}, "a", "int", "float: 1.5"), ({"a": True}, "a", "int", "bool: True"),
        ({"a": 1, "b": "2"}, "b", "float", "str: '2'"), ({"a": 1, "c": 1}, "c", "bool", "int: 1"),
        ({"a": 1, "d": 2}, "d", "str", "int: 2"), ({"a": 1, "e": "12"}, "e", "list[int]", "str: '12'"),
        ({"a": 1, "e": [1, "2"]}, "e", "list[int]", "list: [1, '2']"), ({"a": 1, "f": 1}, "f", "Tensor | None", "int: 1"),
        ({"a": 1, "g": (1,)}, "g", "tuple[int, float]", "tuple: (1,)"), ({"a": 1, "h": 1}, "h", "dtype", "int: 1"),
        ({"a": x}, "a", "int", "float32 Tensor of shape [2, 3]"),
    ]:  # fmt: skip
        expected = f"kinds(): argument '{name}' must be {kind}, got {got}.\nSignature: {signature}"
        with pytest.raises(TypeError) as caught:
            cpp.kinds(**wrong)
        assert str(caught.value) == expected
    with pytest.raises(TypeError, match=r"^kinds\(\): argument 'a' must be int, got str: '\u00e9+"):
        cpp.kinds("\u00e9" * 100)
    with pytest.raises(TypeError, match=r"^kinds\(\): argument 'a' must be int"):  # the first of two
        cpp.kinds("x", "y")
    with pytest.raises(OverflowError, match="the number 4294967296 does not fit into 32 signed bits"):
        cpp.kinds(1 << 32)
    for number in (-1, 256):
        with pytest.raises(OverflowError, match=f"the number {number} does not fit into 8 unsigned bits"):
            cpp.small(number)
    assert cpp.small(255) == 255


def test_optional_results_overloads_and_lambdas(cpp, x):
    assert cpp.maybe(True) == 4 and cpp.maybe(False) is None
    assert (cpp.overloaded(x), cpp.overloaded("x")) == (1, 2)
    with pytest.raises(TypeError, match=re.escape(
        "overloaded(): argument 'arg0' must be Tensor, got int: 3.\noverloaded(): argument 'arg0' must be str, got int: 3.\n"
        "Signature: overloaded(arg0: Tensor) -> int\n       or: overloaded(arg0: str) -> int"
    )):  # fmt: skip
        cpp.overloaded(3)
    assert cpp.__getattribute__("lambda")() == 2 and cpp.answer == 42 and cpp.__doc__ == "The C++ surface."


def test_classes_derive_and_are_destroyed(cpp):
    before = cpp.destroyed()
    square = cpp.Square(side=3)
    assert (square.area(), square.side, square.half, square.label, repr(square)) == (9, 3, 1.5, "shape", "Square(3)")
    assert cpp.area_of(square) == 9 and isinstance(square, cpp.Shape) and issubclass(cpp.Square, cpp.Shape)
    square.label = "mine"
    assert square.label == "mine"
    with pytest.raises(AttributeError):
        square.side = 4
    assert cpp.Square("four").side == 4 and cpp.Square.unit().area() == 1 and cpp.square(2.0).area() == 4

    class Derived(cpp.Square):
        def __init__(self):
            super().__init__(5)

    class Forgetful(cpp.Square):
        def __init__(self):
            pass

    assert cpp.area_of(Derived()) == 25
    with pytest.raises(RuntimeError, match=r"Shape\.__init__\(\) was not called; a derived class calls super\(\)"):
        cpp.area_of(Forgetful())
    with pytest.raises(TypeError, match="argument 'arg0' must be Shape, got int: 3"):
        cpp.area_of(3)
    del square
    gc.collect()
    assert cpp.destroyed() > before
