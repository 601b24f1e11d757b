"""Fixtures: ``toy``, a device of NumPy arrays that the core cannot look into; ``rival``, a second provider on the
CPU; ``site``, a folder of installed plug-ins with processes that see them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pluggy
import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import Backend, Kernel, Provider, bool_, contiguous, float32, float64, int64, make
from flambeau.dispatch.providers import registry


class ToyMemory:
    """Handles are (array, start): no address, so nothing works that assumes one."""

    host = False

    def canonical(self, device):
        return type(device)(device.type, 0)

    def allocator(self, device, dtype):
        return lambda count: (np.full(count, 77, dtype.numpy), 0)

    def zeros_allocator(self, device, dtype):
        return lambda count: (np.zeros(count, dtype.numpy), 0)

    def shifter(self, dtype):
        return lambda handle, count: (handle[0], handle[1] + count)

    def reader(self, dtype):
        return lambda handle: handle[0][handle[1]].item()

    def unpacker(self, dtype):
        return None

    def to_numpy(self, handle, count, dtype):
        return handle[0][handle[1] : handle[1] + count].copy()

    def from_numpy(self, array, device, dtype):
        return (np.array(array, dtype.numpy), 0)


def array(t):
    """The tensor's elements, in place."""
    memory, start = t.memory
    steps = [each * memory.itemsize for each in t.geometry.strides]
    return np.lib.stride_tricks.as_strided(memory[start:], t.geometry.shape, steps)


def fresh(key, values):
    values = np.asarray(values, key.dtype.numpy)
    return make(key, contiguous(values.shape), (values.reshape(-1).copy(), 0))


def pointwise(function, dtypes=(float32, float64, int64), predicate=None):
    def kernel(*operands, out=None):
        values = function(*map(array, operands))
        if out is None:
            return fresh(operands[0].key, values)
        array(out)[...] = values
        return out

    return Kernel(kernel, dtypes, predicate)


def copy_(target, source):
    array(target)[...] = array(source)


def draw(target, low, high, seed, offset):
    array(target)[...] = np.random.default_rng([seed % 2**63, offset]).uniform(low, high, target.shape)


def toy_kernels():
    return {
        "add": pointwise(np.add),
        "mul": pointwise(np.multiply),
        "sub": pointwise(np.subtract),
        "copy_": Kernel(copy_),
        "fill_": Kernel(copy_),
        "clone": Kernel(lambda x: fresh(x.key, array(x))),
        "cast": Kernel(lambda x, dtype: fresh(x.key.of(dtype), array(x))),
        "sum": Kernel(
            lambda x, dims, keep, dtype: fresh(
                x.key if dtype is None else x.key.of(dtype), array(x).sum(tuple(dims), keepdims=keep)
            ),
            (float32, float64, int64, bool_),
        ),
    }


@pytest.fixture
def toy():
    """Takes in a device ``toy`` with the given changes to its description; several, one after the other, if asked."""
    entered = []

    def register(name="toy", **changes):
        described = {"device": name, "version": "2.5", "memory": ToyMemory(), "kernels": toy_kernels(), **changes}
        entered.append(backends.register(Backend(name=name, **described)))
        return entered[-1].plugin

    def leave():
        entered.pop().__exit__()

    register.Memory, register.kernels, register.fresh, register.leave = ToyMemory, toy_kernels, fresh, leave
    yield register
    for each in entered[::-1]:
        each.__exit__()


@pytest.fixture
def rival():
    """A second provider of add and mul on the CPU that notes its calls."""
    calls = []
    torch.ones(1)
    own = next(each for each in registry.providers if each.name == "cpu")

    def kernel(name):
        def run(*args, out=None):
            calls.append(name)
            real = own.kernel(name, args[0].key)
            return real(*args) if out is None else real(*args, out=out)

        return run

    kernels = {
        "add": Kernel(kernel("add"), predicate=lambda a, b: a.geometry.numel < 100),
        "mul": Kernel(kernel("mul")),
        "maximum": Kernel(kernel("maximum"), (float32,)),
    }
    provider = Provider("rival", "cpu", kernels, version="9", priority=-1, plugin="rivals")
    registry.add(provider)
    yield calls
    registry.remove(provider.plugin, "cpu")
    backends.reset()


