"""Extensions are built into a cache of the test run, which its processes share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flambeau.utils.cpp_extension import load, load_inline

SOURCES = Path(__file__).parent / "sources"
#: Extensions take part in `make test-sanitize`.
SANITIZE = ["-fsanitize=address,undefined"] if "libasan" in os.environ.get("LD_PRELOAD", "") else []


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """The folder of the cache."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "extensions"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", str(folder))
        if SANITIZE:  # not in the compiler, too
            patch.setenv("CXX", "env -u LD_PRELOAD c++")
            patch.setenv("CC", f"env -u LD_PRELOAD cc {SANITIZE[0]}")
        yield folder


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache for one test."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _uncached(*names):
    """A compiler that is not ccache, which would make builds look cheaper than they are."""
    folders = os.environ["PATH"].split(os.pathsep)
    paths = [os.path.join(folder, name) for folder in folders for name in names]
    return next(path for path in paths if os.path.exists(path) and "ccache" not in os.path.realpath(path))


@pytest.fixture(scope="session")
def uncached_compiler():
    return _uncached("g++", "clang++")


@pytest.fixture(scope="session")
def uncached_c_compiler():
    return _uncached("gcc", "clang")


@pytest.fixture(scope="session")
def build(cache):
    """Builds a module from a text."""

    def build(name, source, **options):
        return load_inline(name, source, **options)

    return build


def _from_sources(name, *files, cflags=()):
    paths = [SOURCES / each for each in files]
    return load(name, paths, extra_cflags=[*cflags, *SANITIZE], extra_ldflags=SANITIZE)


@pytest.fixture(scope="session")
def cpp(cache):
    """One function for each part of the C++ surface."""
    return _from_sources("surface", "surface.cpp", cflags=["-O1"])


@pytest.fixture(scope="session")
def cell(cache):
    """A recurrent cell in the style of 0.4."""
    return _from_sources("cell", "cell.cpp")


@pytest.fixture(scope="session")
def multiplier(cache):
    """A class with members and loops over memory, in two translation units in the style of 0.4."""
    return _from_sources("multiplier", "multiplier.cpp", "loops.cpp")


@pytest.fixture(scope="session", params=[False, True], ids=["binder", "pybind11"])
def declared(request, cache):
    """Operators declared in C++, with either binder."""
    if request.param:
        pytest.importorskip("pybind11")
    return load(
        f"declared_{request.param}", [SOURCES / "declared.cpp"], use_pybind11=request.param, extra_cflags=SANITIZE,
        extra_ldflags=SANITIZE,
    )  # fmt: skip
