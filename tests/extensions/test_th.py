"""The functions of TH/TH.h over tensors with any strides, in every element type, against NumPy."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.ffi import FatalError, create_extension

TYPES = {
    "Float": "float32", "Double": "float64", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32",
    "Long": "int64",
}  # fmt: skip
PASS_ON = {
    "cadd": ("TENSOR *r, TENSOR *a, double by, TENSOR *b", "TENSOR_cadd(r, a, by, b)"),
    "cmul": ("TENSOR *r, TENSOR *a, TENSOR *b", "TENSOR_cmul(r, a, b)"),
    "add": ("TENSOR *r, TENSOR *a, double by", "TENSOR_add(r, a, by)"),
    "mul": ("TENSOR *r, TENSOR *a, double by", "TENSOR_mul(r, a, by)"),
    "copy": ("TENSOR *r, TENSOR *a", "TENSOR_copy(r, a)"),
    "fill": ("TENSOR *r, double by", "TENSOR_fill(r, by)"),
    "zero": ("TENSOR *r", "TENSOR_zero(r)"),
    "swap": (
        "TENSOR *x, int64_t i, int64_t j",
        "double kept = TENSOR_get2d(x, i, j); TENSOR_set2d(x, i, j, TENSOR_get2d(x, j, i)); TENSOR_set2d(x, j, i, kept)",
    ),
    "dense": (
        "TENSOR *r, TENSOR *a",
        "TENSOR *own = TENSOR_newContiguous(a);"
        "TENSOR_resize1d(r, TENSOR_nElement(own));"
        "for (ptrdiff_t i = 0; i < TENSOR_nElement(own); ++i) TENSOR_data(r)[i] = TENSOR_data(own)[i];"
        "TENSOR_free(own)",
    ),
    "scratch": (
        "TENSOR *r, int64_t n",
        "TENSOR *own = TENSOR_newWithSize3d(n, 1, 2);"
        "TENSOR_fill(own, 9); TENSOR_set3d(own, n - 1, 0, 1, 4); TENSOR_resizeAs(r, own); TENSOR_copy(r, own); TENSOR_free(own)",
    ),
    "widen": ("TENSOR *r, int64_t n", "TENSOR *own = TENSOR_newWithSize1d(1); TENSOR_resize1d(own, n)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def th(tmp_path_factory):
    folder, header, source = tmp_path_factory.mktemp("th"), "", "#include <TH/TH.h>\n"
    for name in TYPES:
        for function, (parameters, body) in PASS_ON.items():
            declared = f"void {function}_{name}({parameters})".replace("TENSOR", f"TH{name}Tensor")
            header += f"{declared};\n"
            source += f"{declared} {{ {body}; }}\n".replace("TENSOR", f"TH{name}Tensor")
    extra = "float both(THFloatTensor *x, THFloatTensor *y, const float *p, int64_t n)"
    header += f"{extra};\n"
    source += (
        f"{extra} {{ float first = p[0]; THFloatTensor_resize1d(x, n); THFloatTensor_fill(y, 5);"
        " return p[0] == first ? THFloatTensor_size(y, 0) : -1; }\n"
    )
    (folder / "th.h").write_text(header)
    (folder / "th.c").write_text(source)
    create_extension("th_functions", "th.h", ["th.c"], verbose=False, relative_to=folder / "build.py").build()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("th_functions")
    del sys.modules["th_functions"]


@pytest.mark.parametrize("name", TYPES)
def test_pointwise_functions(th, name):
    def call(function, *args):
        getattr(th, f"{function}_{name}")(*args)

    dtype = getattr(torch, TYPES[name])
    x = torch.arange(24).to(dtype).reshape(2, 3, 4).permute(2, 0, 1)[1:]
    y = torch.arange(18).to(dtype).reshape(6, 3)[::2].t().reshape(3, 3)[:, :2].unsqueeze(2).expand(3, 2, 3)
    a, b, r = x.numpy(), y.numpy(), torch.empty(0, dtype=dtype)
    for function, args, expected in (
        ("cadd", (x, 2, y), a + 2 * b), ("cmul", (x, y), (a.astype(np.int64) * b).astype(a.dtype)), ("add", (x, 3), a + 3),
        ("mul", (x, 2), a * 2),
    ):  # fmt: skip
        call(function, r, *args)
        assert r.shape == x.shape
        np.testing.assert_array_equal(r.numpy(), expected)
    call("dense", r, x)
    np.testing.assert_array_equal(r.numpy(), a.ravel())
    call("dense", r, torch.empty(0, 3, dtype=dtype))
    assert r.shape == (0,)
    call("scratch", r, 2)
    assert r.tolist() == [[[9, 9]], [[9, 4]]]
    square = torch.arange(9).to(dtype).reshape(3, 3).t()
    call("swap", square, 0, 2)
    assert square.tolist() == [[0, 3, 2], [1, 4, 7], [6, 5, 8]]
    part = square[:, 1]
    call("copy", part, torch.tensor([7, 8, 9], dtype=dtype))
    assert square.tolist() == [[0, 7, 2], [1, 8, 7], [6, 9, 8]]
    call("fill", part, 2)
    call("zero", square[1])
    assert square.tolist() == [[0, 2, 2], [0, 0, 0], [6, 2, 8]]
    call("cadd", square, square, 1, square)
    assert square.tolist() == [[0, 4, 4], [0, 0, 0], [12, 4, 16]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda th: th.swap_Float(torch.ones(2, 2), 0, 2), r"invalid argument 3: index 2 of 2 \("),
        (lambda th: th.swap_Long(torch.ones(2, 2).long(), -1, 0), r"invalid argument 2: index -1 of 2 \("),
        (lambda th: th.swap_Float(torch.ones(2), 0, 0), r"invalid argument 1: 2 indices for a 1-D tensor \("),
        (lambda th: th.copy_Float(torch.ones(2), torch.ones(3)), r"invalid argument 2: 3 elements into 2 \("),
        (lambda th: th.cmul_Int(*[torch.ones(n).int() for n in (2, 2, 3)]), r"sizes differ: 2 elements and 3 \("),
        (lambda th: th.scratch_Double(torch.ones(1).double(), -1), r"invalid argument 1: a size of -1 \("),
        (lambda th: th.scratch_Double(torch.ones(1).double(), 1 << 62), r"a tensor of that size is too large \("),
        (lambda th: th.scratch_Double(torch.ones(1).double(), 1 << 60), r"no memory for a tensor of \d+ elements \("),
        (lambda th: th.widen_Double(torch.ones(1).double(), 3), r"the tensor could not be resized \("),
    ],
)
def test_mistakes(th, call, message):
    with pytest.raises(FatalError, match=message):
        call(th)


def test_a_tensor_that_is_passed_twice_is_resized_once(th):
    x = torch.ones(10)
    assert th.both(x, x, x, 100_000) == 100_000
    assert x.shape == (100_000,) and bool((x == 5).all())
    kept, view = torch.ones(10), None
    view = kept[:5]
    assert th.both(kept, view, view, 100_000) == -1  # y still is the old memory, where p points
    assert view.tolist() == [5] * 5


def test_history_is_not_lost_in_silence(th):
    w = torch.ones(3, requires_grad=True)
    out = torch.empty(0)
    for function, args in ((th.mul_Float, (out, w, 2)), (th.both, (out, out, w * 2, 1))):
        number = 1 + next(i for i, each in enumerate(args) if isinstance(each, torch.Tensor) and each.requires_grad)
        with pytest.raises(RuntimeError) as caught:
            function(*args)
        assert str(caught.value) == (
            f"{function.__name__}(): argument {number} requires grad, and autograd cannot see what C does with it.\n"
            "Call it in forward() of an autograd.Function or under no_grad(), or pass x.detach()."
        )
    with torch.no_grad():
        th.mul_Float(out, w, 2)
    assert out.tolist() == [2, 2, 2]
