"""Builds the kernels: the bridge to oneDNN through cffi in API mode."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))  # build front ends do not put it there

import build_kernels

setup(ext_modules=[build_kernels.extension()])
