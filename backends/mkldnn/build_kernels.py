"""How the bridge to oneDNN is compiled into the module ``flambeau_mkldnn._kernels``, and what Python sees of it.

oneDNN comes from the packages ``onednn-devel-cpu-gomp`` (headers) and ``onednn-cpu-gomp`` (library).

Environment: FLAMBEAU_CPU_CFLAGS adds compiler flags, FLAMBEAU_CPU_SANITIZE=1 builds with AddressSanitizer and
UBSan, as for the CPU plug-in, whose process this code shares.
"""

from __future__ import annotations

import os
from importlib.metadata import files

from cffi import FFI
from setuptools import Extension

FLAGS = ["-std=gnu11", "-O2", "-fopenmp", "-Wall", "-Wextra"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1"]  # the last -O wins


def folder_of(package: str, name: str) -> str:
    """Where a package has put a file of this name."""
    found = [each for each in files(package) or () if each.name == name]
    if not found:
        raise SystemExit(f"The package {package} has no file {name}; install another build of it.")
    return os.path.realpath(str(min(found, key=lambda each: len(each.parts)).locate().parent))


def extension() -> Extension:
    ffi = FFI()
    with open("flambeau_mkldnn/bridge.h", encoding="utf-8") as header:
        text = header.read()
    ffi.cdef(text)
    extra = os.environ.get("FLAMBEAU_CPU_CFLAGS", "").split()
    if os.environ.get("FLAMBEAU_CPU_SANITIZE"):
        extra += SANITIZE
    ffi.set_source(
        "flambeau_mkldnn._kernels", "#include <stdint.h>\n" + text, sources=["flambeau_mkldnn/bridge.c"],
        include_dirs=[folder_of("onednn-devel-cpu-gomp", "dnnl.h")],
        library_dirs=[folder_of("onednn-cpu-gomp", "libdnnl.so")], libraries=["dnnl"],
        extra_compile_args=[*FLAGS, *extra], extra_link_args=["-fopenmp", *extra],
    )  # fmt: skip
    return ffi.distutils_extension(tmpdir="build/cffi", verbose=False)
