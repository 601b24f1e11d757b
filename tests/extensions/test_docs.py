"""The Python of docs/extensions.md runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from flambeau.conformance.samples import SAMPLES
from flambeau.dispatch.operator import operators

PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"


def test_the_page_runs_from_top_to_bottom(cache, capsys, monkeypatch):
    monkeypatch.chdir(PAGE.parents[1])
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    scope: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)
    for name in ("_ext", "_ext.my_lib", "fused_adam", "lltm"):
        del sys.modules[name]
    scope["softclip"].remove()
    del SAMPLES["mylib::softclip"]
    for name in [each for each in operators if "::" in each]:
        del operators[name]
    assert len(blocks) == 8 and capsys.readouterr().out == "tensor([0.2500, 0.2500, 0.2500])\n"
