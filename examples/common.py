"""What the examples share: arguments, a progress bar, and the proof that a saved model is the same model."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import flambeau as torch


def arguments(description: str, epochs: int) -> argparse.Namespace:
    """The command line of an example."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=epochs, help="passes over the training data")
    parser.add_argument("--batch", type=int, default=64, help="samples in a step")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the weights and the order of the data")
    parser.add_argument("--device", default="cpu", help="where to train: any that an installed plug-in brings")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is written")
    parser.add_argument("--predict", type=Path, help=argparse.SUPPRESS)  # used by the fresh process
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def progress(items: Iterable[Any], total: int, label: str) -> Iterator[Any]:
    """Pass items through, drawing a bar on a terminal."""
    width = 30
    for done, item in enumerate(items, 1):
        yield item
        if sys.stderr.isatty():
            filled = width * done // total
            end = "\n" if done == total else ""
            print(
                f"\r{label} [{'=' * filled}{' ' * (width - filled)}] {done}/{total}",
                end=end,
                file=sys.stderr,
                flush=True,
            )


def batches(x: Any, y: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """Random batches of two tensors."""
    order = torch.randperm(len(x), device=x.device)
    for start in range(0, len(x), size):
        chosen = order[start : start + size]
        yield x.index_select(0, chosen), y.index_select(0, chosen)


def providers_used(calls: Any) -> dict[str, list[str]]:
    """Which provider served each operator of a trace, by provider."""
    used: dict[str, set[str]] = {}
    for each in calls.calls:
        used.setdefault(each.provider or each.how, set()).add(each.operator)
    return {name: sorted(names) for name, names in used.items()}


def check_reloaded(script: str, options: argparse.Namespace, model_file: Path, expected: bytes) -> None:
    """Load the model in a fresh process and compare its outputs bit for bit."""
    outputs = options.out / f"{Path(script).stem}-outputs.bin"
    command = [
        sys.executable,
        script,
        "--seed",
        str(options.seed),
        "--device",
        options.device,
        "--out",
        str(options.out),
        "--predict",
        str(outputs),
    ]
    subprocess.run(command, check=True)
    if outputs.read_bytes() != expected:
        raise SystemExit(f"The reloaded model {model_file} gives other outputs.")
    print(f"saved {model_file}; a fresh process gives the same outputs, bit for bit")
