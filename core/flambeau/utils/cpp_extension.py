"""Operators of one's own, in C++, C and CUDA C++; the distribution flambeau-extensions provides them."""

import sys

from .elsewhere import provided

sys.modules[__name__] = provided("flambeau_extensions.cpp_extension", "flambeau-extensions")
