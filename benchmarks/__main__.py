"""Time flambeau beside numpy, and beside PyTorch where it is installed, in alternating rounds of one process.

A ratio above 1 means that flambeau is faster.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

from .workloads import WORKLOADS


def best_of(functions: dict[str, Callable[[], Any]], rounds: int, span: float) -> dict[str, float]:
    """The median seconds of a call of each function, taken in turns so that drift hits all alike."""
    repeats = {}
    for name, function in functions.items():
        function()
        start = time.perf_counter()
        function()
        repeats[name] = max(1, int(span / max(time.perf_counter() - start, 1e-9)))
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds):
        for name in list(functions)[:: 1 if turn % 2 else -1]:
            function, count = functions[name], repeats[name]
            start = time.perf_counter()
            for _ in range(count):
                function()
            taken[name].append((time.perf_counter() - start) / count)
    return {name: statistics.median(samples) for name, samples in taken.items()}


def human(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--threads", type=int, default=1, help="threads of every library")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each library in a row")
    parser.add_argument("--json", metavar="FILE", help="write the numbers, too")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)

    libraries = {"flambeau": importlib.import_module("flambeau"), "numpy": importlib.import_module("numpy")}
    if importlib.util.find_spec("torch"):
        libraries["torch"] = importlib.import_module("torch")
    for name in ("flambeau", "torch"):
        if name in libraries:
            libraries[name].set_num_threads(options.threads)

    rows: dict[str, dict[str, float]] = {}
    print(
        f"{'':<28}"
        + "".join(f"{name:>12}" for name in libraries)
        + "".join(f"{'x ' + n:>10}" for n in list(libraries)[1:])
    )
    for name, makers in WORKLOADS.items():
        if not re.search(options.only, name):
            continue
        functions = {}
        for library, module in libraries.items():
            make = makers.get("numpy" if library == "numpy" else "torch")
            if make is not None:
                functions[library] = make(module)
        rows[name] = times = best_of(functions, options.rounds, 2e-3)
        line = f"{name:<28}" + "".join(f"{human(times[each]) if each in times else '':>12}" for each in libraries)
        for other in list(libraries)[1:]:
            line += f"{times[other] / times['flambeau']:>10.2f}" if other in times else f"{'':>10}"
        print(line, flush=True)
    for other in list(libraries)[1:]:
        ratios = [times[other] / times["flambeau"] for times in rows.values() if other in times]
        if ratios:
            print(f"geometric mean against {other}: {statistics.geometric_mean(ratios):.2f} over {len(ratios)} rows")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
