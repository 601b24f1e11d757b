"""Building when a program runs: ``load`` and ``load_inline``.

The way of a library that is in the cache is short, and starts no other program: hash the arguments, read the
record, look at the files that it names, import.  Everything else is imported when something must be built.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

from . import toolchain
from .cache import Cache, Dependency, Record, default_root, digest_file, evict, exclusive, stamp
from .headers import include_paths, includes_pybind11, pybind11_flags

__all__ = ["load", "load_inline"]

#: Variables that choose the compiler and the cache, and variables that change what a compiler does.
_CHOOSING: Final = ("CXX", "CC", "CUDA_HOME", "CUDA_PATH", "PATH", "TORCH_EXTENSIONS_DIR", "XDG_CACHE_HOME")
_CHANGING: Final = ("TORCH_CUDA_ARCH_LIST", "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH")
#: Longer than the steps in which file systems tell time, in seconds.
_CLOCK_TICK: Final = 0.02
_ABI: Final = (sys.implementation.cache_tag, sys.version, sys.base_prefix, importlib.machinery.EXTENSION_SUFFIXES[0])
#: Folders whose files come with the compiler or Python: looked at once in a process.
_SYSTEM: Final = (
    "/usr/include/",
    "/usr/lib/",
    "/Library/",
    "/Applications/",
    os.path.join(sys.base_prefix, "include") + os.sep,
)


class Request(NamedTuple):
    """What was asked for; equal requests with unchanged files give one library."""

    name: str
    sources: tuple[str, ...]
    #: (file name, contents) of sources that came as text
    texts: tuple[tuple[str, str], ...]
    cflags: tuple[str, ...]
    cuda_cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    include_paths: tuple[str, ...]
    folder: str | None
    cuda: bool
    pybind11: bool
    python_module: bool
    choosing: tuple[str | None, ...]
    changing: tuple[str | None, ...]


class _Loaded(NamedTuple):
    result: Any
    record: Record


_loaded: Final[dict[Request, _Loaded]] = {}
_lock: Final = threading.RLock()


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    keep_intermediates: bool = True,
    use_pybind11: bool = False,
) -> Any:
    """Build C++, C and CUDA sources and import what they define.

    What was built before from the same files with the same compiler and flags comes from the cache.

    Args:
        name: of the module; the sources say ``PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)``.
        sources: paths; ``.cu`` is compiled by nvcc, ``.c`` as C, everything else as C++.
        extra_cflags: for the C and C++ compiler.
        extra_cuda_cflags: for nvcc.
        extra_ldflags: for the linker, such as ``-lfftw3``.
        extra_include_paths: folders of headers.
        build_directory: where the library is put, instead of the cache.
        verbose: print the commands and what they print.
        with_cuda: with CUDA's headers and libraries; by default, if there are ``.cu`` sources.
        is_python_module: if False, only load the library into the process, and return its path.
        keep_intermediates: keep sources given as text beside the library, and objects in a ``build_directory``.
        use_pybind11: bind with pybind11 (which must be installed) instead of flambeau's own binder; a source that
            includes one of pybind11's headers has it in any case.

    Raises:
        RuntimeError: a compiler is missing or refused; the first lines are the compiler's own.
        ImportError: the library cannot be imported, for example because a symbol is missing.
        FileNotFoundError: a source does not exist.

    Returns:
        The module.
    """
    paths = (sources,) if isinstance(sources, str) else tuple(map(os.fspath, sources))
    paths = tuple(map(os.path.abspath, paths))
    request = _request(
        name, paths, (), extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
        with_cuda, is_python_module, use_pybind11,
    )  # fmt: skip
    return _load(request, verbose, keep_intermediates)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    keep_intermediates: bool = True,
    use_pybind11: bool = False,
) -> Any:
    """Like :func:`load`, for sources given as text; ``torch/extension.h`` is included by itself.

    Args:
        cpp_sources: texts in C++; several are joined.
        cuda_sources: texts in CUDA C++.
        functions: names of functions to bind, or a mapping of names to their documentation.

    >>> from flambeau.utils.cpp_extension import load_inline
    >>> source = "at::Tensor twice(at::Tensor x) { return x + x; }"
    >>> module = load_inline("twice_example", source, functions=["twice"])  # doctest: +SKIP
    """
    cpp = cpp_sources if isinstance(cpp_sources, str) else "\n".join(cpp_sources)
    cuda = cuda_sources if isinstance(cuda_sources, str) else "\n".join(cuda_sources or ())
    if isinstance(functions, str):
        functions = [functions]
    if functions is not None:
        described = functions if isinstance(functions, Mapping) else {each: each for each in functions}
        bound = "".join(f'\n  m.def("{each}", &{each}, {_quoted(text)});' for each, text in described.items())
        cpp += f"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{{bound}\n}}\n"
    texts = (("main.cpp", cpp), *([("main.cu", cuda)] if cuda else []))
    request = _request(
        name, (), texts, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory, with_cuda,
        is_python_module, use_pybind11,
    )  # fmt: skip
    return _load(request, verbose, keep_intermediates)


def _quoted(text: str) -> str:
    """A C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _request(
    name: str, sources: tuple[str, ...], texts: tuple[tuple[str, str], ...], cflags: Sequence[str] | None,
    cuda_cflags: Sequence[str] | None, ldflags: Sequence[str] | None, includes: Sequence[str] | None,
    folder: str | os.PathLike[str] | None, cuda: bool | None, python_module: bool, pybind11: bool,
) -> Request:  # fmt: skip
    if not name.isidentifier():
        raise ValueError(f"The name of an extension is that of a module, got {name!r}.")
    if not sources and not texts:
        raise ValueError(f"The extension {name!r} has no sources.")
    if cuda is None:
        cuda = any(toolchain.language_of(each) == "CUDA" for each in (*sources, *(file for file, _ in texts)))
    return Request(
        name, sources, texts, tuple(cflags or ()),
        tuple(cuda_cflags or ()), tuple(ldflags or ()), tuple(map(os.path.abspath, includes or ())),
        None if folder is None else os.fspath(folder), cuda, pybind11, python_module,
        tuple(map(os.environ.get, _CHOOSING)), tuple(map(os.environ.get, _CHANGING)),
    )  # fmt: skip


