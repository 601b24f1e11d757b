"""C functions of one's own, called through cffi; public as ``flambeau.utils.ffi``."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cffi import model
from cffi.cparser import Parser

from flambeau.errors import FatalError

from .cache import replace_text
from .compile import Job, build_library
from .headers import INCLUDE
from .tensors import DECLARATIONS, load_functions

__all__ = ["Extension", "FatalError", "create_extension", "load_functions"]

_GUARD: Final = """\
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "TH/TH.h"
{headers}
#define EXPORTED __attribute__((visibility("default")))
typedef struct {{ char none; }} flambeau_nothing;
static __thread jmp_buf *flambeau_place;
static __thread char flambeau_message[1024];
EXPORTED const char *flambeau_said(void) {{ return flambeau_message; }}
static void leave(const char *file, int line, const char *prefix, const char *format, va_list values) {{
  int used = snprintf(flambeau_message, sizeof flambeau_message, "%s", prefix);
  used += vsnprintf(flambeau_message + used, sizeof flambeau_message - used, format, values);
  if (used < (int)sizeof flambeau_message) {{
    snprintf(flambeau_message + used, sizeof flambeau_message - used, " (%s:%d)", file, line);
  }}
  if (!flambeau_place) {{
    fprintf(stderr, "%s\\n", flambeau_message);
    abort();
  }}
  longjmp(*flambeau_place, 1);
}}
void flambeau_raise(const char *file, int line, const char *format, ...) {{
  va_list values;
  va_start(values, format);
  leave(file, line, "", format, values);
  abort();
}}
void flambeau_raise_argument(const char *file, int line, int number, const char *format, ...) {{
  char prefix[64];
  va_list values;
  snprintf(prefix, sizeof prefix, "invalid argument %d: ", number);
  va_start(values, format);
  leave(file, line, prefix, format, values);
  abort();
}}
"""
_CALL: Final = """\
EXPORTED int flambeau_call_{name}({parameters}) {{
  jmp_buf here, *before = flambeau_place;
  if (setjmp(here)) {{
    flambeau_place = before;
    return 1;
  }}
  flambeau_place = &here;
  {assign}{name}({values});
  flambeau_place = before;
  return 0;
}}
"""
_MODULE: Final = '''\
"""C functions, built by flambeau.utils.ffi."""

import os

from flambeau.utils.ffi import load_functions

FUNCTIONS = {functions!r}  # and the positions of the pointers that they may write through
__all__ = [*FUNCTIONS]
DECLARATIONS = {declarations!r}
load_functions(globals(), os.path.join(os.path.dirname(__file__), {library!r}), DECLARATIONS, FUNCTIONS)
'''
_OPTIONS: Final = frozenset({
    "define_macros", "include_dirs", "libraries", "library_dirs", "runtime_library_dirs", "extra_objects",
    "extra_compile_args", "extra_link_args",
})  # fmt: skip


class Extension:
    """C functions to be built into a Python module; made by :func:`create_extension`."""

    def __init__(
        self,
        name: str,
        headers: Sequence[str],
        sources: Sequence[str],
        verbose: bool,
        base: Path,
        options: dict[str, Any],
    ) -> None:
        self.name, self.headers, self.sources = name, headers, sources
        self.verbose, self.base, self.options = verbose, base, options

    def __repr__(self) -> str:
        return f"<C extension {self.name} of {', '.join(self.sources)}>"

    def build(self) -> None:
        """Compile, and write the module: a package of the extension's name beneath the folder that it is relative to.

        Raises:
            RuntimeError: the compiler refused; the first lines are its own.
            TypeError: a function takes or returns what Python has nothing for.
        """
        headers = [self._path(each) for each in self.headers]
        functions = _functions("".join(each.read_text(encoding="utf-8") for each in headers))
        folder = self.base.joinpath(*self.name.split("."))
        workspace = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
        included = "\n".join(f'#include "{each}"' for each in headers)
        calls = [_call_of(each, kind) for each, kind in functions.items()]
        (workspace / "flambeau_calls.c").write_text(
            _GUARD.format(headers=included) + "".join(_CALL.format(**each) for each in calls), encoding="utf-8"
        )
        library = build_library(self._job(str(workspace / "flambeau_calls.c")), workspace)
        declarations = "".join("int flambeau_call_{name}({parameters});\n".format(**each) for each in calls)
        self._publish(folder, library, declarations, {name: _written(kind) for name, kind in functions.items()})
        shutil.rmtree(workspace)

    def _path(self, name: str) -> Path:
        path = self.base / name
        if not path.exists():
            raise FileNotFoundError(f"The extension {self.name!r} wants {path}, which does not exist.")
        return path

    def _job(self, calls: str) -> Job:
        get = self.options.get
        macros = [f"-D{key}" if value is None else f"-D{key}={value}" for key, value in get("define_macros", ())]
        links = [
            *map("-L{}".format, get("library_dirs", ())),
            *map("-Wl,-rpath,{}".format, get("runtime_library_dirs", ())),
        ]
        return Job(
            name=self.name.rpartition(".")[2],
            sources=[*(str(self._path(each)) for each in self.sources), calls],
            cflags=[*macros, *get("extra_compile_args", ())],
            ldflags=[
                *get("extra_objects", ()),
                *links,
                *map("-l{}".format, get("libraries", ())),
                *get("extra_link_args", ()),
            ],
            include_paths=[*(str(self.base / each) for each in get("include_dirs", ())), str(INCLUDE)],
            verbose=self.verbose,
        )

    def _publish(self, folder: Path, library: Path, declarations: str, functions: dict[str, list[int]]) -> None:
        """Put the module in its place; a process that uses the one before keeps its library."""
        folder.mkdir(parents=True, exist_ok=True)
        for each in [folder, *folder.parents]:
            if each == self.base:
                break
            if not (each / "__init__.py").exists():
                (each / "__init__.py").write_text("")
        digest = hashlib.sha256(library.read_bytes()).hexdigest()[:12]
        final = folder / f"_{folder.name}.{digest}.so"
        partial = final.with_name(f"{final.name}.{os.getpid()}")
        shutil.copyfile(library, partial)
        partial.replace(final)
        declarations = f"typedef struct {{ char none; }} flambeau_nothing;\n{declarations}"
        text = _MODULE.format(functions=functions, library=final.name, declarations=declarations)
        replace_text(folder / "__init__.py", text)
        for each in folder.glob(f"_{folder.name}.*.so"):
            if each != final:
                each.unlink()


def _functions(text: str) -> dict[str, Any]:
    """The functions that headers declare."""
    parser = Parser()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    parser.parse(DECLARATIONS + "\n".join(lines))
    found = {}
    for key, (kind, _) in parser._declarations.items():
        what, _, name = key.partition(" ")
        if what == "function":
            found[name] = kind
    if not found:
        raise ValueError("The headers declare no function.\nDeclare each one that Python shall call: int f(float *x);")
    return found


def _written(kind: Any) -> list[int]:
    """The positions of the pointers through which a function may write."""
    return [
        i for i, each in enumerate(kind.args) if isinstance(each, model.PointerType) and not each.quals & model.Q_CONST
    ]


def _call_of(name: str, kind: Any) -> dict[str, str]:
    """What the function that calls another one, and notes what it returns, is made of."""
    if getattr(kind, "ellipsis", False):
        raise TypeError(f"{name}(): a function with a variable number of arguments cannot be called from Python.")
    count = range(len(kind.args))
    nothing = isinstance(kind.result, model.VoidType)
    if not nothing and not isinstance(kind.result, model.PrimitiveType):
        raise TypeError(f"{name}(): returns {kind.result.get_c_name()!r}; return a number, or write into a tensor.")
    result = "flambeau_nothing *result" if nothing else kind.result.get_c_name(" *result")
    return {
        "name": name,
        "parameters": ", ".join([*[kind.args[i].get_c_name(f" a{i}") for i in count], result]),
        "values": ", ".join(f"a{i}" for i in count),
        "assign": "" if nothing else "*result = ",
    }


def create_extension(
    name: str,
    headers: str | Sequence[str],
    sources: Sequence[str],
    verbose: bool = True,
    with_cuda: bool = False,
    package: bool = False,
    relative_to: str | os.PathLike[str] = ".",
    **kwargs: Any,
) -> Extension:
    """Prepare C functions for Python; ``build()`` compiles them into a module.

    Tensors are passed as typed pointers (``float *`` for a contiguous float32 tensor) or as TH's structures
    (``THFloatTensor *``, see ``TH/TH.h``).  ``THError`` and ``THArgCheck`` raise :class:`FatalError`.

    Args:
        name: of the module, such as ``"_ext.my_lib"``; packages that do not exist are made.
        headers: files that declare the functions.
        sources: files in C.
        verbose: print the compiler's commands.
        with_cuda: not served: build CUDA C++ with :class:`flambeau.utils.cpp_extension.CUDAExtension`.
        package: whether the module is for a package that will be installed; it is built in the same place.
        relative_to: a file beside which names of files and the module are looked for, usually ``__file__``.
        kwargs: ``define_macros``, ``include_dirs``, ``libraries``, ``library_dirs``, ``runtime_library_dirs``,
            ``extra_objects``, ``extra_compile_args``, ``extra_link_args``, as setuptools has them.

    Raises:
        ValueError: the name is not that of a module.
        TypeError: an unknown argument.

    >>> from flambeau.utils.ffi import create_extension
    >>> create_extension("_ext.my_lib", headers="my_lib.h", sources=["my_lib.c"], verbose=False)
    <C extension _ext.my_lib of my_lib.c>
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"The name of an extension is that of a module, such as '_ext.my_lib'; got {name!r}.")
    unknown = kwargs.keys() - _OPTIONS
    if unknown:
        raise TypeError(
            f"create_extension(): unknown argument {min(unknown)!r}; known are {', '.join(sorted(_OPTIONS))}."
        )
    if with_cuda:
        raise NotImplementedError(
            "create_extension() builds C for the host.\nBuild CUDA C++ with flambeau.utils.cpp_extension.load or CUDAExtension."
        )
    listed = [headers] if isinstance(headers, str) else list(headers)
    base = Path(os.path.abspath(os.path.dirname(os.fspath(relative_to))))
    return Extension(name, listed, list(sources), verbose, base, kwargs)
