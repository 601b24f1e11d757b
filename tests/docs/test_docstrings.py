"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

#: what has examples is run; a package that is not installed is left out
PACKAGES = ["flambeau", "flambeau_cpu", "flambeau_sparse", "flambeau_mkldnn", "flambeau_extensions"]
#: running them does something
LEFT_OUT = {"flambeau.__main__"}


def modules():
    for name in PACKAGES:
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        yield name
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            if each.name not in LEFT_OUT:
                yield each.name


MODULES = list(modules())


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(name))
    assert done.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    count = sum(len(each.examples) for name in MODULES for each in finder.find(importlib.import_module(name)))
    assert count > 90 and len(MODULES) > 150
