"""``flambeau.save`` and ``flambeau.load``.

A file is a zip archive: ``flambeau/version``, ``flambeau/data.pkl`` (the pickled
structure, in which storages are references) and one ``flambeau/storage/N`` for each
storage, little-endian and uncompressed.

Loading is safe by default: the pickle may name only what :data:`_SAFE` lists and what
:func:`add_safe_globals` was told; it cannot construct or change anything else.
"""

from __future__ import annotations

import io
import os
import pickle
import stat
import zipfile
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import numpy as np

from .device import device as Device
from .dtype import DTYPES, dtype as Dtype
from .errors import ArgumentError, ArgumentTypeError, DeviceError, FileError, PluginError
from .exchange import HOST
from .geometry import Size
from .layout import sparse_coo, strided
from .pickling import rebuild, rebuild_sparse, rebuild_subclass, storage_bytes, storage_from_bytes
from .storage import TypedStorage
from .tensor import Storage, Tensor

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

_VERSION: Final = "1"
_ROOT: Final = "flambeau"

#: A device, a name of one, a mapping of names, or a function (storage, name) -> storage or None.
MapLocation = Any


# ---------------------------------------------------------------- saving


class _Pickler(pickle.Pickler):
    """Writes storages as references and collects them."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[int, Storage]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, Storage):
            return None
        # By memory, not by record: x.data has a record of its own.
        number, kept = self.storages.setdefault(id(obj.memory), (len(self.storages), obj))
        key = kept.key
        return "storage", number, key.dtype.name, str(key.device), kept.geometry.span


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 4,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object with the tensors in it to a file.

    Tensors that share memory share it again when loaded; a small view keeps its whole storage.
    A path is replaced only when everything was written: an error or a crash leaves the old file.

    Args:
        obj: anything that can be pickled; state dicts and other containers of tensors and numbers
            can be loaded again without ``weights_only=False``.
        f: a path, or an object with ``write``.
        pickle_module: accepted for compatibility; must be the standard one.
        pickle_protocol: of the structure.

    Raises:
        OSError: the file cannot be written.
        TypeError: ``f`` is neither a path nor has ``write``.

    >>> import flambeau, io
    >>> buffer = io.BytesIO()
    >>> flambeau.save({"weight": flambeau.ones(2)}, buffer)
    >>> _ = buffer.seek(0)
    >>> flambeau.load(buffer)
    {'weight': tensor([1., 1.])}
    """
    _standard(pickle_module)
    if isinstance(f, (str, os.PathLike)):
        with _replacing(os.fspath(f)) as file:
            _write(obj, file, pickle_protocol)
    elif callable(getattr(f, "write", None)):
        _write(obj, f, pickle_protocol)
    else:
        raise ArgumentTypeError(f"save() expects a path or an object with write(), got {type(f).__name__}.")


def _standard(pickle_module: Any) -> None:
    if pickle_module not in (None, pickle):
        raise ArgumentError(f"Only the standard pickle module can be used, got {pickle_module!r}.")


