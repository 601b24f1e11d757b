"""The Python of docs/extensions.md runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"


def test_the_page_runs_from_top_to_bottom(cache, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    scope: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)
    for each in (scope["softclip"], scope["module"].square):
        each.remove()
    assert len(blocks) == 4 and capsys.readouterr().out == "tensor([0.2500, 0.2500, 0.2500])\n"
