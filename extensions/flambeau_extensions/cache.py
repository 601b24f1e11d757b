"""The cache of built libraries: where it is, what is valid in it, who may write, and how large it grows.

``ROOT/TAG/NAME/`` belongs to one extension: a *record* (JSON) for each key says which library was built and
from which files.  A record is valid while all of those files are what they were.  Libraries and records appear
by renaming, so a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final, NamedTuple

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)


__all__ = ["Cache", "Dependency", "Record", "default_root", "evict", "exclusive", "replace_text"]

#: What libraries of other Pythons do not share.
TAG: Final = EXTENSION_SUFFIXES[0].strip(".").rpartition(".")[0]
#: Bytes of libraries that are kept; those not used for longest go first.
DEFAULT_LIMIT: Final = 1 << 30

#: modification time, change time, size and number of a file: if they are the same, so are the contents
Stamp = tuple[int, int, int, int]


def default_root() -> Path:
    """The folder of the cache: TORCH_EXTENSIONS_DIR, or one in the user's cache folder."""
    named = os.environ.get("TORCH_EXTENSIONS_DIR")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "flambeau", "extensions")


def limit() -> int:
    """How many bytes the cache may hold: FLAMBEAU_EXTENSIONS_CACHE_MB, or 1024 MB."""
    return int(float(os.environ.get("FLAMBEAU_EXTENSIONS_CACHE_MB", DEFAULT_LIMIT / (1 << 20))) * (1 << 20))


def stamp(path: str) -> Stamp | None:
    """What tells whether a file changed, or None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def digest_file(path: str) -> str:
    """A hash of a file's contents, empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


class Dependency(NamedTuple):
    """A file that a library was built from.

    ``stamp`` is None if the file changed while the compiler ran: nobody knows what it read.
    """

    path: str
    stamp: Stamp | None
    digest: str

    def unchanged(self) -> bool:
        """Whether the file is what it was."""
        if self.stamp is None:
            return False
        now = stamp(self.path)
        return now == self.stamp or (now is not None and digest_file(self.path) == self.digest)


class Record(NamedTuple):
    """What was built for one key.

    ``own`` are the user's files and flambeau's headers; ``system`` those that come with the compiler and Python,
    looked at once in a process; ``absent`` are files that would be found before one of the others if they existed.
    """

    library: str
    own: list[Dependency]
    system: list[Dependency]
    absent: list[str]

    def valid(self, system: bool = True) -> bool:
        """Whether the library is what a build would give now."""
        return (
            all(each.unchanged() for each in self.own)
            and not any(map(os.path.exists, self.absent))
            and (not system or all(each.unchanged() for each in self.system))
        )

    def to_json(self) -> str:
        """The record as text."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The record that a text describes."""

        def dependencies(rows: list[Any]) -> list[Dependency]:
            return [Dependency(path, found and tuple(found), digest) for path, found, digest in rows]

        raw = json.loads(text)
        return cls(raw["library"], dependencies(raw["own"]), dependencies(raw["system"]), raw["absent"])


def replace_text(path: Path, text: str) -> None:
    """Write a file so that others see the old contents or the new ones."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", text=True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made.

    The operating system gives the lock back when the process ends, however it ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno,
            f"The cache of extensions cannot be written ({error.strerror}).\nName another folder: TORCH_EXTENSIONS_DIR=/path",
            str(folder),
        ) from None
    with open(folder / "lock", "a+b") as file:
        _lock(file.fileno())
        yield


class Cache:
    """The folder of one extension."""

    def __init__(self, name: str, folder: str | os.PathLike[str] | None = None) -> None:
        self.name = name
        self.folder = default_root() / TAG / name if folder is None else Path(folder)

    def find(self, key: str) -> Record | None:
        """The valid record of a key."""
        try:
            record = Record.from_json((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            os.utime(record.library)  # used now
        except (OSError, ValueError, KeyError):
            return None
        return record if record.valid() else None

    def publish(
        self, key: str, built: Path, own: list[Dependency], system: list[Dependency], absent: list[str]
    ) -> Record:
        """Move a library into its place and record what it was built from."""
        contents = hashlib.sha256("".join([key, *(each.digest for each in own + system)]).encode()).hexdigest()
        library = self.folder / f"{self.name}.{contents[:20]}{EXTENSION_SUFFIXES[0]}"
        os.replace(built, library)
        record = Record(str(library), own, system, absent)
        replace_text(self.folder / f"{key}.json", record.to_json())
        return record

    def drop(self, key: str) -> None:
        """Forget what was built for a key."""
        (self.folder / f"{key}.json").unlink(missing_ok=True)

    def workspace(self) -> Path:
        """The folder to build in, empty.  The lock must be held.

        A compiler that outlived a killed build works in the folder that was removed and cannot write into this one.
        """
        folder = self.folder / "build"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def entries(root: Path) -> list[tuple[float, int, Path]]:
    """(last use, bytes, path) of all libraries below a folder, the longest unused first."""
    found = []
    for path in root.glob(f"*/*/*{EXTENSION_SUFFIXES[0]}"):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((status.st_mtime, status.st_size, path))
    return sorted(found)


def evict(root: Path, keep: Iterable[str] = ()) -> None:
    """Remove the libraries that were not used for longest until the rest fits the limit."""
    found = entries(root)
    excess = sum(size for _, size, _ in found) - limit()
    kept = set(keep)
    for _, size, path in found:
        if excess <= 0:
            break
        if str(path) not in kept:
            path.unlink(missing_ok=True)
            excess -= size
