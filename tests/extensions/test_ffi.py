"""C functions through cffi: tensors as typed pointers and as TH's structures, errors, wrong arguments, building."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.ffi import FatalError, create_extension

HEADER = """
void scale(const float *x, float *out, int64_t n, double by);
double mean(const double *x, long n);
int64_t sum_u8(const unsigned char *x, int n);
void flags(_Bool *x, int n);
int length(char *text);
void fails(int code, char *why);
int describe(THDoubleTensor *x, THLongTensor *out);
void grow(THFloatTensor *x, int64_t rows, int64_t columns);
float at(THFloatTensor *x, int dimension);
"""
SOURCE = """
#include <string.h>
#include <TH/TH.h>
void scale(const float *x, float *out, int64_t n, double by) { for (int64_t i = 0; i < n; ++i) out[i] = x[i] * by; }
double mean(const double *x, long n) { double sum = 0; for (long i = 0; i < n; ++i) sum += x[i]; return sum / n; }
int64_t sum_u8(const unsigned char *x, int n) { int64_t sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; return sum; }
void flags(_Bool *x, int n) { for (int i = 0; i < n; ++i) x[i] = !x[i]; }
int length(char *text) { return (int)strlen(text); }
void fails(int code, char *why) {
  THArgCheck(code < 5, 1, "code %d is too large", code);
  THError("failed: %s", why);
}
int describe(THDoubleTensor *x, THLongTensor *out) {
  int64_t *to;
  THLongTensor_resize1d(out, 2 * THDoubleTensor_nDimension(x) + 2);
  to = THLongTensor_data(out);
  for (int i = 0; i < THDoubleTensor_nDimension(x); ++i) {
    *to++ = THDoubleTensor_size(x, i);
    *to++ = THDoubleTensor_stride(x, i);
  }
  *to++ = THDoubleTensor_nElement(x);
  *to++ = THDoubleTensor_isContiguous(x);
  return THDoubleTensor_isSameSizeAs(x, x);
}
void grow(THFloatTensor *x, int64_t rows, int64_t columns) {
  THFloatTensor_resize2d(x, rows, columns);
  THFloatTensor_fill(x, 7);
}
float at(THFloatTensor *x, int dimension) { return (float)THFloatTensor_size(x, dimension); }
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ffi")
    return built(folder, "ffi_functions", HEADER, SOURCE)


def built(folder, name, header, source, **options):
    (folder / "f.h").write_text(header)
    (folder / "f.c").write_text(source)
    create_extension(name, "f.h", ["f.c"], verbose=False, relative_to=folder / "build.py", **options).build()
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)


def test_typed_pointers(functions):
    x, out = torch.arange(6.0), torch.empty(6)
    assert functions.scale(x, out, 6, 2.5) is None
    np.testing.assert_array_equal(out.numpy(), np.arange(6) * 2.5)
    functions.scale(x[2:], out[:3], 3, 1)  # views with an offset
    np.testing.assert_array_equal(out.numpy(), [2, 3, 4, 7.5, 10, 12.5])
    assert functions.mean(torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64), 3) == 3
    assert functions.sum_u8(torch.tensor([200, 100], dtype=torch.uint8), 2) == 300
    truth = torch.tensor([True, False])
    functions.flags(truth, 2)
    assert truth.tolist() == [False, True]
    functions.scale(torch.empty(0), torch.empty(0), 0, 1.0)
    assert functions.length("wick") == 4 and functions.length(b"") == 0


def test_structures_of_th(functions):
    x, out = torch.zeros(2, 3, dtype=torch.float64).t(), torch.empty(0, dtype=torch.int64)
    assert functions.describe(x, out) == 1
    assert out.tolist() == [3, 1, 2, 3, 6, 0]
    functions.describe(torch.tensor(1.0, dtype=torch.float64), out)
    assert out.tolist() == [1, 1]
    y = torch.ones(1)
    functions.grow(y, 2, 2)
    assert y.tolist() == [[7, 7], [7, 7]]


