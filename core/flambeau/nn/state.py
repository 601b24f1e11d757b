"""Collecting and restoring the state of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentTypeError, ShapeError
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Incompatible", "collect", "load_own", "restore"]


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class Incompatible(_Keys):
    """What a loaded state lacked, and what it had too much."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"


def collect(module: Module, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Add the state of a module and all below it to ``destination``."""
    if destination is None:
        destination = OrderedDict()  # takes attributes, and loads again without trust in the file
        destination._metadata = {}
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    if module._hooks is not None:
        for hook in list(module._hooks.state.values()):
            hook(module, destination, prefix, metadata)
    return destination


def restore(module: Module, state: Mapping[str, Any], strict: bool, assign: bool) -> Incompatible:
    """Load the state of a module and all below it; nothing is reported before all was tried.

    Raises:
        TypeError: ``state`` is no mapping.
        RuntimeError: listing everything that does not fit.
    """
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"Expected state_dict to be dict-like, got {type(state).__name__}.")
    missing: list[str] = []
    unexpected: list[str] = []
    problems: list[str] = []
    metadata = getattr(state, "_metadata", None) or {}
    values = dict(state)

    def load(each: Module, prefix: str) -> None:
        local = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
        if each._hooks is not None:
            for hook in list(each._hooks.load_pre.values()):
                hook(each, values, prefix, local, True, missing, unexpected, problems)
        each._load_from_state_dict(values, prefix, local, True, missing, unexpected, problems)
        for name, child in each._modules.items():
            if child is not None:
                load(child, f"{prefix}{name}.")
        if each._hooks is not None:
            for hook in list(each._hooks.load_post.values()):
                hook(each, Incompatible(missing, unexpected))

    load(module, "")
    if strict:
        for what, names in (("Unexpected", unexpected), ("Missing", missing)):
            if names:
                listed = ", ".join(f'"{name}"' for name in names)
                problems.insert(0, f"{what} key(s) in state_dict: {listed}. ")
    if problems:
        raise ShapeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    return Incompatible(missing, unexpected)


def load_own(
    module: Module, own: Mapping[str, Any], children: Set[str], state: Mapping[str, Any], prefix: str, strict: bool,
    assign: bool, missing: list[str], unexpected: list[str], problems: list[str],
) -> None:  # fmt: skip
    """Copy what ``state`` has under ``prefix`` into a module's own parameters and buffers."""
    for name, target in own.items():
        full = prefix + name
        if target is None:
            continue
        if full not in state:
            if strict:
                missing.append(full)
            continue
        given = state[full]
        if not isinstance(given, Tensor):
            problems.append(
                f'While copying the parameter named "{full}", expected a Tensor from checkpoint, got '
                f"{type(given).__name__}."
            )
            continue
        if target.geometry.ndim == 0 and given.shape == (1,):
            given = given[0]  # type: ignore[index]  # scalars were saved so before there were 0-dim tensors
        if given.shape != target.shape:
            problems.append(
                f"size mismatch for {full}: copying a param with shape {given.shape} from checkpoint, "
                f"the shape in current model is {target.shape}."
            )
            continue
        try:
            with no_grad():
                if assign:
                    _take_over(module, name, target, given)
                else:
                    target.copy_(given)
        except RuntimeError as error:
            problems.append(f'While copying the parameter named "{full}": {error}')
    if not strict:
        return
    for full in state:
        if not full.startswith(prefix):
            continue
        first, dot, _ = full[len(prefix) :].partition(".")
        if first not in own and not (dot and first in children):
            unexpected.append(full)


def _take_over(module: Module, name: str, target: Any, given: Any) -> None:
    """Put a loaded tensor in the place of a parameter or buffer."""
    if target.requires_grad and not isinstance(given, type(target)):
        given = type(target)(given, target.requires_grad)
    module.__dict__[name] = given
