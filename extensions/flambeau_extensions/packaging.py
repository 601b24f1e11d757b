"""Building when a package is built: extensions for ``setup.py``."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from . import compile
from .headers import include_paths, includes_pybind11, pybind11_flags

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension"]


class _Extension(Extension):
    """An extension that BuildExtension compiles itself."""

    cuda = False


class _CudaExtension(_Extension):
    cuda = True


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """A :class:`setuptools.Extension` in C++, with flambeau's headers.

    Args:
        name: of the module, dotted if it belongs to a package.
        sources: paths relative to ``setup.py``.
        args, kwargs: as for Extension; ``extra_compile_args`` may be a dict with the keys ``cxx`` and ``nvcc``.
    """
    return _Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Extension:
    """A :class:`setuptools.Extension` in C++ and CUDA C++ (``.cu``), with CUDA's headers and libraries.

    Args:
        name, sources, args, kwargs: as for :func:`CppExtension`.
    """
    return _CudaExtension(name, list(sources), *args, **kwargs)


class BuildExtension(build_ext):
    """The command ``build_ext`` for :func:`CppExtension` and :func:`CUDAExtension`; others are left to setuptools.

    Write ``setup(ext_modules=[CppExtension(...)], cmdclass={"build_ext": BuildExtension})``.
    """

    #: leave the tag of Python's ABI out of the library's name
    plain_suffix = False

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """A subclass with options: ``no_python_abi_suffix``, and ``use_ninja``, which changes nothing here.

        Raises:
            TypeError: an option does not exist.
        """
        unknown = options.keys() - {"no_python_abi_suffix", "use_ninja"}
        if unknown:
            raise TypeError(
                f"BuildExtension has no option {sorted(unknown)[0]!r}; it has no_python_abi_suffix and use_ninja."
            )
        return type(cls.__name__, (cls,), {"plain_suffix": bool(options.get("no_python_abi_suffix"))})

    def get_ext_filename(self, fullname: str) -> str:
        """The path of an extension's library."""
        path = str(super().get_ext_filename(fullname))
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        return path.removesuffix(suffix) + Path(suffix).suffix if self.plain_suffix else path

    def build_extension(self, ext: Extension) -> None:
        """Compile and link one extension."""
        if not isinstance(ext, _Extension):
            super().build_extension(ext)
            return
        workspace = Path(self.build_temp, ext.name).absolute()
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir(parents=True)
        library = compile.build_library(self._job(ext), workspace)
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, target)
        shutil.copymode(library, target)

    def _job(self, ext: _Extension) -> compile.Job:
        given = ext.extra_compile_args
        flags: Mapping[str, Sequence[str]] = given if isinstance(given, dict) else {"cxx": given or []}
        own = [os.path.abspath(each) for each in ext.include_dirs]
        sources = [os.path.abspath(each) for each in ext.sources]
        macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in ext.define_macros]
        macros += [f"-U{name}" for name in ext.undef_macros]
        if includes_pybind11(sources, own):
            macros += pybind11_flags()
        libraries = [f"-L{os.path.abspath(each)}" for each in ext.library_dirs]
        libraries += [f"-Wl,-rpath,{each}" for each in ext.runtime_library_dirs]
        libraries += [os.path.abspath(each) for each in ext.extra_objects]
        return compile.Job(
            name=ext.name.rpartition(".")[2], sources=sources, cflags=[*macros, *flags.get("cxx", [])],
            cuda_cflags=[*macros, *flags.get("nvcc", [])],
            ldflags=[*libraries, *(ext.extra_link_args or []), *(f"-l{each}" for each in ext.libraries)],
            include_paths=[*own, *include_paths()], cuda=ext.cuda, verbose=bool(self.verbose and self.verbose > 1),
        )  # fmt: skip