def test_errors_of_c_arrive(functions):
    with pytest.raises(FatalError, match=r"^fails\(\): failed: no luck \(.*f\.c:\d+\)$"):
        functions.fails(3, "no luck")
    with pytest.raises(torch.FatalError, match=r"^fails\(\): invalid argument 1: code 7 is too large \(.*\)$"):
        functions.fails(7, "x")
    with pytest.raises(RuntimeError, match=r"at\(\): invalid argument 2: dimension 3 of a 1-D tensor"):
        functions.at(torch.ones(2), 3)
    with pytest.raises(FatalError, match=r"grow\(\): the tensor could not be resized") as caught:
        functions.grow(torch.ones(1), -1, 2)
    assert "negative" in str(caught.value.__cause__)
    assert functions.at(torch.ones(4), 0) == 4  # nothing is left behind


CASES = {
    "dtype": (
        lambda f: f.scale(torch.ones(2, dtype=torch.float64), torch.ones(2), 2, 1.0),
        "scale(): argument 1: expected a float32 tensor on the host (float *), got a float64 tensor of shape [2] on cpu.\n"
        "Convert it with x.to(flambeau.float32).",
    ),
    "strides": (
        lambda f: f.scale(torch.ones(2), torch.ones(4)[::2], 2, 1.0),
        "scale(): argument 2: expected a contiguous float32 tensor (float *), got a float32 tensor of shape [2] on cpu.\n"
        "Its strides are (2,): pass x.contiguous().",
    ),
    "layout": (
        lambda f: f.scale(torch.ones(2).to_sparse(), torch.ones(2), 2, 1.0),
        "scale(): argument 1: expected a float32 tensor on the host (float *), got a float32 tensor of shape [2] on cpu.\n"
        "Move it with x.cpu(), or x.to_dense().",
    ),
    "no tensor": (
        lambda f: f.scale(3, torch.ones(2), 2, 1.0),
        "scale(): argument 1: expected a float32 tensor on the host (float *), got int.",
    ),
    "array": (
        lambda f: f.scale(np.ones(2, np.float32), torch.ones(2), 2, 1.0),
        "scale(): argument 1: expected a float32 tensor on the host (float *), got ndarray.",
    ),
    "no number": (
        lambda f: f.scale(torch.ones(2), torch.ones(2), torch.tensor(2), 1.0),
        "scale(): argument 3: expected a number (int64_t), got a int64 tensor of shape [] on cpu.\nTake it out with x.item().",
    ),
    "a fraction": (
        lambda f: f.scale(torch.ones(2), torch.ones(2), 2.5, 1.0),
        "scale(): argument 3: expected a whole number (int64_t), got float.",
    ),
    "text": (lambda f: f.length(3), "length(): argument 1: expected text (char *), got int."),
    "structure": (
        lambda f: f.at(torch.ones(2, dtype=torch.int32), 0),
        "at(): argument 1: expected a float32 tensor on the host (THFloatTensor *), got a int32 tensor of shape [2] on cpu.\n"
        "Convert it with x.to(flambeau.float32).",
    ),
    "too few": (
        lambda f: f.scale(torch.ones(2)),
        "scale(): expected 4 arguments, got 1.\nIt is <C function scale(float *, float *, int64_t, double)>.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_wrong_arguments(functions, case):
    call, message = CASES[case]
    with pytest.raises(TypeError) as caught:
        call(functions)
    assert str(caught.value) == message


def test_a_number_that_does_not_fit(functions):
    with pytest.raises(OverflowError):
        functions.scale(torch.ones(2), torch.ones(2), 1 << 70, 1.0)


def test_writes_through_pointers_are_noted(functions):
    w = torch.ones(2, requires_grad=True)
    x, out = torch.ones(2), torch.ones(2)
    loss = (w * x * out).sum()
    functions.scale(x, torch.ones(2), 2, 3.0)  # const float *: only read
    loss.backward(retain_graph=True)
    functions.scale(torch.ones(2), x, 2, 3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_threads_have_errors_of_their_own(functions):
    wrong = []

    def work(number):
        for _ in range(200):
            try:
                functions.fails(0, f"thread {number}")
            except FatalError as error:
                if f"failed: thread {number} " not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_building_again_gives_the_new_code(tmp_path):
    first = built(tmp_path, "again", "int f(int x);", "int f(int x) { return x + 1; }")
    second = built(tmp_path, "again", "int f(int x);", "int f(int x) { return x + 2; }")
    assert (first.f(1), second.f(1)) == (2, 3)
    assert len(list((tmp_path / "again").glob("*.so"))) == 1


def test_options_of_the_compiler(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "k.h").write_text("#define K 40\n")
    module = built(
        tmp_path, "options", "double f(double x);",
        "#include <math.h>\n#include <k.h>\ndouble f(double x) { return sqrt(x) + K + ONE; }",
        include_dirs=["inc"], libraries=["m"], define_macros=[("ONE", "1")], extra_compile_args=["-O1"],
    )  # fmt: skip
    assert module.f(4.0) == 43


@pytest.mark.parametrize(
    ("header", "source", "error", "message"),
    [
        ("int f(int x);", "int f(int x) { return y; }", RuntimeError, r"f\.c:1:\d+: error: .*y.* undeclared"),
        ("", "", ValueError, "The headers declare no function"),
        ("float *f(int x);", "", TypeError, r"f\(\): returns 'float \*'; return a number, or write into a tensor"),
        ("int f(int x, ...);", "", TypeError, r"f\(\): a function with a variable number of arguments"),
    ],
)
def test_what_cannot_be_built(tmp_path, header, source, error, message):
    with pytest.raises(error, match=message):
        built(tmp_path, "broken", header, source)
    assert not (tmp_path / "broken").exists()


def test_arguments_of_create_extension(tmp_path):
    with pytest.raises(ValueError, match=r"such as '_ext\.my_lib'; got 'my-lib'"):
        create_extension("my-lib", "f.h", ["f.c"])
    with pytest.raises(TypeError, match=r"unknown argument 'flags'; known are define_macros, extra_compile_args"):
        create_extension("x", "f.h", ["f.c"], flags=[])
    with pytest.raises(NotImplementedError, match=r"builds C for the host\.\nBuild CUDA C\+\+ with"):
        create_extension("x", "f.h", ["f.c"], with_cuda=True)
    with pytest.raises(FileNotFoundError, match=r"The extension 'x' wants .*f\.h, which does not exist"):
        create_extension("x", "f.h", ["f.c"], relative_to=tmp_path / "a.py").build()


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer holds freed memory back")
def test_memory_stays_constant(functions):
    def use():
        x, out = torch.ones(1000), torch.empty(0)
        for _ in range(10_000):
            functions.scale(x, x, 1000, 1.0)
            functions.grow(out, 2, 3)
            try:
                functions.fails(9, "")
            except FatalError:
                pass

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    use()
    before = resident()
    use()
    assert resident() - before < 2 << 20


@pytest.mark.timing
def test_a_cold_build_costs_half_a_second(tmp_path, uncached_c_compiler):
    (tmp_path / "f.h").write_text("void scale(const float *x, float *out, int64_t n, double by);")
    (tmp_path / "f.c").write_text(
        "#include <TH/TH.h>\nvoid scale(const float *x, float *out, int64_t n, double by) { for (; n--; ++x) *out++ = *x * by; }"
    )
    script = textwrap.dedent("""
        import resource
        from flambeau.utils.ffi import create_extension
        extension = create_extension("f", "f.h", ["f.c"], verbose=False)
        start = resource.getrusage(resource.RUSAGE_SELF)
        extension.build()
        end, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        print(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime + below.ru_utime + below.ru_stime)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "CC": uncached_c_compiler},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.5
