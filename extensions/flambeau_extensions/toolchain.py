"""Compilers: which are used, what identifies them, and the flags that each platform needs."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any, Final

__all__ = [
    "CUDA_HOME", "NO_COMPILER", "NO_NVCC", "compiler_for", "cuda_architectures", "cuda_home", "identity", "nvcc",
    "link_flags", "platform_flags", "processor", "warn_without_driver",
]  # fmt: skip

NO_COMPILER: Final = """\
The {language} compiler {command!r} was not found.
Install one (Debian, Ubuntu: apt-get install {package}; Fedora: dnf install {fedora}; macOS: xcode-select --install),
or name another: {variable}=/path/to/compiler."""
NO_NVCC: Final = """\
CUDA sources need nvcc, which was not found in CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda.
Install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or name its folder: CUDA_HOME=/path/to/cuda."""

_LANGUAGES: Final[dict[str, dict[str, str]]] = {
    "C++": {"variable": "CXX", "default": "c++", "package": "g++", "fedora": "gcc-c++"},
    "C": {"variable": "CC", "default": "cc", "package": "gcc", "fedora": "gcc"},
}
_MACOS: Final = sys.platform == "darwin"


def language_of(source: str) -> str:
    """The language that a file's ending names: C, C++ or CUDA."""
    suffix = Path(source).suffix
    return "CUDA" if suffix in (".cu", ".cuh") else "C" if suffix == ".c" else "C++"


def compiler_for(language: str) -> list[str]:
    """The command of the compiler: that of the environment (CXX, CC), else c++ or cc.

    Raises:
        RuntimeError: it does not exist.
    """
    facts = _LANGUAGES[language]
    command = shlex.split(os.environ.get(facts["variable"]) or facts["default"])
    if not command or not shutil.which(command[0]):
        raise RuntimeError(NO_COMPILER.format(language=language, command=" ".join(command), **facts))
    return command


def cuda_home() -> str | None:
    """The folder of the CUDA toolkit: CUDA_HOME, CUDA_PATH, that of the nvcc in PATH, or /usr/local/cuda."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    if os.path.exists("/usr/local/cuda/bin/nvcc"):
        return "/usr/local/cuda"
    found = shutil.which("nvcc")
    return str(Path(found).resolve().parent.parent) if found else None


#: The folder of the CUDA toolkit when this module was imported, or None.
CUDA_HOME: Final = cuda_home()


def nvcc() -> str:
    """The path of the CUDA compiler.

    Raises:
        RuntimeError: there is none.
    """
    home = cuda_home()
    found = shutil.which("nvcc", path=os.path.join(home, "bin")) if home else None
    if not found:
        raise RuntimeError(NO_NVCC)
    return found


def identity(word: str) -> list[Any]:
    """What changes when a program that a word of a command names does: that is any, in ``ccache g++``.

    Every program of that name in PATH counts: the first may be a wrapper that calls the next.
    """
    folders = [""] if os.path.dirname(word) else os.environ.get("PATH", os.defpath).split(os.pathsep)
    found: list[Any] = []
    for folder in folders:
        path = os.path.join(folder, word)
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append((os.path.realpath(path), status.st_size, status.st_mtime_ns))
    return found


def processor() -> str:
    """What ``-march=native`` stands for on this machine, where Linux tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read().partition("\n\n")[0].splitlines()
    except OSError:
        return ""
    return "\n".join(each for each in first if each.startswith(("model name", "flags", "CPU part", "Features", "isa")))


def platform_flags(language: str) -> list[str]:
    """Flags that every extension is compiled with; those that a user gives follow and win."""
    flags = ["-O2", "-fPIC", "-fvisibility=hidden", f"-I{sysconfig.get_paths()['include']}"]
    if language == "C++":
        flags.append("-std=c++17")
        if not _MACOS:
            flags.append("-fno-gnu-unique")  # else statics would be shared with older builds of the same extension
    return flags


def link_flags() -> list[str]:
    """Flags that make a library of objects."""
    return ["-bundle", "-undefined", "dynamic_lookup"] if _MACOS else ["-shared"]


def cuda_architectures(listed: str, known: list[str]) -> list[str]:
    """The flags for TORCH_CUDA_ARCH_LIST, such as ``"8.0;9.0+PTX"``; PTX for the oldest architecture if it is empty.

    Args:
        listed: architectures divided by semicolons or blanks; ``+PTX`` adds code that newer devices can translate.
        known: architectures of the compiler, as ``compute_80``.

    Raises:
        RuntimeError: something is not an architecture.
    """
    if not listed.strip():
        oldest = min(known, key=lambda each: (len(each), each))  # compute_75 is older than compute_100
        return [f"-gencode=arch={oldest},code={oldest}"]
    flags = []
    for each in listed.replace(";", " ").split():
        version, plus, _ = each.partition("+PTX")
        number = version.replace(".", "")
        if not number[:-1].isdigit() or "." not in version:
            raise RuntimeError(
                f"TORCH_CUDA_ARCH_LIST: expected architectures such as '8.0' or '9.0+PTX', got {each!r} in {listed!r}."
            )
        flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if plus:
            flags.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return flags


def warn_without_driver(name: str) -> None:
    """Say that an extension's kernels cannot run, where there is no CUDA driver."""
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(library)
    except OSError:
        warnings.warn(
            f"The extension {name!r} is built for CUDA, and this machine has no CUDA driver ({library}): its kernels "
            "cannot run.\nInstall NVIDIA's driver, or call only what runs on the host.",
            RuntimeWarning,
        )
