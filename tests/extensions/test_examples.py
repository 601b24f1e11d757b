"""The examples in extensions/examples: they build, are right, and do what they are for."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck
from flambeau.utils.cpp_extension import load
from flambeau_extensions.toolchain import cuda_home

EXAMPLES = Path(__file__).parents[2] / "extensions" / "examples"


def example(path):
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unique_float(cache):
    unique = load("unique_float", [EXAMPLES / "unique_float" / "unique.cpp"]).unique_float
    assert sorted(unique(torch.tensor([1.0, 2.0, 1.0])).tolist()) == [1, 2]
    numbers = np.random.default_rng(0).integers(0, 50, 1000).astype(np.float32)
    assert sorted(unique(torch.tensor(numbers)).tolist()) == np.unique(numbers).tolist()
    assert unique(torch.empty(0)).shape == (0,)
    with pytest.raises(RuntimeError, match="unique_float: expected a float tensor, got "):
        unique(torch.tensor([1.0], dtype=torch.float64))


@pytest.fixture(scope="module")
def lltm(cache):
    return example("lstm/lltm.py")


def inputs(batch=3, features=4, size=2):
    numbers = np.random.default_rng(1).normal
    shapes = [(batch, features), (3 * size, features + size), (3 * size,), (batch, size), (batch, size)]
    return [torch.tensor(numbers(size=each), requires_grad=True) for each in shapes]


def test_the_cell_in_cpp_is_the_one_in_python(lltm):
    given, apply = inputs(), lltm.compiled()
    for ours, theirs in zip(apply(*given), lltm.cell(*given), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)
    mine = torch.autograd.grad(sum(each.sum() * 1.5 for each in apply(*given)), given)
    theirs = torch.autograd.grad(sum(each.sum() * 1.5 for each in lltm.cell(*given)), given)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)
    assert gradcheck(apply, given) and gradcheck(lltm.cell, given)


def test_the_cell_in_cuda_builds_and_asks_for_a_device(lltm):
    if cuda_home() is None or "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("needs nvcc, which does not run under the sanitizer")
    apply = lltm.compiled("lltm_cuda.cu")
    with pytest.raises(RuntimeError, match="lltm: expected tensors on a CUDA device"):
        apply(*inputs())


def test_the_fused_optimiser_takes_the_steps_of_adam(cache):
    fused = example("fused/fused_adam.py")
    numbers = np.random.default_rng(2).normal
    starts = [numbers(size=each).astype(np.float32) for each in ((3, 4), (5,), (2, 2, 2))]
    ours, theirs = ([torch.nn.Parameter(torch.tensor(each)) for each in starts] for _ in range(2))
    mine, reference = fused.FusedAdam(ours, lr=0.01), torch.optim.Adam(theirs, lr=0.01)
    for step in range(20):
        for one, other in zip(ours, theirs, strict=True):
            grad = torch.tensor(numbers(size=one.shape).astype(np.float32))
            one.grad, other.grad = grad, grad.clone()
        if step == 3:
            ours[1].grad = theirs[1].grad = None
            continue
        mine.step()
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)
    x, five = torch.ones(3, 4), [torch.ones(5)]
    with pytest.raises(RuntimeError, match=r"adam_step: parameter 0 is of size \[3, 4\], its gradient of \[5\]"):
        mine.compiled.adam_step([x], five, [x.clone()], [x.clone()], 0.1, 0.9, 0.99, 1e-8, 1)


def test_the_cffi_example(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES / "cffi", tmp_path / "cffi")
    spec = importlib.util.spec_from_file_location("build_my_lib", tmp_path / "cffi" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.ffi.build()
    monkeypatch.syspath_prepend(str(tmp_path / "cffi"))
    try:
        from _ext import my_lib

        class Add(torch.autograd.Function):
            @staticmethod
            def forward(ctx, input1, input2):
                output = input1.new()
                my_lib.my_lib_add_forward(input1, input2, output)
                return output

            @staticmethod
            def backward(ctx, grad_output):
                grad_input = grad_output.new()
                my_lib.my_lib_add_backward(grad_output, grad_input)
                return grad_input, grad_input

        a, b = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
        total = Add.apply(a, b)
        np.testing.assert_array_equal(total.detach().numpy(), a.detach().numpy() + b.detach().numpy())
        total.sum().backward()
        assert a.grad.tolist() == b.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
        with pytest.raises(torch.FatalError, match=r"my_lib_add_forward\(\): the two inputs differ in size"):
            my_lib.my_lib_add_forward(a.detach(), torch.ones(3), torch.empty(0))
    finally:
        for name in ("_ext", "_ext.my_lib"):
            sys.modules.pop(name, None)
