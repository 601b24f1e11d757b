"""``python -m flambeau extensions``: what is in the cache of built libraries, and emptying it."""

from __future__ import annotations

import shutil
import time

from .cache import default_root, entries, exclusive, limit

__all__ = ["clear", "show"]


def show() -> int:
    """Print the libraries in the cache, the longest unused first; returns the exit status."""
    root = default_root()
    found = entries(root)
    for used, size, path in found:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
        print(f"{path.parent.name:<24} {size / 1024:8.0f} KB  used {day}  {path.parent.parent.name}")
    total = sum(size for _, size, _ in found)
    print(f"{len(found)} libraries, {total / (1 << 20):.1f} MB of at most {limit() / (1 << 20):.0f} MB in {root}")
    return 0


def clear() -> int:
    """Remove everything from the cache; returns the exit status.

    A build that is going on is waited for; programs that have loaded a library keep it.
    """
    root = default_root()
    extensions = sorted({path.parent for path in root.glob("*/*/lock")})
    for folder in extensions:
        with exclusive(folder):
            shutil.rmtree(folder / "build", ignore_errors=True)
            for path in folder.iterdir():
                if path.is_file() and path.name != "lock":  # others may wait for the lock
                    path.unlink(missing_ok=True)
    print(f"Removed {len(extensions)} extensions from {root}")
    return 0
