"""What explain says is what then runs; and nothing runs while it says so."""

from __future__ import annotations

import threading
import warnings

import pytest
from hypothesis import HealthCheck, given, settings

import flambeau as torch
import flambeau.nn as nn
from flambeau import backends
from flambeau.backend import DTYPES, Kernel
from flambeau.dispatch.operator import operators
from flambeau.dispatch.providers import place_of, registry
from flambeau.key import intern
from flambeau.ops.results import VALUE_DEPENDENT

from ..bad_input.test_random_calls import calls, state
from .samples import arguments

F = nn.functional
backends.available()
REGISTERED = [
    (name, dtype)
    for provider in registry.providers
    if provider.device == "cpu" and provider.layout is torch.strided
    for name in sorted(provider.kernels)
    for dtype in DTYPES
    if (name, dtype.category) not in {("bernoulli", 0), ("bernoulli", 1)}  # probabilities are floating-point numbers
    if provider.kernel(name, intern(torch.device("cpu"), dtype=dtype)) is not None
]
#: Operators after which only values tell how a call goes on.
OPEN = VALUE_DEPENDENT | {"sgd_steps_", "adam_steps_"}


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [part for each in value for part in tensors(each)] if isinstance(value, (list, tuple)) else []


def same(function, *args, **kwargs):
    """Explain, then run under a trace: the calls and the results' shapes agree; returns the explanation."""
    before = [each.tolist() for each in tensors(args)]
    explanation = backends.explain(function, *args, **kwargs)
    assert repr([each.tolist() for each in tensors(args)]) == repr(before), "explain wrote"
    with backends.trace() as ran:
        result = function(*args, **kwargs)
    if explanation.stopped is None:
        assert explanation.calls == ran.direct()
        described = [(each.shape, each.dtype) for each in explanation._outputs]
        assert described == [(each.shape, each.dtype) for each in tensors(result)]
    else:
        assert explanation.calls == ran.direct()[: len(explanation.calls)] and explanation.calls
    return explanation


@pytest.mark.parametrize("name", sorted({name for name, _ in REGISTERED}))
def test_every_registered_key(name):
    for dtype in [each for known, each in REGISTERED if known == name]:
        args = arguments(name, dtype)
        explanation = same(operators[name].function.run, *args)
        found = [each.call for each in explanation.steps if each.call.operator == name and each.call.depth == 0]
        assert found and found[0].provider is not None and found[0].dtype == dtype.name
        assert (explanation.stopped is None) == (name not in OPEN)


def test_every_primitive_tells_what_it_returns():
    untold = {op.name for op in operators.values() if op.kind in ("pointwise", "primitive")}
    untold -= {op.name for op in operators.values() if op.mutates or op.body is not None or op.returned is not None}
    assert untold == VALUE_DEPENDENT - {op.name for op in operators.values() if op.body is not None}


