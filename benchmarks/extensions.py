"""Time extensions of flambeau beside PyTorch's, where it is installed: ``python -m benchmarks.extensions``.

Builds are counted in CPU seconds of this process and of the compilers, and go past ccache; calls are medians of
alternating rounds, as in the other benchmarks.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .__main__ import best_of, human

HERE = Path(__file__).parent
CELL = HERE.parent / "tests" / "extensions" / "sources" / "cell.cpp"
GATE = "at::Tensor gate(at::Tensor x, at::Tensor y) {\n  return at::sigmoid(x) * y + 1;\n}"
CALLS = {
    "call, two tensors": "nothing",
    "call, sizes": "elements",
    "call, one returned": "first",
    "call, data pointers": "axpy",
    "call, one addition": "sum",
}


def cpu(build: Callable[[], Any]) -> float:
    """CPU seconds, those of child processes included."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    start = used()
    build()
    return used() - start


def wall(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fresh(library: str) -> float:
    """Seconds of a cached load in a fresh process."""
    script = (
        f"import time, {library}; from {library}.utils.cpp_extension import load_inline; start = time.perf_counter();"
        f"load_inline('gate', {GATE!r}, functions=['gate']); print(time.perf_counter() - start)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", script], text=True).split()[-1]) for _ in range(3))


def _plain_c() -> None:
    ffi = importlib.import_module("flambeau.utils.ffi")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scale.h").write_text("void scale(const float *x, float *out, int64_t n, double by);")
        Path(folder, "scale.c").write_text(
            "#include <TH/TH.h>\nvoid scale(const float *x, float *out, int64_t n, double by) { while (n--) *out++ = *x++ * by; }"
        )
        ffi.create_extension(
            "scale", "scale.h", ["scale.c"], verbose=False, relative_to=Path(folder, "build.py")
        ).build()


def measure(library: str) -> tuple[dict[str, float], dict[str, Callable[[], Any]]]:
    """The costs of builds, and calls to be timed in turns with another library's."""
    T = importlib.import_module(library)
    extension = importlib.import_module(f"{library}.utils.cpp_extension")
    T.set_num_threads(1)

    def gate() -> Any:
        return extension.load_inline("gate", GATE, functions=["gate"])

    costs = {
        "cold build, three lines": cpu(gate),
        "cold build, a cell": cpu(lambda: extension.load("cell", [str(CELL)], extra_cflags=["-O2"])),
        "cached load, fresh process": fresh(library),
        "load again": min(wall(gate) for _ in range(20)),
    }
    if library == "flambeau":
        costs["cold build, C through cffi"] = cpu(_plain_c)
    module = extension.load("overhead", [str(HERE / "overhead.cpp")], extra_cflags=["-O2"])
    x, y = T.zeros(16), T.ones(16)

    def caller(name: str) -> Callable[[], Any]:
        function = getattr(module, name)
        return lambda: function(x, y)

    return costs, {row: caller(name) for row, name in CALLS.items()}


def main() -> None:
    """Print a row for each measurement."""
    plain = [path for path in ("/usr/bin/g++", "/usr/bin/c++") if os.path.exists(path)]
    os.environ.setdefault("CXX", plain[0] if plain else "c++")
    os.environ.setdefault("CC", "/usr/bin/gcc" if os.path.exists("/usr/bin/gcc") else "cc")
    libraries = ["flambeau", *(["torch"] if importlib.util.find_spec("torch") else [])]
    costs, calls = {}, {}
    for library in libraries:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TORCH_EXTENSIONS_DIR"] = folder
            costs[library], calls[library] = measure(library)
    print(f"{'':<28}" + "".join(f"{each:>12}" for each in libraries))
    rows: dict[str, dict[str, float]] = {
        row: {each: costs[each][row] for each in libraries if row in costs[each]} for row in costs["flambeau"]
    }
    for row in CALLS:
        rows[row] = best_of({each: calls[each][row] for each in libraries}, 15, 2e-3)
    for row, times in rows.items():
        print(f"{row:<28}" + "".join(f"{human(times[each]) if each in times else '':>12}" for each in libraries))


if __name__ == "__main__":
    main()