def _load(request: Request, verbose: bool, keep: bool) -> Any:
    found = _loaded.get(request)
    if found is not None and found.record.valid(system=False):
        return found.result
    with _lock:
        cache = Cache(request.name, request.folder)
        key = _key(request)
        record = cache.find(key)
        if record is not None:
            try:
                return _import(request, record)
            except ImportError:
                if os.path.exists(record.library):
                    raise
        with exclusive(cache.folder):  # another process may have built it, or be about to
            record = cache.find(key) or _build(request, cache, key, verbose, keep)
            try:
                return _import(request, record)
            except ImportError:
                cache.drop(key)
                raise


def _key(request: Request) -> str:
    """The name of what is asked for: everything that is known before the headers are."""
    contents = []
    for path in request.sources:
        found = digest_file(path)
        if not found:
            raise FileNotFoundError(f"The source {path} of the extension {request.name!r} cannot be read.")
        contents.append(found)
    asked = request._replace(folder=None, choosing=())
    compilers = [(command, *map(toolchain.identity, command)) for command in _compilers(request)]
    native = any("native" in word for words in (request.cflags, request.cuda_cflags, *compilers) for word in words)
    facts = (asked, contents, compilers, _ABI, include_paths(), toolchain.processor() if native else "")
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _compilers(request: Request) -> list[list[str]]:
    languages = {toolchain.language_of(each) for each in (*request.sources, *(name for name, _ in request.texts))}
    found = [toolchain.compiler_for("C")] if "C" in languages else []
    if languages != {"C"}:
        found.append(toolchain.compiler_for("C++"))
    if "CUDA" in languages:
        found.append([toolchain.nvcc()])
    return found


