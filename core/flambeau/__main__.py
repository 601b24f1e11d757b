"""``python -m flambeau``: what is installed and whether it works, where things are, who serves what."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .cli import doctor, extensions, installed, matrix, new_backend, primitives, where
from .plugins import CORE_VERSION

__all__ = ["main"]


def _version(options: argparse.Namespace) -> int:
    print(CORE_VERSION)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m flambeau",
        description="What is installed and whether it works, where things are, who serves what.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (installed, doctor, matrix, where, primitives, new_backend, extensions):
        module.add(commands)
    text = "the version of the core"
    commands.add_parser("version", help=text, description=f"Print {text}.").set_defaults(run=_version)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
