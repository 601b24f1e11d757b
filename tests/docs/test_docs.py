"""The code in the documentation runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)  # what is marked as an excerpt does not stand alone
#: pages whose tests do more than run them
OWN = {"asynchronous-devices.md", "extensions.md", "writing-a-backend.md"}
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not {"build", "dist", ".venv", ".venv-sanitize", ".pytest_cache"} & set(path.relative_to(ROOT).parts)
    and "api" not in path.parts
    and path.name not in OWN
    and PYTHON.search(path.read_text())
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_pages_run_from_top_to_bottom(page):
    scope: dict = {}
    for block in PYTHON.findall(page.read_text()):
        exec(compile(block, page.name, "exec"), scope)
    if "backend" in scope:
        check_backend(scope["backend"])


def test_pages_are_found():
    names = [str(path.relative_to(ROOT)) for path in PAGES]
    assert {"README.md", "docs/backends.md", "backends/sparse/README.md", "extensions/README.md"} <= set(names)
    tests = " ".join(path.read_text() for path in ROOT.glob("tests/*/test_*.py"))
    assert all(f'"{name}"' in tests or f"/{name}" in tests for name in OWN)


def test_using_backends_prints_what_it_says(capsys):
    scope: dict = {}
    for block in PYTHON.findall((ROOT / "docs/backends.md").read_text()):
        exec(compile(block, "backends.md", "exec"), scope)
    output = capsys.readouterr().out
    assert "-> cpu " in output and "The device 'cpu' has no streams." in output


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
