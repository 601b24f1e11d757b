"""``flambeau.cuda``: without a device, and over a plug-in that provides the device type."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import ArrayMemory, Backend
from flambeau.cli.skeleton import KERNELS


def there_is_none():
    return not torch.cuda.is_available()


def test_without_a_device_scripts_go_on():
    if not there_is_none():
        pytest.skip("there is CUDA")
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    with torch.cuda.device(-1), torch.cuda.stream(None):
        pass
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    for call in (
        torch.cuda.current_device, torch.cuda.synchronize, torch.cuda.init, torch.cuda.Stream, lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.FloatTensor(2), lambda: torch.ones(1).cuda(), lambda: torch.nn.Linear(1, 1).cuda(),
    ):  # fmt: skip
        with pytest.raises(
            RuntimeError,
            match=r"No installed plug-in provides the device 'cuda'\.[^\n]*\nInstall .*pip install flambeau-cuda",
        ):
            call()


@pytest.fixture
def two():
    """Two devices of NumPy's memory under the name."""
    if not there_is_none():
        pytest.skip("there is CUDA")
    current = [0]

    class Memory(ArrayMemory):
        host = False

        def canonical(self, device):
            return type(device)("cuda", current[0] if device.index is None else device.index)

    hooks = {
        "device_count": lambda: 2, "current_device": lambda: current[0],
        "set_device": lambda index: current.__setitem__(0, index), "memory_allocated": lambda: 12,
        "empty_cache": lambda: current.append("emptied"),
    }  # fmt: skip
    backend = Backend("cuda", "cuda", "1", KERNELS, Memory(), hooks=hooks, capabilities=frozenset({"rng"}))
    with backends.register(backend):
        yield current


def test_over_a_plug_in(two):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2 and torch.cuda.current_device() == 0
    x = torch.ones(2).cuda()
    assert x.is_cuda and str(x.device) == "cuda:0" and isinstance(x, torch.cuda.FloatTensor)
    assert torch.cuda.FloatTensor([1, 2]).device == x.device and x.type() == "torch.cuda.FloatTensor"
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and str(torch.ones(1, device="cuda").device) == "cuda:1"
    assert torch.cuda.current_device() == 0 and torch.cuda.memory_allocated() == 12
    torch.cuda.manual_seed_all(5)
    a, b = (torch.rand(3, device=f"cuda:{index}").tolist() for index in (0, 1))
    assert a == b
    torch.cuda.manual_seed(5)
    assert torch.rand(3, device="cuda:0").tolist() == a
    torch.cuda.empty_cache()
    assert two[-1] == "emptied"
    with pytest.raises(RuntimeError, match=r"The device 'cuda' has no streams\."):
        torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="Expected a CUDA device, got 'cpu'"):
        torch.cuda.set_device("cpu")
