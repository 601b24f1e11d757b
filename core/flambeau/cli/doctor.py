"""``python -m flambeau doctor``: does each plug-in work?  Each is tried in a process of its own."""

from __future__ import annotations

import argparse
import platform
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from ..device import device as Device
from ..dtype import float32
from ..plugins import CORE_VERSION, OFF, SWITCH, Plugin, load_all, plugins, probe
from .child import Ended, ask
from .installed import described, heading
from .output import print_json

__all__ = ["add", "run"]

#: States in which nothing is wrong.
_FINE: Final = frozenset({"works", OFF})
_PROBES_AT_ONCE: Final = 4


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor", help="try each plug-in in a process of its own, and say what to do about those that fail",
        description="Try each installed plug-in in a process of its own, so that even one that crashes Python is "
        "reported. Exit status 1 if something is wrong, 0 if all is well.",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for each plug-in (default: 60)")
    parser.set_defaults(run=run)


# ---------------------------------------------------------------- in the process that is risked


def tried(distribution: str = "", device: str = "") -> list[dict[str, Any]]:
    """Load one plug-in, or all if none is named; what came of it."""
    found = [probe(distribution, device)] if distribution else load_all()
    return [_tried(each) for each in found]


def _tried(plugin: Plugin) -> dict[str, Any]:
    state, error = plugin.state, plugin.error
    if state == "loaded":
        state = "works"
        try:
            for backend in plugin.backends:
                if backend.memory is not None and backend.brings_device:
                    _remember(backend.memory, plugin.device)
        except Exception as problem:
            state, error = "unusable", problem
    return {
        "device": plugin.device, "plugin": plugin.distribution, "version": plugin.version, "state": state,
        "reason": "" if error is None else f"{type(error).__name__}: {error}",
        "providers": [described(each) for each in plugin.backends], "advice": _advice(plugin, state, error),
    }  # fmt: skip


def _remember(memory: Any, device: str) -> None:
    """Put two numbers into a device's memory, and take them out again."""
    place = memory.canonical(Device(device))
    given = np.array([1.5, -2.0], np.float32)
    taken = memory.to_numpy(memory.from_numpy(given, place, float32), 2, float32)
    if taken.tolist() != given.tolist():
        raise RuntimeError(f"{given.tolist()} was put into its memory, {taken.tolist()} came out.")


def _advice(plugin: Plugin, state: str, error: BaseException | None) -> str:
    name = plugin.distribution
    if state in _FINE or state == "incompatible":  # the message of the latter says what to do
        return ""
    if state == "unusable":
        return f"It loads, but its device cannot be used: check that the device is there, or remove {name}."
    if isinstance(error, ModuleNotFoundError):
        return f"Install what it needs ({error.name}), or install it anew: pip install --force-reinstall {name}"
    if isinstance(error, OSError):
        return f"Install the library, or add its folder to the loader's path (LD_LIBRARY_PATH); or remove {name}."
    return _remove(name)


def _remove(name: str) -> str:
    return f"Upgrade or remove it (pip uninstall {name}), or switch it off: {SWITCH}={name}"


# ---------------------------------------------------------------- in the process that asks


def _probed(plugin: Plugin, timeout: float) -> dict[str, Any]:
    if plugin.state != "available":
        return _tried(plugin)
    try:
        found = ask("doctor.tried", plugin.distribution, plugin.device, timeout=timeout)
    except Ended as end:
        return {**_tried(plugin), "state": "fatal", "reason": str(end), "advice": _remove(plugin.distribution)}
    return found[0]  # type: ignore[no-any-return]


def _together(rows: list[dict[str, Any]], timeout: float) -> None:
    """Load those that work alone in one process: some may contradict each other."""
    off = [each["plugin"] for each in rows if each["state"] not in _FINE]
    try:
        found = ask("doctor.tried", timeout=timeout, off=off)
    except Ended as end:
        for each in rows:
            if each["state"] == "works":
                each.update(state="works alone", reason=f"All together: {end}", advice=_remove(each["plugin"]))
        return
    for alone, beside in zip(rows, found, strict=True):
        if alone["state"] == "works" and beside["state"] != "works":
            alone.update(state=beside["state"], reason=beside["reason"], advice=beside["advice"])


def run(options: argparse.Namespace) -> int:
    found = list(plugins)
    with ThreadPoolExecutor(_PROBES_AT_ONCE) as pool:
        rows = list(pool.map(lambda plugin: _probed(plugin, options.timeout), found))
    if sum(each["state"] == "works" for each in rows) > 1:
        _together(rows, options.timeout)
    wrong = [each for each in rows if each["state"] not in _FINE]
    status = 1 if wrong or not rows else 0
    if options.json:
        print_json({"flambeau": CORE_VERSION, "python": platform.python_version(), "plugins": rows})
        return status
    print(f"flambeau {CORE_VERSION}, Python {platform.python_version()}")
    if not rows:
        print("No backend is installed.\nInstall one, for example: pip install flambeau-cpu")
    for each in rows:
        print(heading(each))
        for line in (each["reason"], each["advice"]):
            if line:
                print("           " + line.replace("\n", "\n           "))
    print(f"Plug-ins: {len(rows)}, with problems: {len(wrong)}")
    return status
