"""What a custom operator's signature says: its arguments, in which order kernels get them, and their shapes."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..errors import ArgumentError, ArgumentTypeError, ShapeError
from ..tensor import Tensor

__all__ = ["Argument", "Schema", "ShapeRule"]

TENSOR, OPTIONAL, LIST, VALUE = "Tensor", "Tensor or None", "list of Tensors", "value"
_MARKS: Final = {TENSOR: "", OPTIONAL: "?", LIST: "*"}


class Argument(NamedTuple):
    """One argument of a custom operator."""

    name: str
    kind: str
    default: Any


class Schema:
    """The arguments of an operator, read from a Python function.

    Attributes:
        arguments: in the order of the signature.
        order: positions in the signature of the arguments that a kernel's caller passes, tensors first.
        parameters: the same for the operator's declaration, such as ``"x y? | scale"``.
        several: whether the operator returns more than one tensor.
    """

    def __init__(self, name: str, function: Callable[..., Any], mutated: Sequence[str]) -> None:
        self.name, self.signature = name, inspect.signature(function)
        try:
            hints = typing.get_type_hints(function)
        except NameError as error:
            raise ArgumentTypeError(
                f"{name}: the annotations of {function.__qualname__} cannot be read: {error}.\n"
                "Annotate with names that its module defines."
            ) from error
        self.arguments = [self._argument(each, hints) for each in self.signature.parameters.values()]
        unknown = [each for each in mutated if each not in [arg.name for arg in self.arguments if arg.kind == TENSOR]]
        if unknown:
            raise ArgumentError(f"{name}: mutates_args names {unknown[0]!r}, which is no Tensor argument of {self}.")
        if len(mutated) > 1:
            raise ArgumentError(
                f"{name}: an operator writes into one argument, mutates_args has {len(mutated)}: {list(mutated)}.\n"
                "Return new tensors instead, or declare an operator for each."
            )
        self.mutated = tuple(mutated)
        rank = {TENSOR: 0, LIST: 1, OPTIONAL: 2, VALUE: 3}
        places = range(len(self.arguments))
        self.order = sorted(
            places, key=lambda i: (self.arguments[i].name not in mutated, rank[self.arguments[i].kind], i)
        )
        self.back = sorted(places, key=self.order.__getitem__)
        ordered = [self.arguments[i] for i in self.order]
        if not ordered or ordered[0].kind not in (TENSOR, LIST):
            raise ArgumentError(
                f"{name}: an operator takes at least one Tensor, which says on what device it runs; got {self}."
            )
        tensors = [each.name + _MARKS[each.kind] for each in ordered if each.kind != VALUE]
        self.parameters = " ".join([*tensors, "|", *[each.name for each in ordered if each.kind == VALUE]])
        self.several = self._several(hints.get("return", inspect.Parameter.empty))

    def _argument(self, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Argument:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ArgumentTypeError(
                f"{self.name}: *{name} is not a fixed argument.\nName every argument of the operator."
            )
        if name not in hints:
            raise ArgumentTypeError(
                f"{self.name}: the argument {name!r} has no annotation.\n"
                "Say what it is: Tensor, Tensor | None, list[Tensor], int, float, bool, str, ..."
            )
        return Argument(name, _kind(hints[name]), parameter.default)

    def _several(self, returned: Any) -> bool:
        if self.mutated:
            if returned is not type(None):
                raise ArgumentTypeError(
                    f"{self.name}: an operator that writes into its argument returns nothing, got the annotation {returned!r}.\n"
                    "Annotate it with -> None."
                )
            return False
        if returned is Tensor:
            return False
        if typing.get_origin(returned) in (tuple, list) and _tensors_of(returned):
            return True
        raise ArgumentTypeError(
            f"{self.name}: expected the annotation -> Tensor, or -> tuple[Tensor, ...], got {returned!r}."
        )

    def __str__(self) -> str:
        return re.sub(r"\b(?:flambeau\.tensor|flambeau|typing)\.", "", f"{self.name}{self.signature}").replace("'", "")

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """All arguments in the order of the signature, checked.

        Raises:
            TypeError: too many, too few, unknown, or not tensors where tensors are wanted.
        """
        if kwargs or len(args) != len(self.arguments):
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentTypeError(f"{self.name}: {error}.\nIts signature is {self}.") from None
            bound.apply_defaults()
            given = [bound.arguments[each.name] for each in self.arguments]
        else:
            given = list(args)
        for argument, value in zip(self.arguments, given, strict=True):
            if argument.kind != VALUE and not _fits(argument.kind, value):
                raise ArgumentTypeError(
                    f"{self.name}: expected a {argument.kind} as {argument.name!r}, got {type(value).__name__} {value!r:.60}.\n"
                    f"Its signature is {self}."
                )
        return given


def _kind(hint: Any) -> str:
    if hint is Tensor:
        return TENSOR
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and Tensor in parts:
        return OPTIONAL
    return LIST if _tensors_of(hint) else VALUE


def _tensors_of(hint: Any) -> bool:
    parts = [each for each in typing.get_args(hint) if each is not Ellipsis]
    return typing.get_origin(hint) in (list, tuple, Sequence) and bool(parts) and all(each is Tensor for each in parts)


def _fits(kind: str, value: Any) -> bool:
    if kind == LIST:
        return isinstance(value, (list, tuple)) and all(isinstance(each, Tensor) for each in value) and len(value) > 0
    return isinstance(value, Tensor) or (kind == OPTIONAL and value is None)


class ShapeRule:
    """How the shapes of arguments and results go together, in NumPy's notation for generalised functions.

    ``"(n, k), (k, m) -> (n, m)"`` names the last dimensions of each tensor argument and result; equal names are equal
    sizes, a number is that size, and dimensions before the named ones broadcast together.

    >>> rule = ShapeRule("matmul", "(n, k), (k, m) -> (n, m)")
    >>> rule.check(["a", "b"], [(7, 2, 3), (3, 5)])
    [(7, 2, 5)]
    """

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        sides = text.split("->")
        if len(sides) != 2 or not all(re.fullmatch(r"\s*(\([\w\s,]*\)\s*,?\s*)*", side) for side in sides):
            raise ArgumentError(
                f"{name}: cannot read the shapes {text!r}.\nWrite them as '(n, k), (k, m) -> (n, m)', one group a tensor."
            )
        self.inputs, self.outputs = (
            [tuple(re.findall(r"\w+", group)) for group in re.findall(r"\(([^)]*)\)", side)] for side in sides
        )

    def check(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """The shapes of the results.

        Raises:
            RuntimeError: the arguments' shapes do not go together.
        """
        sizes: dict[str, tuple[int, str]] = {}
        batch: list[int] = []
        for argument, shape, dims in zip(names, shapes, self.inputs, strict=True):
            lead = len(shape) - len(dims)
            if lead < 0:
                self._fail(names, shapes, f"{argument} has {len(shape)} dimensions, needs {len(dims)}")
            for dim, size in zip(dims, shape[lead:], strict=True):
                known, where = (int(dim), "the operator") if dim.isdigit() else sizes.setdefault(dim, (size, argument))
                if size != known:
                    self._fail(names, shapes, f"{dim} is {size} in {argument} and {known} in {where}")
            batch = self._merged(batch, shape[:lead], names, shapes)
        return [(*batch, *[int(dim) if dim.isdigit() else sizes[dim][0] for dim in dims]) for dims in self.outputs]

    def _merged(
        self, batch: list[int], lead: Sequence[int], names: Sequence[str], shapes: Sequence[Sequence[int]]
    ) -> list[int]:
        longest = max(len(batch), len(lead))
        a, b = ([1] * (longest - len(each)) + list(each) for each in (batch, lead))
        if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            self._fail(names, shapes, f"{list(batch)} and {list(lead)} before the named dimensions do not broadcast")
        return [y if x == 1 else x for x, y in zip(a, b, strict=True)]

    def _fail(self, names: Sequence[str], shapes: Sequence[Sequence[int]], what: str) -> typing.NoReturn:
        got = ", ".join(f"{name} {list(shape)}" for name, shape in zip(names, shapes, strict=True))
        raise ShapeError(f"{self.name}: expected shapes {self.text}, got {got}:\n{what}.")
