"""Who serves which operator on which key, and who wins.

A provider brings kernels for one device type and layout.  For a call, the enabled
providers that have a kernel for the operator and dtype are tried in order of
preference, then priority; the first whose predicate accepts the arguments serves.
The answer for a key is kept in the operator's table; loading a plug-in or
changing a preference empties the tables.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ..errors import PluginError
from ..key import Key
from ..layout import layout as Layout, strided

__all__ = ["Candidate", "KernelFamily", "Provider", "Registry", "Wish", "first", "place_of", "registry", "source_of"]

#: A kernel for one key: canonical arguments to fresh outputs.
Kernel = Callable[..., Any]


class KernelFamily(Protocol):
    """The kernels of one operator, over dtypes."""

    #: decides per call, from the arguments, whether the kernel serves it; None accepts all
    predicate: Callable[..., bool] | None

    def build(self, key: Key) -> Kernel | None:
        """The kernel for a key, or None if this dtype is not served."""


def source_of(function: Any) -> str:
    """``file:line`` of a Python function, or of what stands for one."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def place_of(family: KernelFamily) -> str:
    """``file:line`` of a family's kernels: what its ``source()`` says if it has one, else where it builds them."""
    own = getattr(family, "source", None)
    return str(own()) if own is not None else source_of(family.build)


class Provider:
    """A set of kernels for one device type and layout."""

    def __init__(
        self,
        name: str,
        device: str,
        kernels: Mapping[str, KernelFamily],
        version: str = "",
        priority: int = 0,
        layout: Layout = strided,
        plugin: str = "",
    ) -> None:
        self.name, self.device, self.kernels = name, device, kernels
        self.version, self.priority, self.layout, self.plugin = version, priority, layout, plugin
        self.built: dict[tuple[str, Key], Kernel | None] = {}

    def kernel(self, operator: str, key: Key) -> Kernel | None:
        """The kernel for an operator and key, built on first use.

        Raises:
            RuntimeError: building it failed.
        """
        try:
            return self.built[operator, key]
        except KeyError:
            family = self.kernels.get(operator)
            try:
                found = family.build(key) if family else None
            except Exception as error:
                raise PluginError(
                    f"The provider {self.name!r} (plug-in {self.plugin}) could not build its kernel of {operator} for "
                    f"{key.dtype.name} on {key.device}: {type(error).__name__}: {error}\n"
                    f"Do without it: flambeau.backends.disable({self.name!r}, {operator!r})"
                ) from error
            self.built[operator, key] = found
            return found


class Candidate(NamedTuple):
    """A provider's kernel for one operator and key."""

    provider: Provider
    family: KernelFamily
    kernel: Kernel


class Wish(NamedTuple):
    """A provider to be preferred, or not to be used, for one operator or for all."""

    provider: str
    operator: str | None
    wanted: bool


def first(candidates: Sequence[Candidate], args: tuple[Any, ...]) -> Candidate | None:
    """The candidate that serves a call: the first that accepts it."""
    for each in candidates:
        accepts = each.family.predicate
        if accepts is None or accepts(*args):
            return each
    return None


