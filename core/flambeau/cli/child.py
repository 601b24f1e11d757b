"""Doing something in a process of its own that may not survive it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..plugins import SWITCH

__all__ = ["Ended", "ask"]


class Ended(Exception):
    """How the process ended that should have answered, in one sentence."""


def ask(function: str, *arguments: str, timeout: float = 60, off: Iterable[str] = ()) -> Any:
    """What a function of this package returns in a fresh process that finds the same modules.

    Args:
        function: ``module.name``; what it returns must be JSON.
        arguments: of the function.
        timeout: in seconds.
        off: plug-ins that the process shall not load.

    Raises:
        Ended: the process did not get to the end.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer"
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from {__name__} import answer; answer({str(path)!r}, {function!r}, *{arguments!r})"
        )
        environment = {**os.environ, SWITCH: ",".join([os.environ.get(SWITCH, ""), *off])}
        try:
            status = subprocess.run(
                [sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=timeout, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Ended(f"It was not ready after {timeout:g} seconds.") from None
        if path.exists():
            return json.loads(path.read_text())
    if status < 0:
        raise Ended(f"It crashed Python: {signal.strsignal(-status)} ({signal.Signals(-status).name}).")
    raise Ended(f"It ended Python with exit status {status}.")


def answer(path: str, function: str, *arguments: str) -> None:
    """In the process: call the function, and write what it returns to a file."""
    module, _, name = function.rpartition(".")
    found = getattr(importlib.import_module(f"{__package__}.{module}"), name)(*arguments)
    Path(path).write_text(json.dumps(found))
