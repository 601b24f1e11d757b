"""oneDNN's library, and the bridge to it."""

from __future__ import annotations

import ctypes
from importlib.metadata import PackageNotFoundError, files

__all__ = ["ffi", "lib"]

_PACKAGE = "onednn-cpu-gomp"
_LIBRARY = "libdnnl.so.3"


def _load() -> None:
    """Load the library from where its package has put it: once it is in the process, the bridge finds it by name.

    Raises:
        ImportError: the package is not installed, or has no such library.
    """
    try:
        found = [each for each in files(_PACKAGE) or () if each.name == _LIBRARY]
    except PackageNotFoundError:
        found = []
    if not found:
        raise ImportError(
            f"flambeau-mkldnn needs {_LIBRARY} of the package {_PACKAGE}, which is not installed.\n"
            f"Install it: pip install {_PACKAGE}==2023.2.0"
        )
    ctypes.CDLL(str(found[0].locate()))


_load()

from ._kernels import ffi, lib  # noqa: E402  it needs the library
