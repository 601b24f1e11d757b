"""CUDA sources compile and link where nvcc is installed; nothing here needs a GPU."""

from __future__ import annotations

import ctypes
import os
import shutil

import pytest

import flambeau
from flambeau.utils.cpp_extension import CUDAExtension, include_paths, library_paths, load_inline
from flambeau_extensions import toolchain
from flambeau_extensions.compile import Job

KERNEL = """
#include <torch/extension.h>

template <typename scalar_t>
__global__ void twice_kernel(const scalar_t* x, scalar_t* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] * 2;
}

template <typename scalar_t>
using Matrix = at::PackedTensorAccessor<scalar_t, 2, at::RestrictPtrTraits, int32_t>;

template <typename scalar_t>
__global__ void transpose_kernel(Matrix<scalar_t> x, Matrix<scalar_t> y) {
  for (int j = threadIdx.x; j < x.size(1); j += blockDim.x) y[j][blockIdx.x] = x[blockIdx.x][j];
}

at::Tensor twice_cuda(at::Tensor x) {
  AT_ASSERT(x.type().is_cuda(), "x must be a CUDA tensor");
  auto y = at::empty_like(x);
  const int threads = 256, blocks = (x.numel() + threads - 1) / threads;
  AT_DISPATCH_FLOATING_TYPES(x.type(), "twice", ([&] {
    twice_kernel<scalar_t><<<blocks, threads>>>(x.data<scalar_t>(), y.data<scalar_t>(), x.numel());
  }));
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}

at::Tensor transpose_cuda(at::Tensor x) {
  auto y = at::empty({x.size(1), x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.type(), "transpose", ([&] {
    transpose_kernel<scalar_t><<<x.size(0), 32>>>(
        x.packed_accessor<scalar_t, 2, at::RestrictPtrTraits, int32_t>(),
        y.packed_accessor<scalar_t, 2, at::RestrictPtrTraits, int32_t>());
  }));
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}
"""
BINDING = """
at::Tensor twice_cuda(at::Tensor x);
at::Tensor transpose_cuda(at::Tensor x);
at::Tensor twice(at::Tensor x) { return x.is_cuda() ? twice_cuda(x) : x * 2; }
"""


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="nvcc does not run under the sanitizer")
@pytest.mark.skipif(has_driver(), reason="what happens without a driver")
def test_kernels_compile_link_and_load_without_a_driver(cache):
    with pytest.warns(
        RuntimeWarning, match=r"^The extension 'cuda_sample' is built for CUDA, and this machine has no CUDA"
    ):
        module = load_inline("cuda_sample", BINDING, KERNEL, functions=["twice", "twice_cuda", "transpose_cuda"])
    x = flambeau.ones(2, 3)
    assert module.twice(x).equal(x * 2), "what runs on the host does"
    with pytest.raises(RuntimeError, match=r"^x must be a CUDA tensor\n"):
        module.twice_cuda(x)
    with pytest.raises(RuntimeError, match=r"^CUDA: .*driver.*\n\(at main\.cu:\d+\)$"):
        module.transpose_cuda(x)


def test_without_nvcc_the_message_says_what_to_install(own_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(
        RuntimeError, match=r"^CUDA sources need nvcc.*\nInstall the CUDA toolkit .* CUDA_HOME=/path/to/cuda"
    ):
        load_inline("cuda_sample", BINDING, KERNEL)


@pytest.mark.parametrize("listed, expected", [
    ("", ["-gencode=arch=compute_75,code=compute_75"]),
    ("8.0", ["-gencode=arch=compute_80,code=sm_80"]),
    ("8.0;9.0a+PTX", [
        "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_90a,code=compute_90a",
    ]),
    ("7.5 10.0", ["-gencode=arch=compute_75,code=sm_75", "-gencode=arch=compute_100,code=sm_100"]),
])  # fmt: skip
def test_architectures(listed, expected):
    assert toolchain.cuda_architectures(listed, ["compute_100", "compute_75", "compute_90"]) == expected


def test_a_bad_list_of_architectures_is_named():
    with pytest.raises(RuntimeError, match=r"^TORCH_CUDA_ARCH_LIST: expected .* got 'Hopper' in '8.0;Hopper'\.$"):
        toolchain.cuda_architectures("8.0;Hopper", ["compute_75"])


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit whose compiler only tells its architectures."""
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text("#!/bin/sh\necho compute_80\necho compute_100\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    return tmp_path


def test_commands_name_the_toolkit_and_the_architectures(toolkit, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    job = Job("sample", ["a.cpp", "b.cu"], cflags=["-DC"], cuda_cflags=["-DCU"], cuda=True)
    host, device = job.commands()
    assert f"-I{toolkit}/include" in host and "-DC" in host and "-DCU" not in host and "-DWITH_CUDA" in host
    assert device[0] == f"{toolkit}/bin/nvcc" and "-gencode=arch=compute_90,code=sm_90" in device
    assert "-DCU" in device and "-DC" not in device and "-DWITH_CUDA" in device
    assert f"-L{toolkit}/lib64" in job.link_command(["a.o"], "library")
    (device,) = Job("sample", ["b.cu"], cuda_cflags=["-arch=sm_86"], cuda=True).commands()
    assert not any(each.startswith("-gencode") for each in device), "the user's own architecture stands"


def test_folders_of_the_toolkit(toolkit):
    assert include_paths(cuda=True)[-1] == f"{toolkit}/include"
    assert library_paths(cuda=True) == [f"{toolkit}/lib64"]
    assert CUDAExtension("sample", ["sample.cu"]).cuda
