"""Module: members, walking, hooks, state, conversions, text."""

import copy
import pickle

import numpy as np
import pytest

import flambeau
from flambeau import nn


class Scale(nn.Module):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(flambeau.ones(size))
        self.register_buffer("calls", flambeau.zeros(1))
        self.register_buffer("cache", flambeau.zeros(1), persistent=False)
        self.register_parameter("bias", None)

    def forward(self, x, factor=1.0):
        return x * self.weight * factor


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()
        self.shared = self.first

    def forward(self, x):
        return self.second(self.first(x))


def test_members_are_registered_by_assignment():
    module = Pair()
    assert [name for name, _ in module.named_parameters()] == ["first.weight", "second.weight"]
    assert len(list(module.parameters())) == 2
    assert [name for name, _ in module.named_parameters(remove_duplicate=False)] == [
        "first.weight", "second.weight", "shared.weight",
    ]  # fmt: skip
    assert [name for name, _ in module.named_buffers()] == [
        "first.calls",
        "first.cache",
        "second.calls",
        "second.cache",
    ]
    assert [name for name, _ in module.named_children()] == ["first", "second"]
    assert [name for name, _ in module.named_modules()] == ["", "first", "second"]
    assert next(iter(module.modules())) is module
    assert list(module.parameters(recurse=False)) == []


def test_views_of_the_members_write_through():
    module = Scale()
    assert list(module._parameters) == ["weight", "bias"]
    assert len(module._buffers) == 2 and "cache" in module._buffers
    new = nn.Parameter(flambeau.zeros(3))
    module._parameters["weight"] = new
    assert module.weight is new
    del module._parameters["weight"]
    assert not hasattr(module, "weight")
    with pytest.raises(KeyError):
        module._parameters["calls"]


def test_assignment_keeps_kinds_apart():
    module = Scale()
    with pytest.raises(
        TypeError, match=r"cannot assign a Tensor as parameter 'weight': expected a flambeau\.nn\.Parameter or None"
    ):
        module.weight = flambeau.ones(3)
    with pytest.raises(TypeError, match="cannot assign a int as buffer 'calls'"):
        module.calls = 3
    module.weight = None
    assert list(module.parameters()) == [] and list(module._parameters) == ["weight", "bias"]
    module.calls = flambeau.ones(2)
    assert "calls" in module.state_dict()
    module.bias = nn.Parameter(flambeau.ones(1))
    assert [name for name, _ in module.named_parameters()] == ["bias"]
    del module.calls
    assert "calls" not in module.state_dict()
    module.calls = 3  # an ordinary attribute now
    assert module.calls == 3


def test_registration_checks_names_and_types():
    module = Scale()
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        module.register_buffer("forward", flambeau.ones(1))
    with pytest.raises(KeyError, match="contain"):
        module.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="be empty string"):
        module.add_module("", None)
    with pytest.raises(TypeError, match="Parameter"):
        module.register_parameter("p", flambeau.ones(1))
    with pytest.raises(TypeError, match="buffer 'b'"):
        module.register_buffer("b", 1)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        module.add_module("m", 1)
    with pytest.raises(AttributeError, match="no submodule 'nowhere'"):
        Pair().get_submodule("nowhere")
    assert Pair().get_parameter("first.weight").shape == (3,)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(flambeau.ones(1))

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Early()
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(1)


def test_parameter_is_a_leaf_that_shares_memory():
    data = flambeau.zeros(2)
    parameter = nn.Parameter(data)
    assert parameter.requires_grad and parameter.is_leaf and isinstance(parameter, flambeau.Tensor)
    data.fill_(3)
    assert parameter.tolist() == [3, 3]
    assert repr(parameter).startswith("Parameter containing:\n")
    assert not nn.Parameter(flambeau.zeros(2, dtype=flambeau.int64), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(flambeau.zeros(2, dtype=flambeau.int64))
    assert nn.Parameter().shape == (0,)


def test_call_passes_arguments_and_hooks_change_them():
    module = Scale()
    x = flambeau.ones(3)
    assert module(x, factor=2.0).tolist() == [2, 2, 2]
    seen = []
    handle = module.register_forward_pre_hook(lambda m, args: (args[0] * 3,))
    first = module.register_forward_hook(lambda m, args, out: seen.append((args[0].tolist(), out.tolist())))
    assert module(x).tolist() == [3, 3, 3]
    assert seen == [([3, 3, 3], [3, 3, 3])]
    handle.remove()
    first.remove()
    assert module(x).tolist() == [1, 1, 1] and len(seen) == 1
    with module.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["factor"], with_kwargs=True):
        assert module(x, factor=2.0).tolist() == [4, 4, 4]
    order = []
    module.register_forward_pre_hook(lambda m, args: order.append("second"))
    module.register_forward_pre_hook(lambda m, args: order.append("first"), prepend=True)
    module(x)
    assert order == ["first", "second"]


def test_backward_hooks_see_and_replace_gradients():
    module = Scale()
    seen = []

    def hook(m, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    handle = module.register_full_backward_hook(hook)
    x = flambeau.ones(3).requires_grad_()
    module(x, factor=2.0).sum().backward()
    assert seen == [([2, 2, 2], [1, 1, 1])]
    assert x.grad.tolist() == [20, 20, 20] and module.weight.grad.tolist() == [2, 2, 2]
    handle.remove()
    module.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 5,))
    x.grad = None
    module(x).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    seen.clear()
    module.register_backward_hook(lambda m, gi, go: seen.append(gi))
    module(flambeau.ones(3)).sum().backward()  # an input without history
    assert seen == [(None,)]


