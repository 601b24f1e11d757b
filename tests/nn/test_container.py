"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import flambeau
from flambeau import nn


class Add(nn.Module):
    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def forward(self, x):
        return x + self.number

    def extra_repr(self):
        return str(self.number)


def numbers(modules):
    return [each.number for each in modules]


def test_sequential_runs_in_order_and_slices():
    model = nn.Sequential(Add(1), Add(2), Add(3))
    assert model(flambeau.zeros(1)).item() == 6
    assert numbers(model) == [1, 2, 3] and len(model) == 3
    assert model[-1].number == 3
    part = model[1:]
    assert isinstance(part, nn.Sequential) and numbers(part) == [2, 3] and part[0] is model[1]
    model[0] = Add(10)
    assert numbers(model) == [10, 2, 3]
    del model[0]
    assert numbers(model) == [2, 3] and list(model._modules) == ["0", "1"]
    model.append(Add(4)).extend([Add(5)])
    model.insert(0, Add(0))
    assert numbers(model) == [0, 2, 3, 4, 5]
    assert model.pop().number == 5 and len(model) == 4
    del model[1:3]
    assert numbers(model) == [0, 4]
    assert numbers(model + nn.Sequential(Add(9))) == [0, 4, 9]
    with pytest.raises(IndexError, match="index 7 is out of range: Sequential has 2 members"):
        model[7]


def test_sequential_keeps_given_names():
    model = nn.Sequential(OrderedDict(a=Add(1), b=Add(2), c=Add(3)))
    assert list(model._modules) == ["a", "b", "c"] and model.b.number == 2
    del model[0]
    assert list(model._modules) == ["b", "c"]
    assert list(model[:1]._modules) == ["b"]


def test_module_list():
    modules = nn.ModuleList([Add(1), Add(2)])
    modules += [Add(3)]
    modules.append(Add(4))
    assert numbers(modules) == [1, 2, 3, 4] and numbers(modules[::2]) == [1, 3]
    modules[1] = Add(20)
    del modules[0]
    modules.insert(1, Add(7))
    assert numbers(modules) == [20, 7, 3, 4] and list(modules._modules) == ["0", "1", "2", "3"]
    modules[1:3] = [Add(8), Add(9)]
    assert numbers(modules) == [20, 8, 9, 4]
    with pytest.raises(TypeError, match="extend should be called with an iterable"):
        modules.extend(3)
    with pytest.raises(TypeError, match="not a Module subclass"):
        modules.append(3)
    with pytest.raises(NotImplementedError, match="forward"):
        modules(1)
    assert "0" not in dir(modules)


def test_module_dict():
    modules = nn.ModuleDict({"a": Add(1), "b": Add(2)})
    modules["c"] = Add(3)
    assert list(modules) == ["a", "b", "c"] and "a" in modules and modules["b"].number == 2
    assert modules.pop("a").number == 1 and len(modules) == 2
    modules.update([("b", Add(5))])
    assert [(key, each.number) for key, each in modules.items()] == [("b", 5), ("c", 3)]
    del modules["b"]
    assert list(modules.keys()) == ["c"] and numbers(modules.values()) == [3]
    with pytest.raises(KeyError):
        modules["b"]
    with pytest.raises(TypeError, match="keys are strings"):
        modules[3] = Add(1)
    with pytest.raises(ValueError, match="element #0 has length 1"):
        modules.update([("x",)])
    modules.clear()
    assert len(modules) == 0


def test_parameter_list():
    values = nn.ParameterList([flambeau.ones(2), nn.Parameter(flambeau.zeros(3))])
    assert all(isinstance(each, nn.Parameter) for each in values)
    values.append(flambeau.ones(4))
    assert [each.shape[0] for each in values] == [2, 3, 4] and len(list(values.parameters())) == 3
    assert [each.shape[0] for each in values[1:]] == [3, 4]
    values[0] = nn.Parameter(flambeau.ones(7))
    del values[1]
    assert [each.shape[0] for each in values] == [7, 4] and list(values.state_dict()) == ["0", "1"]
    assert "(0): Parameter containing: [flambeau.float32 of size 7 (cpu)]" in repr(values)
    with pytest.raises(RuntimeError, match="should not be called"):
        values()


def test_parameter_dict():
    values = nn.ParameterDict({"w": flambeau.ones(2)})
    values["b"] = nn.Parameter(flambeau.zeros(3))
    assert list(values) == ["w", "b"] and isinstance(values["w"], nn.Parameter)
    assert [name for name, _ in values.named_parameters()] == ["w", "b"]
    assert values.get("none") is None and "w" in values
    assert values.pop("w").shape == (2,) and len(list(values.parameters())) == 1
    with pytest.raises(KeyError, match="already exists"):
        values["keys"] = flambeau.ones(1)