def _write(obj: Any, file: Any, protocol: int) -> None:
    structure = io.BytesIO()
    pickler = _Pickler(structure, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(f"{_ROOT}/version", _VERSION)
        archive.writestr(f"{_ROOT}/data.pkl", structure.getvalue())
        for number, storage in pickler.storages.values():
            with archive.open(f"{_ROOT}/storage/{number}", "w", force_zip64=True) as entry:
                entry.write(storage_bytes(storage))


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when it was written completely."""
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device cannot be replaced
        with open(path, "wb") as file:
            yield file
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            raise type(error)(error.errno, error.strerror, path) from None  # the file that was asked for
        raise
    _sync_directory(os.path.dirname(path))


def _sync_directory(path: str) -> None:
    """Make a rename survive a power cut, where directories can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError:
            pass
        finally:
            os.close(handle)


# ---------------------------------------------------------------- what a safe file may name


def _numpy_scalar(kind: Any, contents: Any = b"") -> Any:
    """A NumPy number from its pickle."""
    if not isinstance(kind, np.dtype) or kind.kind not in "biufc" or not isinstance(contents, bytes):
        raise FileError(f"Expected a NumPy number, got {kind!r}.")
    return np.frombuffer(contents, kind, 1)[0]


def _numpy_dtype(*args: Any) -> np.dtype[Any]:
    kind = np.dtype(args[0]) if args and isinstance(args[0], str) else None
    if kind is None or kind.kind not in "biufc":
        raise FileError(f"Expected the NumPy dtype of a number, got {args!r:.60}.")
    return kind


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """``bytes`` as old pickle protocols write them."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise FileError(f"Expected latin1 text, got {type(text).__name__} in {encoding!r}.")
    return text.encode("latin1")


def _qualified(thing: Any) -> tuple[str, str]:
    return thing.__module__, thing.__qualname__


_BUILTINS: Final = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, slice, range)

#: (module, name) to what it stands for.
_SAFE: Final[dict[tuple[str, str], Any]] = {
    **{_qualified(each): each for each in (OrderedDict, defaultdict, deque)},
    **{
        _qualified(each): each
        for each in (Size, Device, rebuild, rebuild_sparse, rebuild_subclass, Tensor, TypedStorage)
    },
    **{("builtins", each.__name__): each for each in _BUILTINS},
    **{("flambeau.dtype", each.name if each.name != "bool" else "bool_"): each for each in DTYPES},
    **{("flambeau.layout", each.name): each for each in (strided, sparse_coo)},
    **{(f"numpy.{core}.multiarray", "scalar"): _numpy_scalar for core in ("core", "_core")},
    ("numpy", "dtype"): _numpy_dtype,
    ("_codecs", "encode"): _encode,
}
#: Names that are imported only when a file has them.
_SAFE_WHEN_NEEDED: Final = frozenset({
    ("flambeau.nn.parameter", "Parameter"), ("flambeau.nn.parameter", "_rebuild"), ("flambeau.nn.parameter", "Buffer"),
})  # fmt: skip
_trusted: Final[dict[tuple[str, str], Any]] = {}


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let files name these classes and functions when loaded with ``weights_only=True``."""
    _trusted.update({_qualified(each): each for each in safe_globals})


def get_safe_globals() -> list[Any]:
    """What :func:`add_safe_globals` was told."""
    return list(_trusted.values())


def clear_safe_globals() -> None:
    """Forget what :func:`add_safe_globals` was told."""
    _trusted.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """:func:`add_safe_globals` inside a ``with`` block."""
    before = dict(_trusted)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _trusted.clear()
        _trusted.update(before)


_Machine: Final[Any] = pickle._Unpickler  # in Python: the C one cannot be restricted


class _SafeUnpickler(_Machine):  # type: ignore[misc]
    """Runs only the pickle operations that data needs, on names that are known to be harmless."""

    dispatch: Final = dict(_Machine.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        found = _SAFE.get((module, name)) or _trusted.get((module, name))
        if found is not None:
            return found
        if (module, name) in _SAFE_WHEN_NEEDED:
            return super().find_class(module, name)
        raise FileError(
            f"The file names {module}.{name}, which may run code and is not loaded by default.\n"
            f"If you trust the file, pass weights_only=False, or flambeau.serialization.add_safe_globals([{name}])."
        )

    def _refuse(self) -> None:
        raise FileError("The file's pickle constructs objects in a way that data does not need; it is not loaded.")

    def load_newobj(self) -> None:
        if self.stack[-2] not in _trusted.values():
            self._refuse()
        super().load_newobj()

    def load_build(self) -> None:
        instance, state = self.stack[-2], self.stack[-1]
        if type(instance) is OrderedDict and type(state) is dict:
            instance.__dict__.update(state)
            self.stack.pop()
        elif isinstance(instance, np.dtype) and isinstance(state, tuple) and state[1:2] in (("<",), ("|",), ("=",)):
            self.stack.pop()  # nothing but the byte order, which is ours
        elif isinstance(instance, Tensor) or type(instance) in _trusted.values():
            super().load_build()
        else:
            self._refuse()

    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    for _code in (pickle.INST, pickle.OBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = _refuse
    del _code


# ---------------------------------------------------------------- loading


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what :func:`save` wrote.

    Args:
        f: a path, or an object with ``read``.
        map_location: where tensors go: a device or its name for all; a dict from the names of devices
            to others; or a function that gets each storage (on the host) and the name of its device
            and returns a storage, or None to leave it to the name.
        pickle_module: accepted for compatibility; must be the standard one.
        weights_only: refuse files with anything but data: tensors, parameters, containers, numbers.
            With False the file may run arbitrary code.
        mmap: accepted for compatibility.
        pickle_load_args: further arguments of the unpickler.

    Raises:
        FileError: the file is truncated, corrupt, of another format or names something unsafe.
        RuntimeError: a device in it is unavailable here; give ``map_location``.
        OSError: the file cannot be read.
    """
    _standard(pickle_module)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file, os.fspath(f), map_location, weights_only, pickle_load_args)
    if not callable(getattr(f, "read", None)):
        raise ArgumentTypeError(f"load() expects a path or an object with read(), got {type(f).__name__}.")
    seekable = getattr(f, "seekable", None)
    stream: Any = f if seekable is not None and seekable() else io.BytesIO(f.read())
    return _read(stream, getattr(f, "name", "the file object"), map_location, weights_only, pickle_load_args)


def _read(file: Any, name: Any, map_location: MapLocation, weights_only: bool, options: dict[str, Any]) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            try:
                version = archive.read(f"{_ROOT}/version").decode()
            except KeyError:
                raise FileError(
                    "It is a zip archive, but not one that flambeau.save wrote.\n"
                    "Tensors of another library come over as NumPy arrays: numpy.savez there, flambeau.from_numpy here."
                ) from None
            if version != _VERSION:
                raise FileError(f"It has format version {version[:20]!r}, this flambeau reads {_VERSION!r}.")
            reader = _Reader(archive, _placer(map_location))
            structure = io.BytesIO(archive.read(f"{_ROOT}/data.pkl"))
            kind: Any = _SafeUnpickler if weights_only else pickle.Unpickler
            unpickler: Any = type("_Unpickler", (kind,), {"persistent_load": lambda _, pid: reader(pid)})
            return unpickler(structure, **options).load()
    except FileError as error:
        raise FileError(f"{name} cannot be loaded: {error}") from error.__cause__
    except (DeviceError, PluginError, MemoryError, OSError, ArgumentTypeError, ImportError):
        raise
    except zipfile.BadZipFile as error:
        raise FileError(
            f"{name} is no file that flambeau.save wrote, or it is truncated or corrupt: {error}.\n"
            "Save it again, or convert it with the program that wrote it."
        ) from None
    except Exception as error:
        if not weights_only:
            raise
        raise FileError(f"{name} is corrupt: {type(error).__name__}: {error}.\nSave it again.") from error


#: From the contents of a storage, its element type and the name of its device to the storage.
_Place = Callable[[bytes, Dtype, str], Storage]


class _Reader:
    """Turns references to storages into storages, each read once."""

    def __init__(self, archive: zipfile.ZipFile, place: _Place) -> None:
        self.archive, self.place = archive, place
        self.found: dict[int, Storage] = {}

    def __call__(self, reference: Any) -> Storage:
        fields = reference if isinstance(reference, tuple) and len(reference) == 5 else (None,) * 5
        kind, number, name, device, elements = cast(Any, fields)
        dtype = next((each for each in DTYPES if each.name == name), None)
        if kind != "storage" or dtype is None or type(number) is not int or not isinstance(device, str):
            raise FileError(f"It has an unknown reference {reference!r:.80}.")
        storage = self.found.get(number)
        if storage is None:
            contents = self.archive.read(f"{_ROOT}/storage/{number}")
            if len(contents) != elements * dtype.itemsize:
                raise FileError(
                    f"Storage {number} should have {elements} elements of {dtype.name}, it has {len(contents)} bytes."
                )
            storage = self.found[number] = self.place(contents, dtype, device)
        return storage


def _placer(map_location: MapLocation) -> _Place:
    """How storages get to their devices."""
    if map_location is None:
        return _placed
    if isinstance(map_location, (str, Device)):
        wanted = str(Device(map_location))
        return lambda contents, dtype, _: _placed(contents, dtype, wanted)
    if isinstance(map_location, dict):
        names = {str(key): str(value) for key, value in map_location.items()}
        return lambda contents, dtype, name: _placed(contents, dtype, names.get(name, name))
    if not callable(map_location):
        raise ArgumentTypeError(
            f"map_location is a device, a dict or a function, got {type(map_location).__name__} {map_location!r:.60}."
        )

    def ask(contents: bytes, dtype: Dtype, name: str) -> Storage:
        # The function is promised a storage on the host, whatever the file says.
        answer = map_location(TypedStorage(_placed(contents, dtype, HOST)), name)
        if answer is None:
            return _placed(contents, dtype, name)
        if not isinstance(answer, TypedStorage):
            raise ArgumentTypeError(f"map_location must return a storage or None, got {type(answer).__name__}.")
        return answer.record

    return ask


def _placed(contents: bytes, dtype: Dtype, name: str) -> Storage:
    try:
        return storage_from_bytes(contents, dtype, Device(name))
    except (DeviceError, PluginError) as error:
        raise DeviceError(
            f"A tensor of the file was saved on {name!r}, which is unavailable here: {error}\n"
            "Pass map_location, for example map_location='cpu'."
        ) from error
