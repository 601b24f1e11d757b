"""Operators of one's own for flambeau, in C++, C and CUDA C++; see ``flambeau.utils.cpp_extension``."""
