"""Plug-ins that are missing, broken, incompatible or contradict each other leave everything else usable."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pluggy
import pytest

import flambeau

#: enough of the environment to import flambeau without seeing what is installed
CORE = Path(flambeau.__file__).parent


def isolated(tmp_path: Path, *packages: str) -> dict[str, str]:
    """An environment whose only distributions are those of ``tmp_path``."""
    library = tmp_path / "library"
    library.mkdir(exist_ok=True)
    names = {"flambeau": CORE, "numpy": Path(numpy.__file__).parent, "pluggy": Path(pluggy.__file__).parent}
    for name, folder in {**names, **{each: Path(__import__(each).__file__).parent for each in packages}}.items():
        if not (library / name).exists():
            (library / name).symlink_to(folder)
    for extra in names["numpy"].parent.glob("numpy.libs"):
        if not (library / extra.name).exists():
            (library / extra.name).symlink_to(extra)
    return {**os.environ, "PYTHONPATH": f"{library}:{tmp_path / 'plugins'}"}


def plugin(tmp_path: Path, name: str, code: str, device: str | None = None, requires: str = "flambeau>=0.1") -> None:
    """Write a plug-in as its wheel would be installed."""
    folder = tmp_path / "plugins"
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{name}.py").write_text(textwrap.dedent(code))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n")
    (info / "entry_points.txt").write_text(f"[flambeau.backends]\n{device or name} = {name}\n")


def python(environment: dict[str, str], code: str, *flags: str) -> str:
    done = subprocess.run(
        [sys.executable, "-S", *flags, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SKELETON = """
from flambeau.backend import Backend, Kernel, hookimpl
@hookimpl
def flambeau_backends():
    return [Backend(name={name!r}, device={device!r}, version="1.0", kernels={kernels}, priority={priority})]
"""


def test_the_core_works_without_any_backend(tmp_path):
    output = python(
        isolated(tmp_path),
        """
        import flambeau
        from flambeau.__main__ import main
        main(["backends"])
        try:
            flambeau.ones(2)
        except RuntimeError as error:
            print(error)
        """,
    )
    assert "No backend is installed." in output
    assert "A tensor needs a device." in output and "pip install flambeau-cpu" in output


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_library", "No module named 'no_such_library'"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("raise ValueError('half-written')", "half-written"),
        ("import ctypes; ctypes.CDLL('libabsent.so.7')", "libabsent.so.7"),
        ("x = 1", "describes no backend"),
    ],
)
def test_a_plug_in_that_fails_is_quarantined(tmp_path, code, reason):
    plugin(tmp_path, "lame", code)
    plugin(tmp_path, "fine", SKELETON.format(name="fine", device="fine", kernels="{}", priority=0))
    output = python(
        isolated(tmp_path),
        """
        import flambeau
        from flambeau.__main__ import main
        for device in ("lame", "lame", "absent"):
            try:
                flambeau.ones(2, device=device)
            except RuntimeError as error:
                print(error)
                print("cause:", type(error.__cause__).__name__)
        main(["backends"])
        """,
    )
    assert output.count("The device 'lame' is unavailable: plug-in lame is broken.") == 2
    assert reason in output
    assert "No installed plug-in provides the device 'absent'. Installed plug-ins provide: fine, lame." in output
    assert "fine       fine 1.0        loaded" in output


def test_another_core_version_is_rejected_without_an_import(tmp_path):
    plugin(tmp_path, "future", "print('IMPORTED')", requires="flambeau>=7,<8")
    output = python(
        isolated(tmp_path),
        """
        import flambeau
        try:
            flambeau.ones(2, device="future")
        except RuntimeError as error:
            print(error)
        """,
    )
    assert "IMPORTED" not in output
    assert "future 1.0 needs flambeau>=7,<8, this is flambeau 0.1.0" in output


def test_a_wrong_description_names_the_part(tmp_path):
    plugin(tmp_path, "odd", SKELETON.format(name="odd", device="odd", kernels="{'addd': Kernel(max)}", priority=0))
    output = python(
        isolated(tmp_path),
        """
        import flambeau
        try:
            flambeau.ones(2, device="odd")
        except RuntimeError as error:
            print(error.__cause__)
        """,
    )
    assert "Plug-in 'odd', backend 'odd': expected kernels of declared operators" in output and "'addd'" in output


@pytest.mark.parametrize("names", [("alpha", "beta"), ("beta", "alpha")])
def test_equal_priorities_are_an_error_naming_both(tmp_path, names):
    for name in names:
        plugin(
            tmp_path,
            name,
            SKELETON.format(name=name, device="shared", kernels="{'add': Kernel(max)}", priority=5),
            "shared",
        )
    output = python(
        isolated(tmp_path),
        """
        from flambeau.backends import report
        for each in report():
            print(each.distribution, each.state, each.error)
        """,
    )
    assert "alpha loaded None" in output
    assert "The providers 'alpha' and 'beta' both serve add on shared (strided) with priority 5." in output


def test_twenty_plug_ins_cost_nothing_at_import(tmp_path):
    for number in range(20):
        plugin(tmp_path, f"extra{number}", "print('IMPORTED')")
    output = python(
        isolated(tmp_path),
        """
        import sys, flambeau
        print("pluggy" in sys.modules, "importlib.metadata" in sys.modules)
        """,
    )
    assert output == "False False\n"


def test_installed_metadata_declares_the_entry_point():
    points = importlib.metadata.entry_points(group="flambeau.backends")
    assert "cpu" in {each.name for each in points}
