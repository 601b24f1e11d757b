"""Learning-rate schedules against closed forms, resumed and pickled."""

import math
import pickle

import numpy as np
import pytest

import flambeau
from flambeau import optim
from flambeau.optim import lr_scheduler


def optimizer(*rates):
    groups = [{"params": [flambeau.ones(1, requires_grad=True)], "lr": rate} for rate in rates]
    return optim.SGD(groups, lr=1.0)


class Halving:
    """A callable with state, which can be pickled."""

    def __init__(self):
        self.base = 0.5

    def __call__(self, epoch):
        return self.base**epoch


SCHEDULES = {
    "StepLR": (lambda o: lr_scheduler.StepLR(o, 3, 0.5), lambda e: 0.5 ** (e // 3)),
    "MultiStepLR": (lambda o: lr_scheduler.MultiStepLR(o, [2, 2, 7], 0.1), lambda e: 0.1 ** ((e >= 2) * 2 + (e >= 7))),
    "ExponentialLR": (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "CosineAnnealingLR": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
        lambda e: (1 + math.cos(math.pi * e / 10)) / 2,
    ),
    "LambdaLR": (lambda o: lr_scheduler.LambdaLR(o, Halving()), lambda e: 0.5**e),
}


def rates(schedule, steps):
    found = []
    for _ in range(steps):
        found.append([group["lr"] for group in schedule.optimizer.param_groups])
        schedule.optimizer.step()
        schedule.step()
    return np.array(found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_closed_forms_for_every_group(name):
    make, factor = SCHEDULES[name]
    found = rates(make(optimizer(0.1, 2.0)), 11)
    expected = np.array([[0.1 * factor(e), 2.0 * factor(e)] for e in range(11)])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
def test_resuming_through_state_dicts_and_pickle(name):
    make, _ = SCHEDULES[name]
    whole = rates(make(optimizer(0.1)), 10)
    first = make(optimizer(0.1))
    rates(first, 4)
    second = make(optimizer(0.1))
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    np.testing.assert_allclose(rates(second, 6), whole[4:])
    third = pickle.loads(pickle.dumps(first))
    np.testing.assert_allclose(rates(third, 6), whole[4:])


def test_functions_for_each_group_and_plain_functions_in_state_dicts():
    schedule = lr_scheduler.LambdaLR(optimizer(1.0, 1.0), [lambda e: e + 1.0, lambda e: 2.0])
    assert rates(schedule, 3).tolist() == [[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]]
    state = pickle.loads(pickle.dumps(schedule.state_dict()))
    again = lr_scheduler.LambdaLR(optimizer(1.0, 1.0), [lambda e: e + 1.0, lambda e: 2.0])
    again.load_state_dict(state)
    again.step()
    assert again.get_last_lr() == [5.0, 2.0]


def test_cosine_ends_at_its_least_rate():
    schedule = lr_scheduler.CosineAnnealingLR(optimizer(1.0), 4, eta_min=0.25)
    np.testing.assert_allclose(rates(schedule, 5)[:, 0], [1.0, 0.890165, 0.625, 0.359835, 0.25], rtol=1e-6)


def test_last_epoch_needs_an_optimiser_that_was_scheduled():
    with pytest.raises(ValueError, match="'initial_lr' is not specified in param_groups"):
        lr_scheduler.StepLR(optimizer(1.0), 2, last_epoch=3)
    used = optimizer(1.0)
    lr_scheduler.StepLR(used, 2)
    assert lr_scheduler.StepLR(used, 2, last_epoch=3).get_last_lr() == [0.1**2]


def test_arguments():
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        lr_scheduler.StepLR(3, 2)
    with pytest.raises(ValueError, match="Expected step_size to be a positive number of epochs, got 0"):
        lr_scheduler.StepLR(optimizer(1.0), 0)
    with pytest.raises(ValueError, match="Expected T_max to be a positive number of epochs, got 0"):
        lr_scheduler.CosineAnnealingLR(optimizer(1.0), 0)
    with pytest.raises(ValueError, match=r"Milestones should be a list of increasing integers. Got \[3, 1\]"):
        lr_scheduler.MultiStepLR(optimizer(1.0), [3, 1])
    with pytest.raises(ValueError, match=r"Expected 2 lr_lambdas, but got 1"):
        lr_scheduler.LambdaLR(optimizer(1.0, 1.0), [lambda e: 1.0])
    with pytest.raises(ValueError, match=r"Factor should be < 1\.0"):
        lr_scheduler.ReduceLROnPlateau(optimizer(1.0), factor=1.0)
    with pytest.raises(ValueError, match="mode 'least' must be 'min' or 'max'"):
        lr_scheduler.ReduceLROnPlateau(optimizer(1.0), mode="least")


# ---------------------------------------------------------------- plateaus


def watch(schedule, measures):
    found = []
    for each in measures:
        schedule.step(each)
        found.append(schedule.optimizer.param_groups[0]["lr"])
    return found


def test_plateaus():
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer(1.0), factor=0.5, patience=1)
    assert watch(schedule, [3, 2, 2, 2, 2, 2, 1]) == [1, 1, 1, 0.5, 0.5, 0.25, 0.25]


def test_larger_is_better_and_absolute_thresholds():
    options = {"mode": "max", "factor": 0.5, "patience": 0, "threshold": 0.5, "threshold_mode": "abs"}
    assert watch(lr_scheduler.ReduceLROnPlateau(optimizer(1.0), **options), [1, 1.4, 1.6]) == [1, 0.5, 0.5]


def test_relative_thresholds():
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer(1.0), factor=0.5, patience=0, threshold=0.1)
    assert watch(schedule, [100, 91, 89]) == [1, 0.5, 0.5]


def test_cooldown_and_least_rates():
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer(1.0), factor=0.1, patience=0, cooldown=2, min_lr=0.05)
    assert np.allclose(watch(schedule, [1] * 8), [1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])


def test_tensors_as_measures_and_pickle():
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer(1.0), factor=0.5, patience=0)
    watch(schedule, [flambeau.tensor(1.0), flambeau.tensor(1.0)])
    again = pickle.loads(pickle.dumps(schedule))
    assert watch(again, [1.0]) == watch(schedule, [1.0]) == [0.25]
    fresh = lr_scheduler.ReduceLROnPlateau(optimizer(1.0))
    fresh.load_state_dict(schedule.state_dict())
    assert (fresh.best, fresh.patience) == (1.0, 0)
