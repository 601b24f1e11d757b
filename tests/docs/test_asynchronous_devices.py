"""The page on asynchronous devices runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flambeau import backends

PAGE = Path(__file__).parents[2] / "docs/asynchronous-devices.md"


def test_it_runs_from_top_to_bottom(capsys):
    plugin = pytest.importorskip("flambeau_remote_process.plugin")
    scope: dict = {}
    with backends.register(*plugin.flambeau_backends()):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), scope)
    assert capsys.readouterr().out == (
        "An index is out of range: expected 0 to 399, got 3 to 400.\nThe kernel of 'index_select' found it.\n"
    )
