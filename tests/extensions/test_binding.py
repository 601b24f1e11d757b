"""Which binder is used, and what the small one refuses."""

from __future__ import annotations

import sys

import pytest

import flambeau
from flambeau.utils.cpp_extension import load_inline

WITH_PYBIND11 = """
#include <pybind11/numpy.h>

at::Tensor add(at::Tensor a, at::Scalar b, c10::optional<at::Tensor> c) { return c ? a + b + *c : a + b; }
std::vector<at::Tensor> both(std::vector<at::Tensor> x, at::IntList sizes) { return {x[0].view(sizes), x[1]}; }
at::Tensor square(at::Tensor a) { return at::mm(a, a); }
at::ScalarType type_of(at::Tensor a) { return a.scalar_type(); }
"""


def test_pybind11_is_used_where_a_source_includes_it(own_cache):
    pytest.importorskip("pybind11")
    functions = ["add", "both", "square", "type_of"]
    module = load_inline("with_pybind11", WITH_PYBIND11, functions=functions, extra_cflags=["-O0"])
    assert "pybind11" in type(module.add).__name__ or "pybind11" in repr(module.add.__self__)
    x = flambeau.ones(2, requires_grad=True)
    assert module.add(x, 2, None).tolist() == [3, 3] and module.add(x, 2.5, x).requires_grad
    first, second = module.both([x, x], [2, 1])
    assert first.shape == (2, 1) and second is x and module.type_of(x) is flambeau.float32
    assert module.add.__doc__.startswith("add(arg0: Tensor, arg1: Number, arg2: ")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        module.add(3, 3, None)
    with pytest.raises(RuntimeError, match=r"^mm: mat1 and mat2") as caught:
        module.square(x)
    assert type(caught.value).__name__ == "ShapeError", "Python errors stay what they are"


def test_without_pybind11_the_message_says_what_to_install(own_cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pybind11", None)
    with pytest.raises(ModuleNotFoundError, match=r"pybind11 is not installed\.\nInstall it: pip install pybind11$"):
        load_inline("wants_pybind11", "int f() { return 1; }", functions=["f"], use_pybind11=True)


def test_what_the_small_binder_lacks_leads_to_pybind11(own_cache):
    source = "py::array_t<double> f() { return {}; }"
    with pytest.raises(RuntimeError, match=r"^main\.cpp:1:.* error: (.|\n)*own binder lacks: pass use_pybind11=True\."):
        load_inline("lacking", source, functions=["f"], extra_cflags=["-O0"])


def test_functions_that_copy_tensors_keep_the_gil(own_cache):
    source = """
        at::Tensor f(at::Tensor x) { return x; }
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, py::call_guard<py::gil_scoped_release>()); }
    """
    with pytest.raises(
        RuntimeError, match=r"^f\(\): a function that is called without the GIL must not copy or drop tensors"
    ):
        load_inline("careless", source, extra_cflags=["-O0"])


def test_too_many_names_of_arguments_are_refused(own_cache):
    source = """
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](int x) { return x; }, py::arg("x"), py::arg("y")); }
    """
    with pytest.raises(RuntimeError, match=r"^f\(\): more py::arg than parameters\.$"):
        load_inline("named", source, extra_cflags=["-O0"])