def test_state_dict_round_trip_and_reports():
    module = Pair()
    module.first.weight.data.fill_(4)
    state = module.state_dict()
    assert list(state) == [
        "first.weight", "first.calls", "second.weight", "second.calls", "shared.weight", "shared.calls",
    ]  # fmt: skip
    assert state._metadata["first"] == {"version": 1}
    other = Pair()
    result = other.load_state_dict(state)
    assert repr(result) == "<All keys matched successfully>" and other.first.weight.tolist() == [4, 4, 4]
    assert other.first.weight is not module.first.weight
    state["extra"] = flambeau.ones(1)
    del state["first.calls"]
    state["second.weight"] = flambeau.ones(2, 2)
    with pytest.raises(RuntimeError) as error:
        other.load_state_dict(state)
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Pair:\n\t")
    assert 'Missing key(s) in state_dict: "first.calls". ' in text
    assert 'Unexpected key(s) in state_dict: "extra". ' in text
    assert "size mismatch for second.weight: copying a param with shape torch.Size([2, 2]) from checkpoint" in text
    del state["second.weight"]
    missing, unexpected = other.load_state_dict(state, strict=False)
    assert missing == ["first.calls", "second.weight"] and unexpected == ["extra"]
    with pytest.raises(TypeError, match="dict-like"):
        other.load_state_dict(3)
    kept = module.state_dict(keep_vars=True)
    assert kept["first.weight"] is module.first.weight
    assigned = Scale()
    values = {"weight": flambeau.zeros(3), "calls": flambeau.zeros(1)}
    assigned.load_state_dict(values, assign=True)
    assert isinstance(assigned.weight, nn.Parameter) and assigned.calls is values["calls"]


def test_scalars_saved_with_one_dimension_load():
    module = nn.Module()
    module.register_buffer("steps", flambeau.tensor(0))
    module.load_state_dict({"steps": flambeau.tensor([7])})
    assert module.steps.item() == 7 and module.steps.shape == ()


def test_conversions_leave_integers_alone():
    module = Scale()
    module.register_buffer("count", flambeau.tensor(3))
    module.register_parameter("index", nn.Parameter(flambeau.tensor([1, 2]), requires_grad=False))
    weight = module.weight
    module(flambeau.ones(3)).sum().backward()
    module.double()
    assert module.weight is weight and weight.dtype is flambeau.float64 and weight.grad.dtype is flambeau.float64
    assert module.calls.dtype is flambeau.float64
    assert module.count.dtype is flambeau.int64 and module.index.dtype is flambeau.int64
    module.half()
    assert weight.dtype is flambeau.float16 and module.count.dtype is flambeau.int64
    assert module.float().weight.dtype is flambeau.float32
    assert module.to(flambeau.float64).weight.dtype is flambeau.float64
    assert module.to("cpu", dtype=flambeau.float32) is module and module.weight.dtype is flambeau.float32
    assert module.cpu() is module
    with pytest.raises(TypeError, match="only accepts floating point"):
        module.to(flambeau.int64)
    module(flambeau.ones(3)).sum().backward()


def test_modes_and_gradients():
    module = Pair()
    assert module.training and module.first.training
    module.eval()
    assert not module.first.training
    module.train()
    assert module.second.training
    with pytest.raises(ValueError, match="expected to be boolean"):
        module.train(1)
    module(flambeau.ones(3)).sum().backward()
    assert module.first.weight.grad is not None
    module.zero_grad(set_to_none=False)
    assert module.first.weight.grad.tolist() == [0, 0, 0]
    module.zero_grad()
    assert module.first.weight.grad is None
    module.requires_grad_(False)
    assert not any(each.requires_grad for each in module.parameters())


def test_apply_visits_children_first():
    order = []
    Pair().apply(lambda module: order.append(type(module).__name__))
    assert order == ["Scale", "Scale", "Pair"]


def test_copies_and_pickles():
    module = Pair()
    module.first.weight.data.fill_(2)
    copied = copy.deepcopy(module)
    assert copied.first.weight is not module.first.weight and copied.first is copied.shared
    assert copied.first.weight.tolist() == [2, 2, 2] and isinstance(copied.first.weight, nn.Parameter)
    copied.first.weight.data.fill_(5)
    assert module.first.weight.tolist() == [2, 2, 2]
    assert [name for name, _ in copied.named_parameters()] == ["first.weight", "second.weight"]
    assert pickle.loads(pickle.dumps(nn.Identity())).training


def test_repr_nests():
    class Named(nn.Module):
        def extra_repr(self):
            return "size=3"

    module = nn.Sequential(Named(), nn.Sequential(Scale()))
    assert repr(module) == "Sequential(\n  (0): Named(size=3)\n  (1): Sequential(\n    (0): Scale()\n  )\n)"


def test_a_parameter_works_on_the_fast_path():
    parameter = nn.Parameter(flambeau.tensor([1.0, 2.0]))
    other = flambeau.tensor([3.0, 4.0])
    for result in (parameter + other, other + parameter):
        assert type(result) is flambeau.Tensor
        np.testing.assert_array_equal(result.detach().numpy(), [4, 6])
    with flambeau.no_grad():
        parameter.add_(other)
    assert parameter.tolist() == [4, 6] and parameter.is_leaf and parameter._version == 1
