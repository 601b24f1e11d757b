"""Finding and loading plug-ins.

Installed plug-ins are found by reading entry points, which imports nothing.  One is
imported when its device is first used.  If that fails in any way, the plug-in is
quarantined: its device raises, with the original error as cause, and everything
else works.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from .device import device as Device
from .dispatch.providers import registry
from .dtype import default, dtype as Dtype
from .errors import DeviceError, MissingKernelError, PluginError
from .key import Key, Memory, devices, intern
from .layout import layout as Layout, strided

if TYPE_CHECKING:
    from importlib import metadata

    from .backend import Backend

__all__ = [
    "CORE_VERSION",
    "Plugin",
    "default_device",
    "default_key",
    "load_all",
    "plugins",
    "probe",
    "set_default_device",
    "some_default",
]

CORE_VERSION: Final = "0.1.0"
GROUP: Final = "flambeau.backends"
#: Environment variable: plug-ins (distributions, separated by commas) that are not to be loaded.
SWITCH: Final = "FLAMBEAU_DISABLED_PLUGINS"
OFF: Final = "switched off"
DEFAULT_GROUP: Final = "flambeau.default_device"


class Plugin:
    """One installed plug-in: an entry point and what became of it."""

    def __init__(self, device: str, module: str, distribution: str, version: str, requires: str | None) -> None:
        self.device, self.module, self.distribution = device, module, distribution
        self.version, self.requires = version, requires
        #: available, loaded, broken, incompatible or switched off
        self.state = "available"
        self.error: BaseException | None = None
        self.backends: list[Backend] = []

    @property
    def reason(self) -> str:
        """Why it cannot be used, in one line."""
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}".splitlines()[0]

    def log(self) -> str:
        """The traceback of what broke it."""
        import traceback

        return "" if self.error is None else "".join(traceback.format_exception(self.error))


class _Plugins:
    """The installed plug-ins, read once from the metadata."""

    def __init__(self) -> None:
        self._found: list[Plugin] | None = None
        self._lock = threading.RLock()
        self._loading: set[str] = set()
        self._complete: set[str] = set()
        self._default: str | None = None

    def __iter__(self) -> Iterator[Plugin]:
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = sorted(_discover(), key=lambda each: (each.device, each.distribution))
        return iter(self._found)

    def forget(self) -> None:
        """Read the metadata again, for plug-ins installed since; what is loaded stays."""
        with self._lock:
            loaded = [each for each in self._found or () if each.state == "loaded"]
            names = {(each.device, each.module) for each in loaded}
            fresh = [each for each in _discover() if (each.device, each.module) not in names]
            self._found = sorted(loaded + fresh, key=lambda each: (each.device, each.distribution))
            self._complete.clear()
            self._default = None

    def add(self, backends: list[Backend], distribution: str) -> Plugin:
        """Take in a plug-in that is not installed.

        Raises:
            RuntimeError: a description is wrong, or contradicts what is loaded.
        """
        device = backends[0].device
        self.load(device)
        plugin = Plugin(device, "", distribution, backends[0].version, None)
        with self._lock:
            _take_in(plugin, backends)
            self._found = sorted([*self, plugin], key=lambda each: (each.device, each.distribution))
        return plugin

    def remove(self, plugin: Plugin) -> None:
        """Forget a plug-in; tensors on its device must not be used any more."""
        with self._lock:
            self._found = [each for each in self if each is not plugin]
            registry.remove(plugin.distribution, plugin.device)
            for each in plugin.backends:
                if each.memory is not None:
                    devices.forget(plugin.device, each.layout)

    def load(self, device: str) -> None:
        """Load every plug-in that serves a device type; failures are kept, not raised."""
        if device in self._complete:
            return
        with self._lock:
            if device in self._complete or device in self._loading:
                return
            self._loading.add(device)
            try:
                mine = [each for each in self if each.device == device]
                for plugin in mine:
                    if plugin.state == "available":
                        _load(plugin)
                self._complete.add(device)
            finally:
                self._loading.discard(device)
        if any(each.state == "loaded" for each in mine):  # else the device raises when it is asked for
            for plugin in mine:
                if plugin.error is not None:
                    warnings.warn(
                        f"The plug-in {plugin.distribution} for {device} is {plugin.state} and serves nothing: "
                        f"{plugin.reason}\nRun `python -m flambeau doctor` for details.",
                        RuntimeWarning,
                    )

    def find_memory(self, device: str, layout: Layout = strided) -> Memory:
        """The memory of a device type, or what holds its tensors of another layout.

        Raises:
            RuntimeError: nothing provides it, or what does is broken.
        """
        self.load(device)
        mine = [each for each in self if each.device == device]
        for plugin in mine:
            for each in plugin.backends:
                if each.memory is not None and each.layout is layout:
                    return each.memory
        if layout is not strided:
            self.find_memory(device)
            raise MissingKernelError(unknown_layout(device, layout, [each for each in mine if each.error is not None]))
        broken = [each for each in mine if each.error is not None]
        if broken:
            raise PluginError(
                f"The device {device!r} is unavailable: plug-in {broken[0].distribution} is {broken[0].state}.\n"
                f"{broken[0].reason}\nRun `python -m flambeau doctor` for details."
            ) from broken[0].error
        off = [each for each in mine if each.state == OFF]
        if off:
            raise DeviceError(
                f"The device {device!r} is unavailable: {SWITCH} switches off its plug-in {off[0].distribution}."
            )
        raise DeviceError(unknown_device(device, sorted({each.device for each in self})))

    def default(self) -> str:
        """The device type that factories use when none is given.

        Raises:
            RuntimeError: no installed plug-in offers one.
        """
        if self._default is None:
            named = os.environ.get("FLAMBEAU_DEFAULT_DEVICE")
            offered = sorted({each.name for each in _entry_points(DEFAULT_GROUP)})
            if named or offered:
                self._default = named or offered[0]
            else:
                raise DeviceError(unknown_device(None, sorted({each.device for each in self})))
        return self._default

    def set_default(self, device: str | None) -> None:
        self._default = device


def unknown_device(device: str | None, known: list[str]) -> str:
    """What to say when a device is wanted and nothing provides it."""
    installed = f"Installed plug-ins provide: {', '.join(known)}." if known else "No backend is installed."
    if device is None:
        return f"A tensor needs a device. {installed}\nInstall one, for example: pip install flambeau-cpu"
    return (
        f"No installed plug-in provides the device {device!r}. {installed}\n"
        f"Install the one that does, for example: pip install flambeau-{device}"
    )


def unknown_layout(device: str, layout: Layout, broken: list[Plugin]) -> str:
    """What to say when tensors of a layout are wanted and nothing provides it."""
    lines = [f"No installed plug-in provides the layout {layout.name} on {device}."]
    lines += [f"The plug-in {each.distribution} is {each.state}: {each.reason}" for each in broken[:1]]
    return "\n".join([*lines, f"Install the one that does: pip install flambeau-{layout.name.partition('_')[0]}"])


# This module imports inside functions: neither the metadata reader nor pluggy is
# paid for before a device is used.


def _entry_points(group: str) -> metadata.EntryPoints:
    from importlib import metadata

    return metadata.entry_points(group=group)


def _discover() -> Iterator[Plugin]:
    unwanted = {each.strip() for each in os.environ.get(SWITCH, "").split(",")}
    for point in _entry_points(GROUP):
        distribution = point.dist
        name = distribution.metadata["Name"] if distribution else "?"
        version = distribution.version if distribution else "?"
        plugin = Plugin(point.name, point.value, name, version, _core_requirement(distribution))
        problem = _incompatibility(plugin.requires)
        if problem:
            plugin.state = "incompatible"
            plugin.error = PluginError(
                f"{name} {version} needs flambeau{plugin.requires}, this is flambeau {CORE_VERSION}."
                f"\nInstall versions that fit: pip install --upgrade flambeau {name}"
            )
        if name in unwanted:
            plugin.state, plugin.error = OFF, None
        yield plugin


def _core_requirement(distribution: metadata.Distribution | None) -> str | None:
    """The version range of the core that a distribution requires, from its metadata."""
    for line in (distribution.requires if distribution else None) or ():
        match = re.match(r"flambeau(?![\w.-])\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)", line, re.IGNORECASE)
        if match:
            return match[1].replace(" ", "") or None
    return None


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:4])


def _incompatibility(requirement: str | None) -> bool:
    """Whether this core is outside a range such as ``>=0.1,<0.2``."""
    here = _release(CORE_VERSION)
    for clause in (requirement or "").split(","):
        match = re.fullmatch(r"(~=|==|!=|<=|>=|<|>)(.+)", clause.strip())
        if not match:
            continue
        operator, wanted = match[1], _release(match[2].removesuffix(".*"))
        width = max(len(here), len(wanted))
        a, b = (each + (0,) * (width - len(each)) for each in (here, wanted))
        if match[2].endswith(".*"):
            a = b = here[: len(wanted)]
            b = wanted
        fits = {
            "==": a == b, "!=": a != b, "<=": a <= b, ">=": a >= b, "<": a < b, ">": a > b,
            "~=": a >= b and here[: len(wanted) - 1] == wanted[:-1],
        }[operator]  # fmt: skip
        if not fits:
            return True
    return False


def _load(plugin: Plugin) -> None:
    """Import a plug-in and take in what it describes; any failure quarantines it."""
    try:
        import pluggy

        from . import backend

        module = importlib.import_module(plugin.module)
        manager = pluggy.PluginManager("flambeau")
        manager.add_hookspecs(backend.Hooks)
        manager.register(module, name=plugin.module)
        manager.check_pending()
        _take_in(plugin, [each for listed in manager.hook.flambeau_backends() for each in listed])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plug-in may even call sys.exit()
        plugin.state, plugin.error = "broken", error


def _take_in(plugin: Plugin, described: list[Any]) -> None:
    """Check what a plug-in describes, all of it, then let it serve."""
    from . import backend

    if not described:
        raise PluginError(f"Plug-in {plugin.distribution!r} describes no backend in flambeau_backends().")
    for each in described:
        if not isinstance(each, backend.Backend):
            raise PluginError(f"Plug-in {plugin.distribution!r}: expected a Backend, got {type(each).__name__}.")
        each.validate(plugin.distribution)
    served = sorted({each.device for each in described})
    described = [each for each in described if each.device == plugin.device]
    if not described:
        raise PluginError(
            f"Plug-in {plugin.distribution!r}: expected a backend for {plugin.device!r}, which its entry point names, "
            f"got {', '.join(served)}."
        )
    providers = [each.provider(plugin.distribution) for each in described]
    registry.add(*providers)
    plugin.backends += described
    plugin.state = "loaded"


plugins: Final = _Plugins()
devices.find = plugins.find_memory
registry.load = plugins.load
registry.broken = lambda device: [
    (each.distribution, each.reason) for each in plugins if each.device == device and each.error is not None
]


def probe(distribution: str, device: str) -> Plugin:
    """Load one plug-in and nothing else.

    Raises:
        StopIteration: it is not installed.
    """
    plugin = next(each for each in plugins if (each.distribution, each.device) == (distribution, device))
    if plugin.state == "available":
        _load(plugin)
    return plugin


def load_all() -> list[Plugin]:
    """Load every installed plug-in that can be loaded."""
    found = list(plugins)
    for each in found:
        plugins.load(each.device)
    return found


def default_device() -> Device:
    """The device that factories use when none is given."""
    return Device(plugins.default())


def some_default() -> Device | None:
    """The default device, or None if nothing offers one: a device may be installed alone."""
    try:
        return default_device()
    except DeviceError:
        return None


_default_keys: Final[dict[Dtype, Key]] = {}


def default_key() -> Key:
    """The key of a tensor made without saying where or of what type."""
    found = _default_keys.get(default.dtype)
    if found is None:
        found = intern(default_device(), strided, default.dtype)
        if found.device.index is None:  # with an index, the current device may change
            _default_keys[default.dtype] = found
    return found


def set_default_device(device: str | Device | None) -> None:
    """Choose the device that factories use; None for the installed default."""
    _default_keys.clear()
    plugins.set_default(None if device is None else str(device))
