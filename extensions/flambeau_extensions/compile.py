"""Running compilers: sources to objects, side by side, objects to a library; and errors that a reader can use."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from flambeau.errors import FlambeauError

from . import toolchain

__all__ = ["CompileError", "Job", "build_library", "dependencies_of", "linked_files"]

_ERROR: Final = re.compile(
    r"^.+?(:\d+(:\d+)?|\(\d+\)): (fatal )?error[:\s].*|^.*(undefined reference|cannot find -l|ld: ).*"
)
#: What one compiler needs; fewer run side by side where there is less.
_MEMORY_OF_A_COMPILER: Final = 700 << 20
#: What else to do, if the compiler's words are like this.
_HINTS: Final = {
    r"pybind11|\bpy::": "If it is a part of pybind11 that flambeau's own binder lacks: pass use_pybind11=True.",
    r"Python\.h": "Install Python's headers (Debian, Ubuntu: apt-get install python3-dev; Fedora: dnf install python3-devel).",
}
_MOST_LINES: Final = 12


class CompileError(FlambeauError, RuntimeError):
    """A compiler refused; the first lines of the message are its own."""


@dataclass
class Job:
    """A library to build: from which sources, with which flags."""

    name: str
    sources: list[str]
    cflags: list[str] = field(default_factory=list)
    cuda_cflags: list[str] = field(default_factory=list)
    ldflags: list[str] = field(default_factory=list)
    include_paths: list[str] = field(default_factory=list)
    cuda: bool = False
    verbose: bool = False

    def commands(self) -> list[list[str]]:
        """The command for each source; relative paths are those of the workspace."""
        return [self._command(source, f"{i}-{Path(source).stem}") for i, source in enumerate(self.sources)]

    def _command(self, source: str, stem: str) -> list[str]:
        language = toolchain.language_of(source)
        defined = [f"-DTORCH_EXTENSION_NAME={self.name}", *(["-DWITH_CUDA"] if self.cuda else [])]
        included = [f"-I{path}" for path in self.include_paths]
        files = ["-MD", "-MF", f"{stem}.d", "-c", source, "-o", f"{stem}.o"]
        if language == "CUDA":
            compiler = toolchain.nvcc()
            known = subprocess.run([compiler, "--list-gpu-arch"], capture_output=True, text=True, check=True)
            listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
            chosen = toolchain.cuda_architectures(listed, known.stdout.split())
            own = any(each.startswith(("-gencode", "--gpu", "-arch")) for each in self.cuda_cflags)
            host = [each for each in toolchain.platform_flags("C++") if not each.startswith(("-I", "-std", "-O"))]
            python = [each for each in toolchain.platform_flags("C") if each.startswith("-I")]
            return [
                compiler, "-O2", "-std=c++17", "--expt-relaxed-constexpr", *([] if own else chosen), *defined, *included,
                *python, *(part for flag in host for part in ("-Xcompiler", flag)), *self.cuda_cflags, *files,
            ]  # fmt: skip
        flags = toolchain.platform_flags(language)
        cuda = [f"-I{toolchain.cuda_home()}/include"] if self.cuda else []
        return [*toolchain.compiler_for(language), *flags, *defined, *included, *cuda, *self.cflags, *files]

    def link_command(self, objects: Sequence[str], library: str) -> list[str]:
        """The command that makes the library."""
        compiler = toolchain.compiler_for("C" if all(map(_is_c, self.sources)) else "C++")
        cuda = [f"-L{toolchain.cuda_home()}/lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"] if self.cuda else []
        return [*compiler, *toolchain.link_flags(), *objects, "-o", library, *self.ldflags, *cuda]


def _is_c(source: str) -> bool:
    return toolchain.language_of(source) == "C"


def workers(jobs: int) -> int:
    """How many compilers run side by side: MAX_JOBS, else as many as cores and free memory allow.

    Raises:
        ValueError: MAX_JOBS is no number.
    """
    named = os.environ.get("MAX_JOBS")
    if named:
        if not named.isdigit():
            raise ValueError(f"MAX_JOBS: expected a number of compilers, got {named!r}.")
        return max(1, min(jobs, int(named)))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        text = Path("/proc/meminfo").read_text()
        memory = int(re.findall(r"MemAvailable:\s+(\d+) kB", text)[0]) << 10
        cores = min(cores, memory // _MEMORY_OF_A_COMPILER)
    except (OSError, IndexError):
        pass  # not Linux
    return max(1, min(jobs, cores))


def build_library(job: Job, workspace: Path) -> Path:
    """Compile and link in a workspace; the path of the library.

    Raises:
        CompileError: a compiler or the linker refused.
    """
    commands = job.commands()
    with ThreadPoolExecutor(workers(len(commands))) as pool:
        done = list(pool.map(lambda command: _run(command, workspace, job.verbose), commands))
    _check(job, workspace, done)
    link = job.link_command([command[-1] for command in commands], "library")
    _check(job, workspace, [_run(link, workspace, job.verbose)])
    return workspace / "library"


def _run(command: list[str], workspace: Path, verbose: bool) -> tuple[list[str], int, str]:
    if verbose:
        print(shlex.join(command), flush=True)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # messages that _ERROR knows
    done = subprocess.run(
        command, cwd=workspace, env=environment, text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if verbose and done.stdout:
        print(done.stdout, flush=True)
    return command, done.returncode, done.stdout


def _check(job: Job, workspace: Path, done: Sequence[tuple[list[str], int, str]]) -> None:
    """Raise what went wrong, with everything that is needed to look into it kept in a log."""
    failed = [each for each in done if each[1]]
    if not failed:
        return
    log = workspace / "build.log"
    log.write_text("".join(f"$ {shlex.join(command)}\n{output}\n" for command, _, output in done), encoding="utf-8")
    command, _, output = failed[0]
    lines = output.splitlines()
    starts = [i for i, line in enumerate(lines) if _ERROR.match(line)]
    shown = lines[starts[0] : starts[0] + _MOST_LINES] if starts else lines[-_MOST_LINES:]
    if len(starts) > 1:
        shown = lines[starts[0] : min(starts[1], starts[0] + _MOST_LINES)]
        shown += [lines[i] for i in starts[1:4]]
    hint = "".join(f"\n{text}" for sign, text in _HINTS.items() if any(re.search(sign, line) for line in shown))
    raise CompileError(
        "\n".join(shown) + f"\nBuilding the extension {job.name!r} failed.{hint}\n"
        f"Whole output: {log}\nRun again: cd {shlex.quote(str(workspace))} && {shlex.join(command)}"
    )


def linked_files(ldflags: Sequence[str]) -> set[str]:
    """The user's libraries and objects that flags of the linker name: paths, and ``-l`` in the folders of ``-L``."""
    folders = [flag[2:] for flag in ldflags if flag.startswith("-L")]
    names = [
        f"lib{flag[2:]}{suffix}" for flag in ldflags if flag.startswith("-l") for suffix in (".so", ".a", ".dylib")
    ]
    named = [os.path.join(folder, name) for folder in folders for name in names]
    return {os.path.abspath(path) for path in [*named, *ldflags] if os.path.isfile(path)}


def dependencies_of(workspace: Path) -> set[str]:
    """The files that the compilers read, from the lists that they wrote."""
    found = set()
    for path in workspace.glob("*.d"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
        _, _, listed = text.partition(": ")
        for each in re.split(r"(?<!\\)\s+", listed.strip()):
            found.add(os.path.normpath(workspace / each.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$")))
    return found