# ---------------------------------------------------------------- installed plug-ins

SKELETON = """
from flambeau.backend import Backend, Kernel, hookimpl
@hookimpl
def flambeau_backends():
    return [Backend(name={name!r}, device={device!r}, version="1.0", kernels={{{kernels}}}, priority={priority})]
"""
#: a whole device in a file: memory, and a kernel for addition
DEVICE = """
import numpy as np
from flambeau.backend import Backend, Kernel, contiguous, float32, hookimpl, make

class Memory:
    host = False
    canonical = staticmethod(lambda device: device)
    allocator = staticmethod(lambda device, dtype: lambda count: (np.empty(count, dtype.numpy), 0))
    zeros_allocator = staticmethod(lambda device, dtype: lambda count: (np.zeros(count, dtype.numpy), 0))
    shifter = staticmethod(lambda dtype: lambda handle, count: (handle[0], handle[1] + count))
    reader = staticmethod(lambda dtype: lambda handle: handle[0][handle[1]].item())
    unpacker = staticmethod(lambda dtype: None)
    to_numpy = staticmethod(lambda handle, count, dtype: handle[0][handle[1]:handle[1] + count])
    from_numpy = staticmethod(lambda array, device, dtype: (np.array(array), 0))

def add(a, b, out=None):
    value = a.memory[0] + b.memory[0]
    return make(a.key, contiguous(a.shape), (value, 0))

@hookimpl
def flambeau_backends():
    return [Backend(name={name!r}, device={name!r}, version="1.0", memory=Memory(), kernels={{"add": Kernel(add, [float32])}})]
"""


class Site:
    """A folder of installed distributions, and Python processes that see them, the core, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.library, self.plugins = folder / "library", folder / "plugins"
        self.library.mkdir()
        self.plugins.mkdir()
        numpy_folder = Path(np.__file__).parent
        for path in (Path(torch.__file__).parent, Path(pluggy.__file__).parent, numpy_folder):
            (self.library / path.name).symlink_to(path)
        for extra in numpy_folder.parent.glob("numpy.libs"):
            (self.library / extra.name).symlink_to(extra)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FLAMBEAU_")},
            "PYTHONPATH": f"{self.library}{os.pathsep}{self.plugins}",
            "COLUMNS": "100",
        }

    def install(self, name: str, code: str, device: str | None = None, requires: str = "flambeau>=0.1") -> None:
        """Put a plug-in there as its wheel would."""
        info = self.plugins / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (self.plugins / f"{name}.py").write_text(textwrap.dedent(code))
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        )
        (info / "entry_points.txt").write_text(f"[flambeau.backends]\n{device or name} = {name}\n")

    def provider(self, name: str, device: str | None = None, kernels: str = "", priority: int = 0) -> None:
        """Install a plug-in of kernels alone."""
        code = SKELETON.format(name=name, device=device or name, kernels=kernels, priority=priority)
        self.install(name, code, device)

    def device(self, name: str) -> None:
        """Install a plug-in that brings a device."""
        self.install(name, DEVICE.format(name=name))

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A Python process."""
        return subprocess.run(
            [sys.executable, "-S", *arguments], env={**self.environment, **environment}, cwd=self.plugins,
            capture_output=True, text=True,
        )  # fmt: skip

    def python(self, code: str) -> str:
        """What a script prints; it must succeed."""
        done = self.run("-c", textwrap.dedent(code))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def flambeau(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """What a command prints, with the versions and folders of this machine taken out."""
        done = self.run("-m", "flambeau", *arguments, **environment)
        assert done.returncode == status, done.stdout + done.stderr
        text = (done.stdout + done.stderr).replace(str(self.plugins), "PLUGINS")
        text = text.replace(str(Path(torch.__file__).parent), "CORE").replace(str(self.library / "flambeau"), "CORE")
        text = re.sub(r"Python 3\.\d+\.\d+\w*|\"python\": \"[^\"]*\"", "Python VERSION", text)
        return re.sub(r"(\.py):\d+", r"\1:LINE", text)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture(scope="session")
def make_site():
    return Site