def _build(request: Request, cache: Cache, key: str, verbose: bool, keep: bool) -> Record:
    """Build a library and put it into the cache; the lock of its folder is held."""
    compile_ = importlib.import_module(".compile", __package__)
    time.sleep(_CLOCK_TICK)  # a file that was just written is older than the workspace
    workspace = cache.workspace()
    for name, text in request.texts:
        (workspace / name).write_text(text, encoding="utf-8")
    names = [*request.sources, *(name for name, _ in request.texts)]
    given = ["-include", "torch/extension.h"] if request.texts else []
    cflags = [*request.cflags, *given]
    if request.pybind11 or includes_pybind11([str(workspace / each) for each in names], request.include_paths):
        cflags += pybind11_flags()
    job = compile_.Job(
        name=request.name, sources=names, cflags=cflags, cuda_cflags=[*request.cuda_cflags, *given],
        ldflags=list(request.ldflags), include_paths=[*request.include_paths, *include_paths()], cuda=request.cuda,
        verbose=verbose,
    )  # fmt: skip
    started = workspace.stat().st_ctime_ns
    library = compile_.build_library(job, workspace)
    own: list[Dependency] = []
    system: list[Dependency] = []
    for path in sorted(compile_.dependencies_of(workspace) | compile_.linked_files(request.ldflags)):
        if not path.startswith(f"{workspace}{os.sep}"):
            found = stamp(path)
            settled = found is not None and found[1] < started
            (system if path.startswith(_SYSTEM) else own).append(
                Dependency(path, found if settled else None, digest_file(path))
            )
    record = cache.publish(key, library, own, system, _absent(request, own))
    if not keep:
        shutil.rmtree(workspace)
    elif request.folder is None:  # nobody looks for objects in the cache, and they are larger than libraries
        for path in workspace.glob("*.o"):
            path.unlink()
    evict(default_root(), keep=[record.library])
    return record


def _absent(request: Request, own: Sequence[Dependency]) -> list[str]:
    """Files that do not exist, and that the compiler might read instead of others if they did."""
    folders = {*map(os.path.dirname, request.sources), *request.include_paths, *include_paths()}
    found = set()
    for each in own:
        for holder in folders:
            if each.path.startswith(holder + os.sep):
                name = os.path.relpath(each.path, holder)
                found |= {os.path.join(folder, name) for folder in folders}
    return sorted(path for path in found if not os.path.exists(path))


def _import(request: Request, record: Record) -> Any:
    if request.cuda:
        toolchain.warn_without_driver(request.name)
    if request.python_module:
        result: Any = _import_module(request.name, record.library)
    else:
        ctypes = importlib.import_module("ctypes")
        ctypes.CDLL(record.library, mode=ctypes.RTLD_GLOBAL)
        result = record.library
    _loaded[request] = _Loaded(result, record)
    return result


def _import_module(name: str, library: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, library)
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    before = sys.modules.get(name)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        if "undefined symbol" in str(error) or "symbol not found" in str(error):
            symbol = str(error).rpartition(": ")[2].strip()
            raise ImportError(
                f"The extension {name!r} uses {_readable(symbol)}, which nothing defines.\n"
                "Add the source that defines it to `sources`, or its library to extra_ldflags.",
                name=name, path=library,
            ) from error  # fmt: skip
        if "PyInit_" in str(error):
            raise ImportError(
                f"The extension {name!r} defines no module of that name.\n"
                "Write PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { ... }, or pass functions=[...] to load_inline, or "
                "is_python_module=False.",
                name=name, path=library,
            ) from error  # fmt: skip
        raise
    finally:  # CPython registers such modules; one that is not ours keeps its place
        if before is not None and all(before is not each.result for each in _loaded.values()):
            sys.modules[name] = before
    return module


def _readable(symbol: str) -> str:
    """A symbol of C++ as it is written in sources, where the tool that knows is installed."""
    if symbol.startswith("_Z") and shutil.which("c++filt"):
        subprocess = importlib.import_module("subprocess")
        return str(subprocess.run(["c++filt", symbol], capture_output=True, text=True).stdout.strip()) or symbol
    return symbol
