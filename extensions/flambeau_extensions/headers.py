"""Where the headers are: those of this package, and the operators of the installed core."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import flambeau

from .cache import default_root, exclusive, replace_text

__all__ = ["include_paths", "includes_pybind11", "pybind11_flags"]

INCLUDE: Final = Path(__file__).parent / "include"
_CORE: Final = Path(flambeau.__file__).parent
_INCLUDED: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<(pybind11/[^>]+)>|"([^"]+)")', re.MULTILINE)
#: What the declarations are written from.
_DECLARATIONS: Final = ("ops", "nn/functional.py", "bind.py")


def include_paths(cuda: bool = False) -> list[str]:
    """The folders to give to a compiler as ``-I``.

    Args:
        cuda: with those of the CUDA toolkit.
    """
    found = [str(INCLUDE), _operators(str(default_root()))]
    if cuda:
        toolchain = importlib.import_module(".toolchain", __package__)
        home = toolchain.cuda_home()
        if home:
            found.append(os.path.join(home, "include"))
    return found


@functools.cache
def _operators(root: str) -> str:
    """The folder with the declarations of the core's operators; they are written when the core is new."""
    facts = hashlib.sha256()
    for path in (*_declarations(), Path(__file__).with_name("operators.py")):
        status = path.stat()
        facts.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    folder = Path(root, "operators", facts.hexdigest()[:16])
    target = folder / "flambeau"
    if not (target / "methods.h").exists():
        with exclusive(target):
            if not (target / "methods.h").exists():
                operators = importlib.import_module(".operators", __package__)
                replace_text(target / "operators.h", operators.functions_header())
                replace_text(target / "methods.h", operators.methods_header())
    return str(folder)


def _declarations() -> list[Path]:
    found: list[Path] = []
    for each in _DECLARATIONS:
        path = _CORE / each
        found.extend(sorted(path.glob("*.py")) if path.is_dir() else [path])
    return found


def pybind11_flags() -> list[str]:
    """The flags with which extensions are bound by pybind11.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        pybind11 = importlib.import_module("pybind11")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "A source includes pybind11's headers, or use_pybind11=True was given, and pybind11 is not installed.\n"
            "Install it: pip install pybind11",
            name=error.name,
        ) from error
    return ["-DFLAMBEAU_PYBIND11", f"-I{pybind11.get_include()}"]


def includes_pybind11(sources: Sequence[str], include_paths: Sequence[str]) -> bool:
    """Whether a source, or a header of the user that it includes, includes one of pybind11's."""
    pending, seen = list(sources), set(sources)
    while pending:
        path = pending.pop()
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for real, quoted in _INCLUDED.findall(text):
            if real or quoted.startswith("pybind11/"):
                return True
            for folder in (os.path.dirname(path), *include_paths):
                header = os.path.normpath(os.path.join(folder, quoted))
                if header not in seen and not header.startswith(str(INCLUDE)) and os.path.exists(header):
                    seen.add(header)
                    pending.append(header)
    return False
