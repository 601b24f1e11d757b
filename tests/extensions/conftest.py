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
        yield folder


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache for one test."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def cpp(cache):
    """One function for each part of the C++ surface."""
    return load("surface", [SOURCES / "surface.cpp"], extra_cflags=["-O1", *SANITIZE], extra_ldflags=SANITIZE)


@pytest.fixture(scope="session")
def cell(cache):
    """A recurrent cell, and a class, in the style of 0.4."""
    return load(
        "cell", [SOURCES / "cell.cpp", SOURCES / "multiplier.cpp"], extra_cflags=SANITIZE, extra_ldflags=SANITIZE
    )


@pytest.fixture(scope="session")
def build(cache):
    """Builds a module from a text."""

    def build(name, source, **options):
        return load_inline(name, source, **options)

    return build
