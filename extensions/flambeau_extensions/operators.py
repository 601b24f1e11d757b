"""The C++ declarations of the core's operators, written from their Python signatures.

Each public function and method of an operator becomes a function ``at::name`` and a method ``Tensor::name``
that call the Python one.  What a signature cannot say (a result whose type depends on the arguments) is in
:data:`OVERLOADS`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import flambeau
from flambeau.dispatch.operator import offers, operators
from flambeau.nn import functional
from flambeau.tensor import Tensor

__all__ = ["functions_header", "methods_header"]

#: What C++ writes where the Python signature says "Any", or has one function where C++ needs several.
_PAIR: Final = ["(self: Tensor, dim: int, keepdim: bool = False) -> Pair"]
_EXTREME: Final = ["(self: Tensor) -> Tensor", "(self: Tensor, other: Tensor) -> Tensor", *_PAIR]
OVERLOADS: Final[dict[str, list[str]]] = {
    "max": _EXTREME,
    "min": _EXTREME,
    "median": ["(self: Tensor) -> Tensor", *_PAIR],
    "nanmedian": ["(self: Tensor) -> Tensor", *_PAIR],
    "mode": ["(self: Tensor, dim: int = -1, keepdim: bool = False) -> Pair"],
    "kthvalue": ["(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair"],
    "sort": ["(self: Tensor, dim: int = -1, descending: bool = False) -> Pair"],
    "topk": ["(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair"],
    "cummax": ["(self: Tensor, dim: int) -> Pair"],
    "cummin": ["(self: Tensor, dim: int) -> Pair"],
    "aminmax": ["(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Pair"],
    "var_mean": ["(self: Tensor, dim: Ints = None, unbiased: bool = True, keepdim: bool = False) -> Pair"],
    "std_mean": ["(self: Tensor, dim: Ints = None, unbiased: bool = True, keepdim: bool = False) -> Pair"],
    "nonzero": ["(self: Tensor) -> Tensor"],
    "unique": ["(self: Tensor, sorted: bool = True) -> Tensor"],
    "where": ["(condition: Tensor, self: Any, other: Any) -> Tensor"],
    "addcmul": ["(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor"],
    "addcdiv": ["(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor"],
    "arange": ["(end: Number, **options) -> Tensor", "(start: Number, end: Number, **options) -> Tensor",
               "(start: Number, end: Number, step: Number, **options) -> Tensor"],
    "randint": ["(high: int, size: Sequence[int], **options) -> Tensor",
                "(low: int, high: int, size: Sequence[int], **options) -> Tensor"],
    "norm": ["(self: Tensor, p: Any = 2, dim: Ints = None, keepdim: bool = False) -> Tensor"],
}  # fmt: skip
OVERLOADS.update({f"{name}_": OVERLOADS[name] for name in ("addcmul", "addcdiv")})

#: Annotations, and the parameter classes of arguments.h.
_TENSOR: Final = "const Tensor&"
_PARAMETERS: Final = {
    "Tensor": _TENSOR, "Number": "Number", "int": "Int", "bool": "Flag", "float": "Number", "str": "Text",
    "Ints": "Ints", "Dims": "Ints", "Sequence[int]": "Ints", "int | Sequence[int]": "Ints",
    "Sequence[Tensor]": "Tensors", "Dtype": "ElementType",
}  # fmt: skip
_RESULTS: Final = {
    "Tensor": "Tensor", "Pair": "Pair", "bool": "bool", "int": "int64_t", "float": "double", "tuple[Tensor, ...]": "std::vector<Tensor>",
    "list[Tensor]": "std::vector<Tensor>", "Tensor | Pair": "Tensor", "Any": "Tensor",
}  # fmt: skip
#: Keyword arguments of every factory; C++ passes them as one TensorOptions.
_OPTIONS: Final = ("dtype", "device", "requires_grad")
_LEFT_OUT: Final = {"out", "layout", "pin_memory", "generator", "memory_format", "axis"}
#: Factories, which take no tensor, or only the shape of one.
_FACTORIES: Final = (
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace", "eye",
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
)  # fmt: skip
#: Functions without a declaration that C++ code calls as methods.
_METHODS: Final = ("new_empty", "new_zeros", "new_ones", "new_full")
_KEYWORDS: Final = frozenset(
    """and and_eq asm auto bool break case catch char class const continue default delete do double else enum explicit
    export extern false float for friend goto if inline int long namespace new not not_eq operator or or_eq private
    protected public register return short signed sizeof static struct switch template this throw true try typedef
    typename union unsigned using virtual void volatile while xor xor_eq""".split()  # noqa: SIM905
)
#: Written by hand in tensor_handle.h and factories.h.
_BY_HAND: Final = frozenset(
    {"data_ptr", "detach_", "dim", "item", "numel", "size", "stride", "tensor", "to", "type_as"}
)


class _Parameter(NamedTuple):
    name: str
    declared: str
    required: bool
    keyword: bool


class _Function(NamedTuple):
    name: str
    where: str
    parameters: list[_Parameter]
    options: bool
    result: str
    out: bool


#: What the lines of both headers are made of.
_MACROS: Final = """\
#define OPERATOR_(type, name, parameters, where, required, ordered, names, ...) \\
  {before}type name parameters{after} {{ \\
    static flambeau::Operator op = {{#name, where, required, ordered, names, nullptr}}; \\
    return result<type>(op({{__VA_ARGS__}})); \\
  }}
#define INPLACE_(target, name, parameters, where, required, ordered, names, ...) \\
  {before}Tensor& name parameters{after} {{ \\
    static flambeau::Operator op = {{#name, where, required, ordered, names, nullptr}}; \\
    op({{__VA_ARGS__}}); \\
    return const_cast<Tensor&>(target); \\
  }}
#define OUT_(target, name, parameters, where, required, ordered, names, ...) \\
  {before}Tensor& name##_out parameters{after} {{ \\
    static flambeau::Operator op = {{#name, where, required, ordered, names, nullptr}}; \\
    op({{__VA_ARGS__}}); \\
    return const_cast<Tensor&>(target); \\
  }}
"""
_END: Final = "#undef OPERATOR_\n#undef INPLACE_\n#undef OUT_\n"


def functions_header() -> str:
    """The text of operators.h: ``at::name(...)``."""
    lines = [each for found in _functions() for each in _declare(found, method=False)]
    opening = _MACROS.format(before="inline ", after="") + "namespace at {"
    return _file("Functions of the operators", opening, lines, "}  // namespace at")


def methods_header() -> str:
    """The text of methods.h, which stands inside of class Tensor."""
    lines = [each for found in _methods() for each in _declare(found, method=True)]
    return _file(
        "Methods of the operators; a part of class Tensor", _MACROS.format(before="", after=" const"), lines, ""
    )


def _file(what: str, opening: str, lines: Sequence[str], closing: str) -> str:
    title = f"// {what}, written by flambeau_extensions.operators.  Do not edit."
    return "\n".join([title, opening, *lines, closing, _END])


def _names() -> list[str]:
    declared = {each.name.rpartition(".")[2] for each in operators.values()}
    declared |= {each.inplace for each in operators.values() if each.inplace}
    declared |= {each.name for each in offers} | set(_FACTORIES)
    return sorted(each for each in declared if each not in _KEYWORDS | _BY_HAND and not each.startswith("_"))


def _functions() -> Iterator[_Function]:
    for name in _names():
        for where, place in (("t", flambeau), ("f", functional)):
            if name in vars(place):
                yield from _variants(name, where, vars(place)[name])
                break


def _methods() -> Iterator[_Function]:
    for name in [*_names(), *_METHODS]:
        function = getattr(Tensor, name, None)
        if inspect.isfunction(function):
            yield from _variants(name, "m", function)


def _variants(name: str, where: str, function: Callable[..., Any]) -> Iterator[_Function]:
    """The C++ overloads of one Python function."""
    actual = inspect.signature(function)
    inplace = name.endswith("_")
    if {"args", "kwargs"} <= actual.parameters.keys():  # made from the form that does, or does not, write in place
        actual = inspect.signature(getattr(Tensor, name[:-1] if inplace else f"{name}_"))
    signatures = [actual]
    if name == "where" and where == "m":
        signatures = [_parsed("(self: Tensor, condition: Tensor, other: Any) -> Tensor")]
    elif name in OVERLOADS:
        signatures = [_parsed(each) for each in OVERLOADS[name]]
    for signature in signatures:
        kinds = {each.kind for each in signature.parameters.values()}
        options = set(_OPTIONS) <= signature.parameters.keys() or inspect.Parameter.VAR_KEYWORD in kinds
        left_out = _LEFT_OUT.union(_OPTIONS if options else ())
        shown = [each for name, each in signature.parameters.items() if name not in left_out]
        parameters = [each for each in map(_parameter, shown) if each is not None]
        result = _RESULTS.get(signature.return_annotation, "flambeau::Object")
        yield _Function(
            name, where, parameters, options and not inplace, result, not inplace and "out" in actual.parameters
        )


def _cpp(name: str) -> str:
    return f"{name}_" if name in _KEYWORDS else name


def _parsed(text: str) -> inspect.Signature:
    """The signature written in a text, annotations as text."""
    scope: dict[str, Any] = {}
    exec(f"from __future__ import annotations\ndef function{text}: ...", scope)
    return inspect.signature(scope["function"])


def _parameter(parameter: inspect.Parameter) -> _Parameter | None:
    name, annotation = parameter.name, parameter.annotation
    if name.startswith("_") or parameter.kind is parameter.VAR_KEYWORD:
        return None
    if parameter.kind is parameter.VAR_POSITIONAL:  # one sequence does as well; what old code passed, keywords do
        kind = {"tensors": "Tensors", "operands": "Tensors"}.get(name, "Ints")
        return None if name in ("legacy", "old", "args") else _Parameter(name, kind, True, False)
    required, keyword = parameter.default is parameter.empty, parameter.kind is parameter.KEYWORD_ONLY
    named = annotation.removesuffix(" | None")
    declared = _PARAMETERS.get(named, "Any")
    if declared != _TENSOR and (not required or named != annotation):
        declared = f"Maybe<{declared}>"
    return _Parameter(name, declared, required, keyword)


def _declare(function: _Function, method: bool) -> Iterator[str]:
    """The C++ function, and the form of it that writes into a tensor given first."""
    parameters = sorted(function.parameters, key=lambda each: each.keyword)
    positional = [each for each in parameters if not each.keyword]
    required = len(list(itertools.takewhile(lambda each: each.required, positional)))
    names = [each.name for each in parameters]
    written = [
        f"{each.declared} {_cpp(each.name)}" + (" = {}" if i >= required else "") for i, each in enumerate(parameters)
    ]
    passed = list(map(_cpp, names))
    if method:
        passed[0] = "checked_get()"
        del written[0]
    if function.options:
        written.append("const TensorOptions& options = {}")
        passed.append("FLAMBEAU_OPTIONS")
        names += _OPTIONS

    def line(kind: str, result: str, names: Sequence[str], written: Sequence[str], passed: Sequence[str]) -> str:
        optional = "".join(f"{each} " for each in names[required:])
        facts = f"'{function.where}', {required}, {len(positional)}, \"{optional}\""
        return f"{kind}({result}, {function.name}, ({', '.join(written)}), {facts}, {', '.join(passed)})"

    if function.name.endswith("_"):
        yield line("INPLACE_", "*this" if method else _cpp(names[0]), names, written, passed)
    else:
        yield line("OPERATOR_", function.result, names, written, passed)
    if function.out and not method:
        yield line("OUT_", "out", [*names, "out"], ["const Tensor& out", *written], [*passed, "out"])
