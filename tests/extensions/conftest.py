"""Extensions are built into a cache of the test run, which its processes share."""

from __future__ import annotations

import os

import pytest

from flambeau.utils.cpp_extension import load_inline


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
def build(cache):
    """Builds a module from a text."""

    def build(name, source, **options):
        return load_inline(name, source, **options)

    return build
