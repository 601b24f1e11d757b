"""``python -m flambeau new-backend``: a device of one's own, working from the first minute."""

from __future__ import annotations

import argparse
import keyword
import sys
from pathlib import Path
from typing import Any, Final

from ..plugins import CORE_VERSION, plugins

__all__ = ["add", "run", "written"]

_SKELETON: Final = "skeleton"
_PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "flambeau-{name}"
version = "0.1.0"
description = "The device {name} for flambeau"
requires-python = ">=3.10"
dependencies = ["flambeau>={oldest},<{newest}", "numpy>=1.24"]

# How flambeau finds it: the name of the device, and the module that describes it.
[project.entry-points."flambeau.backends"]
{name} = "flambeau_{name}"

[tool.setuptools]
py-modules = ["flambeau_{name}"]
"""
_NEXT: Final = """\
Wrote {folder}:
  pyproject.toml
  {module} ({lines} lines)

Next:
  python -m pip install -e {folder}
  python -m flambeau matrix --device {name}
  python -m pytest --pyargs flambeau.conformance --device={name}
"""


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "new-backend", help="write a working plug-in: a device in one file, and its pyproject.toml",
        description="Write a plug-in that brings a device: one Python file with 15 kernels on NumPy arrays, which pass the "
        "conformance kit and train a perceptron, and its pyproject.toml. Replace the kernels by your own, one by one.",
    )  # fmt: skip
    parser.add_argument("name", metavar="NAME", help="of the device: tensors will be on flambeau.device(NAME)")
    parser.add_argument("--directory", metavar="DIR", help="where to write; it must not exist (default: flambeau-NAME)")
    parser.set_defaults(run=run)


def _fault(name: str) -> str:
    """Why a device cannot be called so, or nothing."""
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name != name.lower():
        return f"A device is called by a lower-case identifier, such as 'abacus', got {name!r}."
    for each in plugins:
        if each.device == name:
            return f"The device {name!r} is provided by {each.distribution} {each.version}.\nChoose another name."
    return ""


def written(name: str, folder: Path) -> Path:
    """Write the plug-in of a device into a folder that does not exist; the path of its module.

    Raises:
        OSError: the folder exists, or cannot be written.
    """
    source = Path(__file__).with_name(f"{_SKELETON}.py").read_text(encoding="utf-8")
    major, minor = CORE_VERSION.split(".")[:2]
    folder.mkdir(parents=True)
    module = folder / f"flambeau_{name}.py"
    module.write_text(source.replace(_SKELETON, name), encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        _PYPROJECT.format(name=name, oldest=f"{major}.{minor}", newest=f"{major}.{int(minor) + 1}"), encoding="utf-8"
    )
    return module


def run(options: argparse.Namespace) -> int:
    name, folder = options.name, Path(options.directory or f"flambeau-{options.name}")
    fault = _fault(name)
    if not fault:
        try:
            module = written(name, folder)
        except FileExistsError:
            fault = f"{folder} exists already.\nName another folder: --directory DIR"
        except OSError as error:
            fault = f"{folder} could not be written: {error.strerror}.\nName another folder: --directory DIR"
    if fault:
        print(fault, file=sys.stderr)
        return 1
    shown = str(folder) if folder.is_absolute() or str(folder).startswith(".") else f"./{folder}"
    lines = len(module.read_text(encoding="utf-8").splitlines())
    print(_NEXT.format(folder=shown, module=module.name, lines=lines, name=name), end="")
    return 0
