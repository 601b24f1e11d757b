"""Small networks learn."""

import numpy as np

import flambeau
from flambeau import nn
from flambeau.nn import functional as F


def descend(model, loss, steps, rate):
    """Plain gradient descent; returns the last loss."""
    for _ in range(steps):
        model.zero_grad()
        value = loss()
        value.backward()
        with flambeau.no_grad():
            for each in model.parameters():
                each.sub_(each.grad * rate)
    return value.item()


def test_a_perceptron_learns_a_spiral():
    flambeau.manual_seed(0)
    turns = np.linspace(0, 2.5, 100)
    arm = np.stack([turns * np.cos(3 * turns), turns * np.sin(3 * turns)], 1)
    x = flambeau.tensor(np.concatenate([arm, -arm]).astype(np.float32))
    y = flambeau.tensor(np.repeat([0, 1], 100))
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    last = descend(model, lambda: F.cross_entropy(model(x), y), 400, 0.5)
    assert last < 0.1 and (model(x).argmax(1) == y).sum().item() > 190


def test_a_convolutional_network_learns_stripes():
    flambeau.manual_seed(1)
    generator = np.random.default_rng(1)
    images = generator.normal(size=(60, 1, 8, 8)) * 0.5
    images[:30] += np.sin(np.arange(8) * 2)  # vertical stripes
    images[30:] += np.sin(np.arange(8) * 2)[:, None]  # horizontal ones
    x, y = flambeau.tensor(images.astype(np.float32)), flambeau.tensor(np.repeat([0, 1], 30))
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2)
    )
    assert descend(model, lambda: F.cross_entropy(model(x), y), 60, 0.2) < 0.1
    model.eval()
    assert (model(x).argmax(1) == y).all()


def test_a_recurrent_network_remembers():
    flambeau.manual_seed(2)
    first = np.random.default_rng(2).integers(0, 2, size=32)
    x = np.zeros((6, 32, 1), np.float32)
    x[0, :, 0] = first * 2 - 1
    model = nn.ModuleList([nn.LSTM(1, 8), nn.Linear(8, 2)])
    inputs, target = flambeau.tensor(x), flambeau.tensor(first)
    assert descend(model, lambda: F.cross_entropy(model[1](model[0](inputs)[0][-1]), target), 200, 0.5) < 0.1
