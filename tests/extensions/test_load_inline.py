"""Sources given as text: what is built, what comes from the cache, what a mistake says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck
from flambeau.utils.cpp_extension import load_inline

GATE = """
at::Tensor gate(at::Tensor x, at::Tensor y) {
  return at::sigmoid(x) * y + 1;
}
"""


@pytest.fixture(scope="module")
def gate(build):
    return build("gate", GATE, functions={"gate": "sigmoid(x) * y + 1"}).gate


def test_a_composed_operator_computes_and_differentiates(gate):
    x, y = (flambeau.randn(3, 4, dtype=flambeau.float64, requires_grad=True) for _ in range(2))
    a, b = x.detach().numpy(), y.detach().numpy()
    np.testing.assert_allclose(gate(x, y).detach().numpy(), 1 / (1 + np.exp(-a)) * b + 1, rtol=1e-14)
    assert gradcheck(gate, (x, y))


def test_views_and_broadcasting_reach_the_operator(gate):
    x, y = flambeau.randn(4, 6, dtype=flambeau.float64)[:, ::2].t(), flambeau.randn(4, dtype=flambeau.float64)
    expected = 1 / (1 + np.exp(-x.numpy())) * y.numpy() + 1
    np.testing.assert_allclose(gate(x, y).numpy(), expected, rtol=1e-14)


def test_errors_of_operators_stay_what_they_are(gate):
    with pytest.raises(RuntimeError, match=r"broadcast together, got \[3\] and \[4\]") as caught:
        gate(flambeau.ones(3), flambeau.ones(4))
    assert type(caught.value).__name__ == "ShapeError"


def test_documentation_and_signature(gate):
    assert gate.__doc__ == "gate(arg0: Tensor, arg1: Tensor) -> Tensor\n\nsigmoid(x) * y + 1\n"


def test_wrong_arguments_name_the_signature(gate):
    signature = r"\nSignature: gate\(arg0: Tensor, arg1: Tensor\) -> Tensor$"
    x = flambeau.ones(2)
    with pytest.raises(TypeError, match=r"^gate\(\): argument 'arg1' must be Tensor, got int: 3\." + signature):
        gate(x, 3)
    with pytest.raises(TypeError, match=r"^gate\(\) is missing the argument 'arg1'\." + signature):
        gate(x)
    with pytest.raises(TypeError, match=r"^gate\(\) takes 2 arguments, got 3\." + signature):
        gate(x, x, x)
    with pytest.raises(TypeError, match=r"^gate\(\) has no argument 'z'\." + signature):
        gate(x, z=x)
    with pytest.raises(TypeError, match=r"^gate\(\) got two values for the argument 'arg0'\." + signature):
        gate(x, arg0=x)


def test_loading_again_gives_the_same_module(gate):
    assert load_inline("gate", GATE, functions={"gate": "sigmoid(x) * y + 1"}).gate is gate


def test_the_first_line_of_a_mistake_is_the_compilers(own_cache):
    with pytest.raises(RuntimeError) as caught:
        load_inline("mistaken", "at::Tensor f(at::Tensor x) {\n  return x.sigmoit();\n}", functions=["f"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("main.cpp:2:12: error: ") and "sigmoit" in lines[0]
    assert "Building the extension 'mistaken' failed." in lines
    log = next(line for line in lines if line.startswith("Whole output: ")).removeprefix("Whole output: ")
    assert "sigmoit" in Path(log).read_text()
    assert lines[-1].startswith(f"Run again: cd {own_cache}") and "main.cpp" in lines[-1]
    assert not list(own_cache.glob("*/mistaken/*.json")), "a failure is not cached"


def test_bad_requests_say_what_is_wrong(monkeypatch):
    with pytest.raises(ValueError, match=r"The name of an extension is that of a module, got 'a-b'\."):
        load_inline("a-b", GATE)
    monkeypatch.setenv("CXX", "no-such-c++")
    with pytest.raises(RuntimeError, match=r"The C\+\+ compiler 'no-such-c\+\+' was not found\.\nInstall one"):
        load_inline("gate", GATE)
