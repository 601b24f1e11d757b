"""The code in the documentation runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = r"```python\n(.*?)```"
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in [ROOT / "README.md"]
    for number, block in enumerate(re.findall(PYTHON, path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_run(block):
    scope: dict = {}
    exec(compile(block, "README.md", "exec"), scope)
    if "backend" in scope:
        check_backend(scope["backend"])


def test_using_backends_runs_from_top_to_bottom(capsys):
    blocks = re.findall(PYTHON, (ROOT / "docs/backends.md").read_text(), re.DOTALL)
    scope: dict = {}
    for block in blocks:
        exec(compile(block, "backends.md", "exec"), scope)
    output = capsys.readouterr().out
    assert len(blocks) == 5 and "-> cpu " in output and "The device 'cpu' has no streams." in output


def check_backend(backend):
    """The backend of the README computes, and says what it lacks."""
    import flambeau as torch

    with torch.backends.register(backend):
        x = torch.tensor([0.0, 1.0], device="mine")
        assert (x.exp() + x * 2).tolist() == pytest.approx([1.0, 2.718281828 + 2])
        with pytest.raises(NotImplementedError, match=r"mine 1\.0 has no kernel for it"):
            x.sin()


def test_the_reference_covers_every_public_operator(tmp_path):
    from flambeau.dispatch.operator import offers, operators

    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/build_docs.py"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text() for path in tmp_path.glob("*.md")}
    for each in [*operators.values(), *offers]:
        for namespace in each.namespaces:
            page = f"flambeau.{namespace}".rstrip(".")
            name = each.name.rpartition(".")[2]
            if page in pages and not name.startswith("_"):
                assert f"### `{name}(" in pages[page], f"{page} lacks {name}"
