"""Builds the kernels: cffi in API mode, each family once per instruction set."""

from setuptools import setup

import build_kernels

setup(ext_modules=[build_kernels.extension()], cmdclass={"build_ext": build_kernels.BuildKernels})
