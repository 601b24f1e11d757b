"""``python -m flambeau new-backend``: what it writes, and what it refuses."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from flambeau import __main__ as command
from flambeau.backends import register
from flambeau.cli import skeleton
from flambeau.cli.new_backend import written
from flambeau.conformance.suite import Suite

if sys.version_info >= (3, 11):
    import tomllib


def test_it_is_short_and_says_what_it_is(tmp_path):
    module = written("abacus", tmp_path / "new")
    text = module.read_text()
    assert module.name == "flambeau_abacus.py" and len(text.splitlines()) < 150
    assert "skeleton" not in text and 'device="abacus"' in text and len(skeleton.KERNELS) == 15
    if sys.version_info >= (3, 11):
        project = tomllib.loads((tmp_path / "new" / "pyproject.toml").read_text())
        assert project["project"]["entry-points"]["flambeau.backends"] == {"abacus": "flambeau_abacus"}
        assert project["project"]["dependencies"][0] == "flambeau>=0.1,<0.2"


def test_the_skeleton_conforms():
    (backend,) = skeleton.flambeau_backends()
    with register(backend):
        suite = Suite("skeleton", only=sorted(skeleton.KERNELS))
        found = [suite.run(each) for each in suite.cases()]
    assert [(str(each.case), each.detail) for each in found if each.status != "passed"] == []
    assert len(found) > 900


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Abacus", "A device is called by a lower-case identifier, such as 'abacus', got 'Abacus'.\n"),
        ("a-b", "A device is called by a lower-case identifier, such as 'abacus', got 'a-b'.\n"),
        ("class", "A device is called by a lower-case identifier, such as 'abacus', got 'class'.\n"),
        ("été", "A device is called by a lower-case identifier, such as 'abacus', got 'été'.\n"),
    ],
)
def test_names_that_no_device_has(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["new-backend", name]) == 1
    assert capsys.readouterr().err == message
    assert list(tmp_path.iterdir()) == []


def test_an_installed_device_is_not_written_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    version = metadata.version("flambeau-cpu")
    assert command.main(["new-backend", "cpu"]) == 1
    assert capsys.readouterr().err == f"The device 'cpu' is provided by flambeau-cpu {version}.\nChoose another name.\n"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["new-backend", "abacus", "--directory", "here"]) == 0
    before = {each: each.read_text() for each in Path("here").iterdir()}
    assert len(before) == 2
    capsys.readouterr()
    assert command.main(["new-backend", "abacus", "--directory", "here"]) == 1
    assert capsys.readouterr().err == "here exists already.\nName another folder: --directory DIR\n"
    assert before == {each: each.read_text() for each in Path("here").iterdir()}
    Path("file").write_text("")
    assert command.main(["new-backend", "abacus", "--directory", "file/below"]) == 1
    assert (
        capsys.readouterr().err
        == "file/below could not be written: Not a directory.\nName another folder: --directory DIR\n"
    )
