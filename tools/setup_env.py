"""Make the virtual environment that the Makefile's targets run in.

    python3 tools/setup_env.py            the packages and the test tools, in .venv
    python3 tools/setup_env.py --for demo
    python3 tools/setup_env.py --sanitize with kernels built for AddressSanitizer, in .venv-sanitize

Needs nothing but Python: it runs before anything is installed.  Every step is done once and again only
when what it depends on has changed; an interrupted step starts over.  Output goes to VENV/setup.log.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 10)
SKIPPED = {"build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache"}

NO_COMPILER = """\
The CPU plug-in is compiled from C, and {missing}.
Install a C compiler and Python's headers:
  Debian, Ubuntu   apt-get install gcc python3-dev
  Fedora, RHEL     dnf install gcc python3-devel
  Arch             pacman -S gcc
  macOS            xcode-select --install
Another compiler can be named: make CC=/path/to/cc ..."""
NO_CPP_COMPILER = """\
The tests build extensions in C++, and the compiler {compiler!r} was not found.
Install one:
  Debian, Ubuntu   apt-get install g++
  Fedora, RHEL     dnf install gcc-c++
  Arch             pacman -S gcc
  macOS            xcode-select --install
Another compiler can be named: make CXX=/path/to/c++ ..."""
NO_VENV = """\
This Python cannot make virtual environments (its module ensurepip is missing).
  Debian, Ubuntu   apt-get install python3-venv"""
OLD_PYTHON = """\
flambeau needs Python {wanted} or newer; {executable} is {found}.
Install a newer one, or name it: make PYTHON=python3.12 ..."""


def require(condition, message, **values):
    if not condition:
        sys.exit("\n" + message.format(**values) + "\n")


def check_machine(purpose):
    """Say what to install before anything is begun."""
    require(
        sys.version_info >= OLDEST, OLD_PYTHON, wanted="{}.{}".format(*OLDEST), executable=sys.executable,
        found=sys.version.split()[0],
    )  # fmt: skip
    try:
        __import__("ensurepip")
    except ImportError:
        require(False, NO_VENV)
    compiler = os.environ.get("CC", "cc").split()[0]
    require(shutil.which(compiler), NO_COMPILER, missing=f"the compiler {compiler!r} was not found")
    compiler = os.environ.get("CXX", "c++").split()[0]
    require(purpose != "test" or shutil.which(compiler), NO_CPP_COMPILER, compiler=compiler)
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    require(header.exists(), NO_COMPILER, missing=f"{header} does not exist")


def sources(folder):
    """The files of a package, build products left out."""
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in SKIPPED and not each.endswith(".egg-info"))
        for name in sorted(files):
            if not name.endswith((".so", ".o", ".pyc")):
                yield Path(base, name)


def digest(paths, *facts):
    """A hash of files' names and contents, and of anything else that matters."""
    found = hashlib.sha256(repr((sys.version, sys.base_prefix, *facts)).encode())
    for path in paths:
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


class Environment:
    """A virtual environment, made in steps that are skipped when they were done before."""

    def __init__(self, folder, steps):
        self.folder, self.steps, self.number = folder, steps, 0
        self.python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))

    def step(self, what, stamp, paths, facts, *commands, cwd=ROOT):
        """Run commands unless the stamp says that the same was done before."""
        self.number += 1
        title = f"[{self.number}/{self.steps}] {what}"
        mark = self.folder / "stamps" / stamp
        wanted = digest(paths, *facts)
        if mark.exists() and mark.read_text() == wanted:
            return
        if mark.exists():
            mark.unlink()
        start = time.monotonic()
        for command in commands:
            self.run(title, [str(part) for part in command], cwd, start)
        print(f"\r{title}: {time.monotonic() - start:.0f} s", flush=True)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(wanted)

    def run(self, title, command, cwd, start):
        log = ROOT / f"{self.folder.name}-setup.log"
        live = sys.stdout.isatty()
        print(title + " ...", end="" if live else "\n", flush=True)
        with log.open("a") as output:
            process = subprocess.Popen(command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
            try:
                while process.poll() is None:
                    time.sleep(0.1)
                    if live:
                        print(f"\r{title} ... {time.monotonic() - start:.0f} s", end="", flush=True)
            except KeyboardInterrupt:
                process.terminate()
                process.wait()
                sys.exit("\nInterrupted; the next run goes on from here.")
        if process.returncode:
            tail = log.read_text(errors="replace").splitlines()[-25:]
            sys.exit("\n" + "\n".join(tail) + f"\n\n{title} failed; all output is in {log}.")
        log.unlink()


def build_folder(package, sanitize, folder):
    """Where a package is built: in place, or in a copy if the objects must not mix with ordinary ones."""
    source = ROOT / package
    if not sanitize:
        for stale in (*source.glob("build/lib*"), *source.glob("build/bdist*")):
            shutil.rmtree(stale)  # files that were deleted or renamed would be installed again
        return source
    copy = folder / "source" / package
    for path in sources(copy):
        if not (source / path.relative_to(copy)).exists():
            path.unlink()
    for path in sources(source):
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copyfile(path, target)  # an unchanged file keeps its time, so its object is kept too
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--for", dest="purpose", choices=["demo", "test"], default="test", help="which tools to install"
    )
    parser.add_argument("--sanitize", action="store_true", help="build the kernels with AddressSanitizer and UBSan")
    options = parser.parse_args()
    check_machine(options.purpose)

    folder = ROOT / (".venv-sanitize" if options.sanitize else ".venv")
    if options.sanitize:
        os.environ["FLAMBEAU_CPU_SANITIZE"] = "1"
    compiled = [os.environ.get(each, "") for each in ("CC", "CFLAGS", "FLAMBEAU_CPU_CFLAGS", "FLAMBEAU_CPU_SANITIZE")]
    packages = {
        "core": ("Installing flambeau", []),
        "backends/cpu": ("Compiling and installing flambeau-cpu", compiled),
        "backends/sparse": ("Compiling and installing flambeau-sparse", compiled),
        "backends/mkldnn": ("Compiling and installing flambeau-mkldnn", compiled),
        "extensions": ("Installing flambeau-extensions", []),
    }
    if options.purpose == "test":
        for each in sorted((ROOT / "examples/backends").glob("*/pyproject.toml")):
            folder_name = each.parent.name
            packages[f"examples/backends/{folder_name}"] = f"Installing the example {folder_name}", []
    environment = Environment(folder, steps=2 + len(packages))
    pip = [environment.python, "-m", "pip", "--disable-pip-version-check", "install"]
    name = folder.name
    environment.step(
        f"Making {name}", "venv", [], [str(folder)],
        [sys.executable, "-m", "venv", "--clear", folder],
        [*pip, "--upgrade", "pip>=24"],
    )  # fmt: skip
    requirements = ROOT / "tools/requirements"
    wanted = requirements / f"{options.purpose}.txt"
    environment.step(
        f"Installing what {options.purpose} needs", f"requirements-{options.purpose}",
        sorted(requirements.glob("*.txt")), [], [*pip, "-r", wanted],
    )  # fmt: skip
    for package, (title, facts) in packages.items():
        environment.step(
            title, package.replace("/", "-"), list(sources(ROOT / package)), facts,
            [*pip, build_folder(package, options.sanitize, folder)],
        )  # fmt: skip


if __name__ == "__main__":
    main()
