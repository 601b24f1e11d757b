"""Extensions in C++ on devices of other plug-ins: operators run there, memory is asked of the backend."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.utils.cpp_extension import load_inline

SOURCE = """
at::Tensor affine(at::Tensor x) { return 1 + x * 2; }
int64_t address(at::Tensor x) { return reinterpret_cast<int64_t>(x.data<float>()); }
double first(at::Tensor x) { return x.accessor<float, 1>()[0]; }
std::string where(at::Tensor x) {
  return x.device().str() + " " + x.type().toString() + " " + at::zeros({2}, x.options()).device().str();
}
"""
FUNCTIONS = ["affine", "address", "first", "where"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture
def host(folder):
    return load_inline("on_devices", SOURCE, functions=FUNCTIONS, extra_cflags=["-O0"], build_directory=folder / "host")


@pytest.fixture
def device(folder):
    """The same, built for devices whose memory the host cannot read."""
    return load_inline(
        "on_devices",
        SOURCE,
        functions=FUNCTIONS,
        extra_cflags=["-O0", "-DWITH_CUDA"],
        build_directory=folder / "device",
    )


def test_composed_operators_run_on_any_device(toy, host):
    toy()
    x = flambeau.tensor([1.0, 2.0], device="toy", requires_grad=True)
    y = host.affine(x)
    y.sum().backward()
    assert y.device == x.device and y.cpu().tolist() == [3, 5] and x.grad.cpu().tolist() == [2, 2]
    assert host.where(x.detach()) == "toy:0 toy:0FloatType toy:0"


def test_memory_that_the_host_cannot_reach_is_not_given(toy, host):
    toy()
    x = flambeau.tensor([1.0, 2.0], device="toy")
    with pytest.raises(
        RuntimeError, match=r"^data\(\): the tensor is on toy:0, whose memory this extension, built for the"
    ):
        host.address(x)
    with pytest.raises(RuntimeError, match=r"^accessor\(\): the tensor is on toy:0, and accessors are for the host\."):
        host.first(x)


def test_an_extension_for_devices_asks_the_backend_for_addresses(toy, device):
    class Addressed(toy.Memory):
        def address(self, handle):
            return handle[0][handle[1] :].ctypes.data

    toy(memory=Addressed())
    x = flambeau.tensor([1.0, 2.0], device="toy")
    assert device.address(x[1:]) == device.address(x) + 4 == x.memory[0].ctypes.data + 4 == x.data_ptr() + 4


def test_a_device_without_addresses_says_so(toy, device):
    toy()
    x = flambeau.tensor([1.0, 2.0], device="toy")
    for ask in (device.address, flambeau.Tensor.data_ptr):
        with pytest.raises(
            RuntimeError, match=r"^The memory of the device 'toy:0' has no addresses\.\nCall \.cpu\(\) first\.$"
        ):
            ask(x)


def test_addresses_of_the_host(host):
    x = flambeau.arange(6.0)[2:]
    assert host.address(x) == x.data_ptr() == x.numpy().ctypes.data
    assert host.first(flambeau.from_numpy(np.array([3.0, 4.0], np.float32))) == 3


def test_sparse_tensors_have_no_single_memory(host):
    pytest.importorskip("flambeau_sparse")
    x = flambeau.sparse_coo_tensor(flambeau.tensor([[0, 2]]), flambeau.tensor([1.0, 2.0]), (3,))
    with pytest.raises(
        RuntimeError, match=r"^data\(\): the tensor is sparse and has no single memory\.\nCall to_dense\(\)"
    ):
        host.address(x)