class Registry:
    """All loaded providers, what is wished for by the whole process, and the tables that depend on both."""

    def __init__(self) -> None:
        self.providers: list[Provider] = []
        self.wishes: tuple[Wish, ...] = ()
        #: changes with every provider and wish; an answer found under another version is void
        self.version = 0
        #: how many threads are in blocks with a choice of their own; while there are any, tables ask at each call
        self.scopes = 0
        #: a wish may be let go by the garbage collector, wherever that runs
        self.lock: Final = threading.RLock()
        #: composite operators: told whether some provider overrides them
        self.overrides: dict[str, Callable[[bool], None]] = {}
        #: loads the plug-ins that serve a device type; installed by the plug-in loader
        self.load: Callable[[str], None] = lambda _: None
        #: plug-ins that serve a device type and cannot be used, each with the reason; installed by the loader
        self.broken: Callable[[str], list[tuple[str, str]]] = lambda _: []
        self._filled: dict[int, dict[Key, Kernel]] = {}
        self._direct: dict[int, dict[Key, Kernel]] = {}

    # -- changes --------------------------------------------------------------

    def add(self, *providers: Provider) -> None:
        """Take in the providers of a plug-in, all or none.

        Raises:
            RuntimeError: two have one name, or the same priority and a kernel for the same operator.
        """
        known = list(self.providers)
        for provider in providers:
            for other in known:
                _contradiction(other, provider)
            known.append(provider)
        self._change(known)

    def remove(self, plugin: str, device: str) -> None:
        """Forget the providers that a plug-in has for a device type."""
        self._change([each for each in self.providers if (each.plugin, each.device) != (plugin, device)])

    def _change(self, providers: list[Provider]) -> None:
        self.providers = providers
        for name, notify in self.overrides.items():
            notify(any(name in each.kernels for each in providers))
        self.refresh()

    def wish(self, change: Callable[[tuple[Wish, ...]], tuple[Wish, ...]]) -> None:
        """Change what the whole process wishes for."""
        with self.lock:
            self.wishes = change(self.wishes)
        self.refresh()

    def refresh(self) -> None:
        """Forget all answers: providers or wishes have changed."""
        with self.lock:
            self.version += 1
            for table in self._filled.values():
                table.clear()
            self._filled.clear()
            self._direct.clear()

    def enter(self) -> None:
        """Count a thread that has a choice of its own."""
        with self.lock:
            self.scopes += 1
            for table in self._direct.values():
                table.clear()
            self._direct.clear()

    def leave(self) -> None:
        """It has none any more.  Entries that ask replace themselves when next used."""
        with self.lock:
            self.scopes -= 1

    def keep(self, table: dict[Key, Kernel], key: Key, kernel: Kernel, version: int, asks: bool) -> bool:
        """Remember an answer in a table, unless what it was found under no longer holds."""
        with self.lock:
            if version != self.version or (self.scopes and not asks):
                return False
            table[key] = kernel
            self._filled[id(table)] = table
            if not asks:
                self._direct[id(table)] = table
            return True

    # -- choosing -------------------------------------------------------------

    def candidates(self, operator: str, key: Key, wishes: tuple[Wish, ...] = ()) -> list[Candidate]:
        """The kernels that may serve, best first; ``wishes`` count more than those of the process."""
        wishes = tuple(each for each in self.wishes + wishes if each.operator in (None, operator))
        unwanted = {each.provider for each in wishes if not each.wanted}
        preferred = {each.provider: number for number, each in enumerate(wishes, 1) if each.wanted}
        found = []
        for provider in self.providers:
            if provider.device == key.device.type and provider.layout is key.layout and provider.name not in unwanted:
                kernel = provider.kernel(operator, key)
                if kernel is not None:
                    found.append(Candidate(provider, provider.kernels[operator], kernel))
        found.sort(key=lambda each: (preferred.get(each.provider.name, 0), each.provider.priority), reverse=True)
        return found

    def has(self, operator: str, key: Key) -> bool:
        """Whether some provider has a kernel for an operator and key."""
        return bool(self.candidates(operator, key))

    def resolve(self, operator: str, key: Key, otherwise: Kernel, wishes: tuple[Wish, ...] = ()) -> Kernel:
        """What serves an operator on a key: a kernel, a choice between several, or ``otherwise``."""
        candidates = self.candidates(operator, key, wishes)
        if not candidates:
            return otherwise
        if candidates[0].family.predicate is None:
            return candidates[0].kernel

        def choose(*args: Any, **kwargs: Any) -> Any:
            chosen = first(candidates, args)
            return (otherwise if chosen is None else chosen.kernel)(*args, **kwargs)

        return choose


def _contradiction(one: Provider, other: Provider) -> None:
    """Refuse two providers between which nobody could choose."""
    if one.name == other.name and (one.device, one.layout) == (other.device, other.layout):
        raise PluginError(
            f"Two providers of {one.device} ({one.layout.name}) are called {one.name!r}: of the plug-ins {one.plugin!r} "
            f"and {other.plugin!r}.\nUninstall one of them."
        )
    if (one.device, one.layout, one.priority) != (other.device, other.layout, other.priority):
        return
    shared = sorted(one.kernels.keys() & other.kernels.keys())
    if shared:
        raise PluginError(
            f"The providers {one.name!r} and {other.name!r} both serve {shared[0]} on "
            f"{other.device} ({other.layout.name}) with priority {other.priority}.\n"
            "Give one of them another priority, so that the choice does not depend on the import order."
        )


registry: Final = Registry()
