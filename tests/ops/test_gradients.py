"""First and second gradients of every differentiable primitive against finite differences, in float64, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.conformance.categories.memory import SCRATCH
from flambeau.conformance.families import SAMPLES
from flambeau.conformance.operands import Draw
from flambeau.conformance.samples import VALUES, samples_of
from flambeau.conformance.subject import placing
from flambeau.device import device
from flambeau.dispatch.operator import operators

#: what other tests differentiate, and why not here
ELSEWHERE = {
    "move": "to another device: tests/plugins",
    "sparse_tensor": "layouts: tests/backends/sparse", "sparse_values": "likewise", "sparse_lookup": "likewise",
    "coalesce": "likewise", "sspaddmm": "likewise", "sparse_product": "likewise", "sampled_product": "likewise",
    "to_dense": "likewise", "permute_copy": "likewise",
    "drop": "draws random numbers: tests/nn/test_randomised.py", "normal": "likewise",
    "class_loss_backward": "the gradient of class_loss, whose second gradient it has",
    "pair_loss_backward": "the gradient of pair_loss, whose second gradient it has",
}  # fmt: skip
#: of several results, those that have gradients
FIRST = {"batch_norm_train", "row_norm"}
#: gradients by convention, which are no derivatives where indices repeat: samples in which none does
UNREPEATED = {
    "index_copy_": lambda args: _distinct(args[1]), "scatter_": lambda args: args[4] == "add" or (args[4] == "" and _distinct(args[1])),
    "embedding": lambda args: args[2] < 0 and not args[3] and not args[4],
}  # fmt: skip


#: functions of a (3, 4) tensor for operators that the kit has no calls of its own for
CALLS = {
    "as_strided": lambda x: x.as_strided((2, 3), (1, 4), 1),
    "as_strided_scatter": lambda x: x.as_strided_scatter(x[:2, :3] * 2, (2, 3), (4, 1), 1),
    "basic_index": lambda x: x[1:, None, ::2] * x[..., :2].unsqueeze(0).sum(),
    "cat": lambda x: flambeau.cat([x, x[:1] * x[1:2], x * 2]),
    "diagonal": lambda x: x.diagonal(1),
    "expand": lambda x: x.unsqueeze(1).expand(3, 2, 4) * 3,
    "permute": lambda x: x.reshape(3, 2, 2).permute(2, 0, 1),
    "plane_put": lambda x: operators["plane_put"].function.run(
        x.reshape(1, 3, 4), flambeau.tensor([0, 5, 2, 7]).expand(1, 3, 4), (8,)
    ),
    "select": lambda x: x.select(1, 2),
    "slice_": lambda x: x.narrow(0, 1, 2),
    "split_with_sizes": lambda x: x.split([1, 3], 1)[1] * x.split([1, 3], 1)[0],
    "squeeze": lambda x: x.reshape(3, 1, 4).squeeze(1),
    "t": lambda x: x.t(),
    "transpose": lambda x: x.transpose(0, 1),
    "unbind": lambda x: x.unbind(1)[2] * x.unbind(1)[0],
    "unfold": lambda x: x.unfold(1, 2, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(2, 6),
}
#: what is drawn depends on the generator alone
DRAWN = {
    "bernoulli": lambda x: x.sigmoid().bernoulli(),
    "bernoulli_each_": lambda x: (x * 1).bernoulli_(flambeau.full((3, 4), 0.5)),
    "bernoulli_number_": lambda x: (x * 1).bernoulli_(0.5),
    "cauchy_": lambda x: (x * 1).cauchy_(),
    "exponential_": lambda x: (x * 1).exponential_(),
    "geometric_": lambda x: (x * 1).geometric_(0.5),
    "integers_": lambda x: (x * 1).random_(5),
    "normal_": lambda x: (x * 1).normal_(),
    "poisson": lambda x: flambeau.poisson(x.exp()),
    "uniform_": lambda x: (x * 1).uniform_(),
}


def _distinct(index):
    values = index.flatten().tolist()
    return len(values) == len(set(values))


DIFFERENTIABLE = sorted(
    name for name, op in operators.items() if op.differentiable and op.kind != "composite" and "::" not in name
)


def varied(op, args):
    """The positions of the arguments to differentiate."""
    return [
        i
        for i, each in enumerate(args[: len(op.parameters)])
        if isinstance(each, flambeau.Tensor)
        and each.dtype is flambeau.float64
        and (op.joint is not None or op.parameters[i] in op.formulas)
        and SCRATCH.get(op.name) != i
    ]


def cases(name):
    """Calls to differentiate: the function, and its arguments."""
    if name in CALLS:
        numbers = np.random.default_rng(0).normal(size=(3, 4))
        yield CALLS[name], (flambeau.tensor(numbers, requires_grad=True),)
        return
    op, place = operators[name], placing(device("cpu"))
    fits = UNREPEATED.get(name, lambda _: True)
    for sample in samples_of(name, Draw(flambeau.float64, 1)):
        if sample.about != VALUES:
            continue
        args = [place(each) for each in sample.args]
        positions = varied(op, args)
        if not positions or not fits(args):
            continue

        def call(*values, args=args, positions=positions):
            filled = list(args)
            for i, value in zip(positions, values, strict=True):
                filled[i] = value
            if op.mutates:
                filled[0] = filled[0].clone()
            result = op.function.run(*filled)
            return filled[0] if op.mutates else result[0] if name in FIRST else result

        yield call, tuple(args[i].requires_grad_() for i in positions)


CHECKED = [each for each in DIFFERENTIABLE if each not in ELSEWHERE and each not in DRAWN]


def test_nothing_is_left_out():
    assert ELSEWHERE.keys() | CALLS.keys() | DRAWN.keys() <= set(DIFFERENTIABLE)
    assert set(CHECKED) - CALLS.keys() <= {each.split()[0] for each in SAMPLES}
    assert [name for name in CHECKED if next(cases(name), None) is None] == []
    for name, call in CALLS.items():
        with flambeau.backends.trace():
            nodes, seen = [call(flambeau.ones(3, 4, dtype=flambeau.float64, requires_grad=True)).grad_fn], set()
            while nodes:
                node = nodes.pop()
                seen.add(getattr(getattr(node, "op", None), "name", None))
                nodes += [each for each, _ in node.next_functions if each is not None]
        assert name in seen, f"{name} is not what the call records: {seen}"


@pytest.mark.parametrize("name", CHECKED)
def test_gradients_are_finite_differences(name):
    for count, (call, inputs) in enumerate(cases(name)):
        assert gradcheck(call, inputs, fast_mode=True)
        assert gradgradcheck(call, inputs, fast_mode=True)
        if count == 1:
            break


@pytest.mark.parametrize("name", DRAWN)
def test_no_gradient_flows_through_what_is_drawn(name):
    x = flambeau.ones(3, 4, requires_grad=True)
    result = DRAWN[name](x)
    if result.requires_grad:
        (result * 2).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.zeros((3, 4)))
    else:
        assert result.grad_fn is None
