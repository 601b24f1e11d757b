"""Who serves which operator on which key, and who wins.

A provider brings kernels for one device type and layout.  For a call, the enabled
providers that have a kernel for the operator and dtype are tried in order of
preference, then priority; the first whose predicate accepts the arguments serves.
The answer for a key is cached in the operator's table; loading a plug-in or
changing a preference empties the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ..errors import PluginError
from ..key import Key
from ..layout import layout as Layout, strided

__all__ = ["Candidate", "KernelFamily", "Provider", "Registry", "registry"]

#: A kernel for one key: canonical arguments to fresh outputs.
Kernel = Callable[..., Any]


class KernelFamily(Protocol):
    """The kernels of one operator, over dtypes."""

    #: decides per call, from the arguments, whether the kernel serves it; None accepts all
    predicate: Callable[..., bool] | None

    def build(self, key: Key) -> Kernel | None:
        """The kernel for a key, or None if this dtype is not served."""

    def source(self) -> str:
        """``file:line`` of the kernel."""


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
        self.enabled = True
        self.built: dict[tuple[str, Key], Kernel | None] = {}

    def kernel(self, operator: str, key: Key) -> Kernel | None:
        """The kernel for an operator and key, built on first use."""
        try:
            return self.built[operator, key]
        except KeyError:
            family = self.kernels.get(operator)
            found = self.built[operator, key] = family.build(key) if family else None
            return found


class Candidate(NamedTuple):
    """A provider's kernel for one operator and key."""

    provider: Provider
    family: KernelFamily
    kernel: Kernel


class Registry:
    """All loaded providers and the operators whose tables depend on them."""

    def __init__(self) -> None:
        self.providers: list[Provider] = []
        self.tables: list[dict[Key, Any]] = []
        #: composite operators: told whether some provider overrides them
        self.overrides: dict[str, Callable[[bool], None]] = {}
        #: rank of a provider for an operator: higher first; replaced while a preference is in force
        self.rank: Callable[[str, Provider], Any] = lambda _, provider: provider.priority
        #: whether a provider may serve at all here and now
        self.allowed: Callable[[Provider], bool] = lambda provider: provider.enabled
        #: whether the rank may differ between threads, so that it must be asked at each call
        self.scoped = False
        #: loads the plug-ins that serve a device type; installed by the plug-in loader
        self.load: Callable[[str], None] = lambda _: None

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
        self.providers = known
        self._changed()

    def remove(self, plugin: str) -> None:
        """Forget the providers of a plug-in."""
        self.providers = [each for each in self.providers if each.plugin != plugin]
        self._changed()

    def _changed(self) -> None:
        for name, notify in self.overrides.items():
            notify(any(name in each.kernels for each in self.providers))
        self.refresh()

    def refresh(self) -> None:
        """Forget cached answers: providers or preferences have changed."""
        for table in self.tables:
            table.clear()

    def candidates(self, operator: str, key: Key) -> list[Candidate]:
        """The kernels that may serve, best first."""
        found = []
        for provider in self.providers:
            if provider.device == key.device.type and provider.layout is key.layout and self.allowed(provider):
                kernel = provider.kernel(operator, key)
                if kernel is not None:
                    found.append(Candidate(provider, provider.kernels[operator], kernel))
        found.sort(key=lambda each: self.rank(operator, each.provider), reverse=True)
        return found

    def resolve(self, operator: str, key: Key, otherwise: Kernel) -> Kernel:
        """What serves an operator on a key: a kernel, a choice between several, or ``otherwise``."""
        candidates = self.candidates(operator, key)
        if not candidates:
            return otherwise
        return self._contextual(operator, key, otherwise) if self.scoped else self._choice(candidates, otherwise)

    @staticmethod
    def _choice(candidates: list[Candidate], otherwise: Kernel) -> Kernel:
        if candidates[0].family.predicate is None:
            return candidates[0].kernel
        options = [(each.family.predicate, each.kernel) for each in candidates]

        def choose(*args: Any, **kwargs: Any) -> Any:
            for accepts, kernel in options:
                if accepts is None or accepts(*args):
                    return kernel(*args, **kwargs)
            return otherwise(*args, **kwargs)

        return choose

    def _contextual(self, operator: str, key: Key, otherwise: Kernel) -> Kernel:
        def ask(*args: Any, **kwargs: Any) -> Any:
            candidates = self.candidates(operator, key)
            kernel = self._choice(candidates, otherwise) if candidates else otherwise
            return kernel(*args, **kwargs)

        return ask


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
