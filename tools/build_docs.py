"""Write the API reference from the docstrings: one Markdown page for each public namespace.

python tools/build_docs.py FOLDER
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import flambeau
import flambeau.accelerator
import flambeau.autograd
import flambeau.backends
import flambeau.nn
import flambeau.nn.functional
import flambeau.nn.init
import flambeau.optim
import flambeau.sparse
import flambeau.streams
import flambeau.utils.data
from flambeau import backend

NAMESPACES: list[ModuleType] = [
    flambeau, flambeau.accelerator, flambeau.autograd, flambeau.backends, flambeau.nn, flambeau.nn.functional,
    flambeau.nn.init, flambeau.optim, flambeau.sparse, flambeau.streams, flambeau.utils.data, backend,
]  # fmt: skip


def public(owner: Any) -> Iterator[tuple[str, Any]]:
    """Documented functions and classes of a namespace by name."""
    names = getattr(owner, "__all__", None) or list(vars(owner))
    for name, value in sorted(((each, getattr(owner, each)) for each in names), key=lambda item: item[0].lower()):
        if not name.startswith("_") and callable(value) and inspect.getdoc(value):
            yield name, value


def entry(name: str, value: Any) -> str:
    """One function or class, with its signature and docstring."""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = "(...)"
    return f"### `{name}{signature}`\n\n```text\n{inspect.getdoc(value)}\n```\n"


def build(folder: Path) -> list[Path]:
    """Write the pages; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = [(module.__name__, module) for module in NAMESPACES] + [("flambeau.Tensor", flambeau.Tensor)]
    written = []
    for title, owner in pages:
        page = folder / f"{title}.md"
        entries = [entry(name, value) for name, value in public(owner)]
        page.write_text(f"# {title}\n\n{inspect.getdoc(owner) or ''}\n\n" + "\n".join(entries))
        written.append(page)
    index = "\n".join(f"- [{title}]({title}.md)" for title, _ in pages)
    (folder / "index.md").write_text(f"# API reference\n\n{index}\n")
    return written


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for path in build(Path(sys.argv[1])):
        print(path)
