"""Operators of one's own, in C++, C and CUDA C++; public as ``flambeau.utils.cpp_extension``."""

from .headers import include_paths
from .jit import load, load_inline
from .toolchain import CUDA_HOME

__all__ = ["CUDA_HOME", "include_paths", "load", "load_inline"]
