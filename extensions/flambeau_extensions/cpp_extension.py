"""Operators of one's own, in C++, C and CUDA C++; public as ``flambeau.utils.cpp_extension``.

``load`` and ``load_inline`` build when a program runs; ``CppExtension``, ``CUDAExtension`` and ``BuildExtension``
build with a package.  Environment: ``CXX``, ``CC`` (compilers), ``CUDA_HOME``, ``CUDA_PATH`` (the CUDA toolkit),
``TORCH_CUDA_ARCH_LIST``, ``MAX_JOBS`` (compilers side by side), ``TORCH_EXTENSIONS_DIR`` (the cache) and
``FLAMBEAU_EXTENSIONS_CACHE_MB`` (its size, 1024).
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from .headers import include_paths
from .jit import load, load_inline
from .toolchain import CUDA_HOME, cuda_home

if TYPE_CHECKING:
    from .packaging import BuildExtension, CppExtension, CUDAExtension

__all__ = [
    "CUDA_HOME", "BuildExtension", "CUDAExtension", "CppExtension", "check_compiler_abi_compatibility", "include_paths",
    "is_ninja_available", "library_paths", "load", "load_inline", "verify_ninja_availability",
]  # fmt: skip

_PACKAGING = ("BuildExtension", "CUDAExtension", "CppExtension")


def __getattr__(name: str) -> Any:
    if name in _PACKAGING:  # setuptools takes longer to import than a cached extension to load
        return getattr(importlib.import_module(".packaging", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def library_paths(cuda: bool = False) -> list[str]:
    """The folders to give to a linker as ``-L``: none for flambeau, whose headers need nothing to link.

    Args:
        cuda: with those of the CUDA toolkit.
    """
    home = cuda_home()
    return [f"{home}/lib64"] if cuda and home else []


def check_compiler_abi_compatibility(compiler: str) -> bool:
    """Whether a compiler can build extensions.

    The headers bring their own code and nothing is linked, so any ABI will do; the compiler must know C++11.

    Args:
        compiler: its command.
    """
    if not shutil.which(compiler):
        return False
    text = "#if __cplusplus < 201103L\n#error\n#endif\n"
    done = subprocess.run(
        [compiler, "-std=c++11", "-x", "c++", "-fsyntax-only", "-"], input=text, text=True, capture_output=True
    )
    return done.returncode == 0


def is_ninja_available() -> bool:
    """Whether ninja is installed; extensions are built without it."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Return: ninja is not needed, so there is nothing that could be missing."""