x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
CALLS = {
    "conv2d": (F.conv2d, (x, w)),
    "conv_transpose2d": (F.conv_transpose2d, (x, torch.randn(3, 5, 2, 2))),
    "promotion": (torch.add, (x, torch.arange(8))),
    "numbers": (torch.mul, (2.5, x)),
    "batch_norm": (F.batch_norm, (x, torch.zeros(3), torch.ones(3))),
    "batch_norm_training": (F.batch_norm, (x, torch.zeros(3), torch.ones(3), None, None, True)),
    "layer_norm": (F.layer_norm, (x, (8, 8))),
    "cross_entropy": (F.cross_entropy, (torch.randn(4, 5), torch.tensor([0, 1, 2, 3]))),
    "smooth_l1_loss": (F.smooth_l1_loss, (torch.randn(4), torch.randn(4))),
    "einsum": (torch.einsum, ("bchw,ochw->bo", x, torch.randn(4, 3, 8, 8))),
    "interpolate": (F.interpolate, (x, 5)),
    "grid_sample": (F.grid_sample, (x, torch.rand(2, 3, 3, 2))),
    "max_pool2d": (F.max_pool2d, (x, 2)),
    "embedding": (F.embedding, (torch.tensor([0, 2]), torch.randn(3, 4))),
    "gather": (torch.gather, (x, 1, torch.zeros(2, 1, 8, 8, dtype=torch.int64))),
    "index": (lambda a: a[:, [0, 2], 1:3], (x,)),
    "index_put": (lambda a: a.clone().index_put_((torch.tensor([0], device=a.device),), a[1:]), (x,)),
    "setitem": (lambda a: a.clone().__setitem__(0, 1.0), (x,)),
    "norm": (torch.norm, (x, 2)),
    "std": (torch.std, (x, 1)),
    "topk": (torch.topk, (x, 2)),
    "cat": (torch.cat, ([x, x * 1], 1)),
    "stack": (torch.stack, ([x, x],)),
    "in place": (lambda a: a.clone().add_(1).t_() if a.ndim == 2 else a.clone().mul_(2), (x,)),
    "dropout": (F.dropout, (x, 0.5)),
    "softplus": (F.softplus, (x,)),
    "lstm": (nn.LSTM(3, 4), (torch.randn(5, 2, 3),)),
    "logsumexp": (torch.logsumexp, (x, 1)),
    "half": (torch.exp, (x.half(),)),
    "cosine_similarity": (F.cosine_similarity, (x, x)),
    "view": (torch.t, (x[0, 0],)),
    "chain": (lambda a: ((a + 1).exp().sum(1, keepdim=True) / a).softmax(-1).argmax(-1), (x,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_whole_calls(name):
    function, args = CALLS[name]
    explanation = same(function, *args)
    assert explanation.stopped is None, explanation


def test_modules_are_explained_with_their_parameters():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    explanation = same(model, x)
    assert [each.operator for each in explanation.calls][0] == "conv" and explanation.provider == "cpu"


def test_backward():
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    explanation = backends.explain(lambda p, q: (p @ q).exp(), a, b)
    backward = explanation.backward()
    result = (a @ b).exp()
    seed = torch.ones(3, 2)
    with backends.trace() as ran:
        torch.autograd.grad(result, [a, b], seed)
    assert backward.calls == ran.direct() and len(backward.calls) >= 3
    assert a.grad is None and b.grad is None
    with pytest.raises(ValueError, match=r"explain\('exp', ...\)\.backward\(\): no result has a gradient"):
        backends.explain("exp", torch.ones(2)).backward()


def test_backward_runs_in_the_choice_of_its_forward(rival):
    a = torch.randn(3, requires_grad=True)
    with backends.prefer("rival"):
        explanation = backends.explain("mul", a, 2.0)
    assert explanation.provider == "rival" and explanation.backward().provider == "rival"
    assert backends.explain("mul", a, 2.0).provider == "cpu" and rival == []


def test_factories():
    for name, args in (("zeros", (2, 3)), ("randn", (4,)), ("arange", (5,)), ("eye", (3,))):
        same(getattr(torch, name), *args)
    assert backends.explain("randn", 3).calls[0].operator == "normal_"


def test_no_random_number_is_drawn():
    torch.manual_seed(3)
    state = torch.get_rng_state().tolist()
    backends.explain("dropout", torch.ones(4), 0.5)
    backends.explain("rand", 4)
    backends.explain("normal_", torch.ones(4), generator=torch.Generator())
    assert torch.get_rng_state().tolist() == state


def test_values_of_arguments_can_be_read_until_they_would_change():
    a, count = torch.arange(6.0), torch.tensor(2)
    assert same(torch.topk, a, count).stopped is None
    explanation = backends.explain(lambda each: each.add_(1).item(), count)
    assert explanation.stopped == "the values of a result are needed to go on" and count.item() == 2
    assert [each.operator for each in explanation.calls] == ["add"]


def test_where_values_decide_it_says_so():
    explanation = backends.explain(lambda a: a.masked_select(a > 0).exp(), torch.ones(3))
    assert [each.operator for each in explanation.calls] == ["gt", "masked_select"]
    assert explanation.stopped == "the shape of the result of masked_select depends on values"
    assert str(explanation).splitlines()[-1] == (
        "It is not known how it goes on: the shape of the result of masked_select depends on values."
    )


def test_a_tensor_from_elsewhere_is_not_touched():
    hidden = torch.ones(3)
    explanation = backends.explain(lambda a: hidden.exp() + a, torch.ones(3))
    assert explanation.steps == []
    assert explanation.stopped == "exp works on a tensor that is not an argument of the call"


def test_errors_of_the_call_are_raised():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        backends.explain("mm", torch.ones(2, 3), torch.ones(2, 3))
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        backends.explain("exp_", a)


def test_a_missing_kernel(toy):
    toy()
    explanation = backends.explain("exp", torch.ones(2, device="toy"))
    assert explanation.provider is None and explanation.calls[0].how == "missing"
    assert str(explanation).splitlines()[:3] == [
        "exp for float32 on toy:0 (strided)",
        "   toy 2.5 (priority 0): has no kernel for it",
        '-> "exp" not implemented for float32 on toy:0 (strided).',
    ]
    with backends.fallback("cpu") as moved:
        explanation = backends.explain(lambda a: a.exp() + 1, torch.ones(2, device="toy"))
        assert [(each.operator, each.how, each.provider, each.depth) for each in explanation.calls] == [
            ("exp", "fallback", None, 0), ("exp", "kernel", "cpu", 1), ("add", "kernel", "toy", 0),
        ]  # fmt: skip
        same(lambda a: a.exp() + 1, torch.ones(2, device="toy"))
    assert moved.counts["exp"].calls == 1


def test_a_composite_on_the_device(toy):
    toy()
    explanation = same(torch.Tensor.zero_, torch.ones(2, device="toy"))
    assert explanation.provider == "toy"
    with backends.fallback("cpu"):
        explanation = same(F.linear, torch.ones(2, 3, device="toy"), torch.ones(4, 3, device="toy"))
    assert explanation.calls[0].how == "composite" and "composite of other operators  [" in str(explanation)


def test_a_predicate_that_needs_values(toy):
    def looks(a, b):
        return b.tolist()[0] > 0

    kernels = toy.kernels()
    kernels["add"] = Kernel(kernels["add"].function, predicate=looks)
    toy(kernels=kernels)
    a = torch.ones(2, device="toy")
    assert backends.explain("add", a, a).provider == "toy"
    explanation = backends.explain(lambda each: each + each * 2, a)
    assert [each.operator for each in explanation.calls] == ["mul"]
    assert explanation.stopped == "a predicate looks at the values of a result"


def test_it_says_who_would_serve_and_why_the_others_lose(rival):
    assert backends.explain("mul", torch.ones(3), 1).steps[0].verdicts[0].serves
    lines = str(backends.explain("add", torch.ones(200), 1)).splitlines()
    assert lines[0] == "add for float32 on cpu (strided)"
    assert lines[1].startswith("-> cpu ") and "(priority 0): serves the call  [" in lines[1]
    assert lines[2].startswith("   rival 9 (priority -1): comes later in the order  [") and ".py:" in lines[2]
    with backends.prefer("rival"):
        lines = str(backends.explain("add", torch.ones(200), 1)).splitlines()
    assert "rival 9 (priority -1): declines these arguments" in lines[1] and lines[2].startswith("-> cpu")
    with backends.disable("rival"):
        assert "rival 9 (priority -1): is disabled" in str(backends.explain("mul", torch.ones(3), 1))
    assert "rival 9 (priority -1): has no kernel for it" in str(backends.explain("exp", torch.ones(3)))
    assert "rival 9 (priority -1): has no kernel for bool" in str(backends.explain("maximum", *torch.ones(2, 3).bool()))


def test_sources_are_places_in_files():
    for provider in [each for each in registry.providers if each.device == "cpu"]:
        for name, family in provider.kernels.items():
            path, _, line = place_of(family).rpartition(":")
            assert path.endswith((".py", ".c", ".cu")) and line.isdigit(), (provider.name, name, place_of(family))


def test_many_threads_explain_while_others_compute():
    a = torch.ones(50)
    wrong = []

    def work(number):
        for _ in range(40):
            if number % 2:
                found = backends.explain(lambda each: (each + 1).exp().sum(), a)
                if [each.provider for each in found.calls] != ["cpu", "cpu", "cpu"] or found.stopped:
                    wrong.append(found)
            elif (a + 1).sum().item() != 100:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == [] and registry.scopes == 0


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(calls())
def test_random_calls_run_as_explained(call):
    _, function, args, kwargs = call
    given_state = state([*args, *kwargs.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            explanation = backends.explain(function, *args, **kwargs)
        except Exception:
            explanation = None
        assert state([*args, *kwargs.values()]) == given_state, "explain wrote"
        with backends.trace() as ran:
            try:
                result = function(*args, **kwargs)
            except Exception:
                return  # only values may tell that before
    assert explanation is not None, "explain raised where the call does not"
    direct = ran.direct()
    assert explanation.calls == (direct if explanation.stopped is None else direct[: len(explanation.calls)])
    if explanation.stopped is None:
        described = [(each.shape, each.dtype) for each in explanation._outputs]
        assert described == [(each.shape, each.dtype) for each in tensors(result)]
