"""OpenBLAS, which computes the large products of matrices.

The kernels split a product among their own threads and call it on each, so its
pool stays at one thread.
"""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

from ._kernels import ffi, lib

__all__ = ["load"]


def load() -> str:
    """Give OpenBLAS to the kernels.

    Returns:
        its version and what it was built for.

    Raises:
        ImportError: the package that brings it is not installed or damaged.
    """
    spec = importlib.util.find_spec(
        "scipy_openblas32"
    )  # found, not imported: that takes longer than loading the library
    folders = spec.submodule_search_locations or [] if spec else []
    found = [file for folder in folders for file in sorted(Path(folder, "lib").glob("libscipy_openblas*"))]
    if not found:
        raise ImportError(
            "flambeau-cpu multiplies matrices with OpenBLAS, and the package scipy-openblas32 "
            f"{'holds no library' if spec else 'is not installed'}.\nInstall it: pip install --force-reinstall scipy-openblas32"
        )
    library = ctypes.CDLL(str(found[0]))
    library.scipy_openblas_set_num_threads(1)
    library.scipy_openblas_get_config.restype = ctypes.c_char_p
    routines = library.scipy_sgemm_, library.scipy_dgemm_
    lib.fb_use_blas(*[ffi.cast("void *", ctypes.cast(each, ctypes.c_void_p).value) for each in routines])
    return str(library.scipy_openblas_get_config().decode())
