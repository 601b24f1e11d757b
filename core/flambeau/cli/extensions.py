"""``python -m flambeau extensions``: the cache of built extensions."""

from __future__ import annotations

import argparse
from typing import Any

from ..utils.elsewhere import provided

__all__ = ["add"]


def run(options: argparse.Namespace) -> int:
    """List or clear the cache; returns the exit status."""
    command = provided("flambeau_extensions.command", "flambeau-extensions")
    return int(command.show() if options.action == "list" else command.clear())


def add(commands: Any) -> None:
    """Add the command to those of the command line."""
    text = "the cache of built extensions: list what is in it, or clear it"
    parser = commands.add_parser("extensions", help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("action", choices=["list", "clear"])
    parser.set_defaults(run=run)
