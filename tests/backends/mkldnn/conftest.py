"""These tests take the plug-in into the process, where the others leave it out."""

import pytest

import flambeau as torch

cache = pytest.importorskip("flambeau_mkldnn.cache")


@pytest.fixture(autouse=True)
def mkldnn():
    """The plug-in as installed: it serves where it is faster."""
    from flambeau_mkldnn.plugin import flambeau_backends

    cache.clear()
    with torch.backends.register(*flambeau_backends(), plugin="flambeau-mkldnn"):
        yield
    cache.clear()


@pytest.fixture
def always(monkeypatch):
    """It serves all that it can."""
    monkeypatch.setattr("flambeau_mkldnn.family.ALWAYS", True)
