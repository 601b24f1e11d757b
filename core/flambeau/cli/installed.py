"""``python -m flambeau backends``: which plug-ins are installed, and what became of them."""

from __future__ import annotations

import argparse
from typing import Any

from ..backend import Backend
from ..errors import DeviceError
from ..plugins import CORE_VERSION, Plugin, load_all, plugins
from .child import Ended, ask
from .output import print_json

__all__ = ["add", "described", "heading", "run"]


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "backends", help="installed plug-ins: available, broken, and why",
        description="Load every installed plug-in, in a process of its own, and print its state. `doctor` tries each one apart.",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def described(backend: Backend) -> dict[str, Any]:
    """One provider as JSON."""
    return {
        "name": backend.name, "version": backend.version, "priority": backend.priority, "layout": backend.layout.name,
        "brings_device": backend.brings_device, "capabilities": sorted(backend.capabilities),
        "operators": len(backend.kernels),
    }  # fmt: skip


def row(plugin: Plugin) -> dict[str, Any]:
    """One plug-in as JSON."""
    return {
        "device": plugin.device, "plugin": plugin.distribution, "version": plugin.version, "state": plugin.state,
        "providers": [described(each) for each in plugin.backends],
        "problem": str(plugin.error) if plugin.error else "",
    }  # fmt: skip


def heading(row: dict[str, Any]) -> str:
    """The first line about a plug-in: device, distribution and state."""
    return f"{row['device']:<10} {row['plugin'] + ' ' + row['version']:<24} {row['state']}"


def loaded() -> list[dict[str, Any]]:
    """Every plug-in, loaded if that can be done."""
    return [row(each) for each in load_all()]


def _default() -> str | None:
    try:
        return plugins.default()
    except DeviceError:
        return None


def run(options: argparse.Namespace) -> int:
    crash = ""
    try:
        rows = ask("installed.loaded")
    except Ended as end:
        rows, crash = (
            [row(each) for each in plugins],
            f"Loading all plug-ins failed. {end}\nTry: python -m flambeau doctor",
        )
    default = _default()
    if options.json:
        print_json({"flambeau": CORE_VERSION, "default_device": default, "plugins": rows, "problem": crash})
        return int(bool(crash))
    print(f"flambeau {CORE_VERSION}" + (f", default device {default}" if default else ""))
    if not rows:
        print("No backend is installed.\nInstall one, for example: pip install flambeau-cpu")
    for each in rows:
        print(heading(each))
        for provider in each["providers"]:
            parts = [f"{provider['operators']} operators, {provider['layout']}, priority {provider['priority']}"]
            parts += [f"with {', '.join(provider['capabilities'])}"] if provider["capabilities"] else []
            print(f"           {provider['name']} {provider['version']}: " + "; ".join(parts))
        if each["problem"]:
            print("           " + each["problem"].replace("\n", "\n           "))
    if crash:
        print(crash)
    return int(bool(crash))
