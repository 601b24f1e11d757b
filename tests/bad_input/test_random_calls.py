"""Every public function, called with arguments that are mostly wrong, raises or answers, and changes nothing it refused."""

from __future__ import annotations

import inspect
import warnings

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.dispatch.operator import offers, operators
from flambeau.errors import FlambeauError

#: What a refusal may be besides a FlambeauError: Python's own complaints about an argument that is no tensor or number,
#: and what the DLPack protocol wants.
ORDINARY = (TypeError, ValueError, AttributeError, NotImplementedError, OverflowError, BufferError)
#: These set what holds for the whole process, or call what they are given.
LEFT_OUT = {"apply_", "map_", "pin_memory", "cuda", "register_hook"}


def functions():
    """(name, function, whether it is a method) of everything that operators and offers put into public namespaces."""
    for each in (*operators.values(), *offers):
        name = each.name.rpartition(".")[2]
        for space in each.namespaces:
            module = {"": torch, "nn.functional": F}.get(space)
            if module is not None:
                yield f"{space}.{name}", getattr(module, name), False
        for method in {name, getattr(each, "inplace", None) or name, *getattr(each, "dunders", ())}:
            if each.method or method != name:
                yield f"Tensor.{method}", getattr(torch.Tensor, method), True
    for name in ("to", "view", "__getitem__", "__setitem__", "new_full", "resize_", "tolist", "item", "numpy"):
        yield f"Tensor.{name}", getattr(torch.Tensor, name), True
    for name in (
        "zeros",
        "full",
        "arange",
        "linspace",
        "eye",
        "randint",
        "randperm",
        "normal",
        "tensor",
        "empty_strided",
    ):
        yield name, getattr(torch, name), False


FUNCTIONS = sorted(
    {name: (name, function, method) for name, function, method in functions()}.values(), key=lambda f: f[0]
)
FUNCTIONS = [each for each in FUNCTIONS if each[0].rpartition(".")[2] not in LEFT_OUT]

#: Sizes that are small, wrong, or beyond what any machine has.
INTEGERS = st.one_of(
    st.integers(-4, 5), st.sampled_from([-(2**63), 2**63 - 1, 2**63, -(2**63) - 1, 2**48, 2**62, 10**30])
)
NUMBERS = st.one_of(INTEGERS, st.floats(), st.booleans(), st.sampled_from([1j, 0.5, 1e308, 5e-324]))
SHAPES = st.one_of(st.lists(st.integers(0, 4), max_size=4), st.sampled_from([[3], [2, 3], [3, 3], [2, 3, 4, 4]]))
DTYPES = st.sampled_from(
    [torch.float32, torch.int64, torch.bool, torch.float64, torch.uint8, torch.int32, torch.float16, torch.bfloat16,
     torch.complex64]
)  # fmt: skip


@st.composite
def tensors(draw, dtype=None):
    dtype, shape = dtype or draw(DTYPES), draw(SHAPES)
    x = torch.arange(torch.Size(shape).numel()).reshape(shape) % 5 - draw(st.integers(0, 2))
    if x.numel() and draw(st.booleans()):
        x.view(-1)[draw(st.integers(0, x.numel() - 1))] = draw(st.sampled_from([100, -100, 2**62, -(2**63)]))
    x = x.to(dtype)
    change = draw(st.sampled_from(["", "", "", "t", "step", "expand", "leaf", "history"]))
    if change == "t" and x.dim() > 1:
        return x.transpose(0, -1)
    if change == "step" and x.dim():
        return x[::2]
    if change == "expand":
        return x.expand(2, *shape)
    if change in ("leaf", "history") and dtype.is_floating_point:
        x.requires_grad_()
        return x * 1 if change == "history" else x
    return x


WRONG = st.one_of(
    NUMBERS,
    st.lists(INTEGERS, max_size=5),
    tensors(),
    st.lists(tensors(), max_size=3),
    st.sampled_from(
        [None, "", "mean", "ij,jk->ik", b"x", (), {}, [None], [[1], [2, 3]], slice(None), slice(5, 1, -1), ...]
    ),
    DTYPES,
)


def fitting(parameter):
    """Values of about the kind that a parameter wants."""
    name, wanted = parameter.name, str(parameter.annotation)
    if name in ("out", "self", "input") or wanted.startswith("Tensor"):
        return tensors(torch.int64 if name in ("index", "target") else None)
    if "Sequence[Tensor]" in wanted:
        return st.lists(tensors(), max_size=3)
    if "bool" in wanted:
        return st.booleans()
    if "Sequence" in wanted or "Ints" in wanted or "Dims" in wanted:
        return st.one_of(INTEGERS, st.lists(st.integers(-1, 3), max_size=4))
    if "int" in wanted:
        return INTEGERS
    return NUMBERS if "float" in wanted else WRONG


@st.composite
def calls(draw):
    name, function, method = draw(st.sampled_from(FUNCTIONS))
    args, kwargs = [draw(tensors())] if method else [], {}
    for parameter in list(inspect.signature(function).parameters.values())[int(method) :]:
        optional = parameter.default is not parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD or (optional and draw(st.booleans())):
            continue
        value = draw(WRONG if draw(st.integers(0, 5)) == 0 else fitting(parameter))
        if optional or parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return name, function, args, kwargs


def state(values):
    """Shape, place, version and contents of every tensor in some arguments."""
    found = []
    for each in values:
        if isinstance(each, torch.Tensor):
            contents = each.detach().contiguous().view(-1)
            found.append((each.shape, each.stride(), each.data_ptr(), each._version, repr(contents.tolist())))
        elif isinstance(each, (list, tuple)):
            found += state(each)
    return found


@settings(max_examples=1500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls())
def test_a_refused_call_changes_nothing(call):
    name, function, args, kwargs = call
    before = state([*args, *kwargs.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except FlambeauError as error:
            assert str(error).strip() and len(str(error)) < 1000
        except ORDINARY:
            pass
        else:
            return
    assert state([*args, *kwargs.values()]) == before, name


def test_every_operator_is_called():
    called = {name.rpartition(".")[2] for name, _, _ in FUNCTIONS}
    public = {each.name.rpartition(".")[2] for each in operators.values() if each.namespaces or each.method}
    assert public - called == set()
    with pytest.raises(FlambeauError):
        torch.zeros(2**48)
