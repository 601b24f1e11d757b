"""Gradients of writes into views, where the gradient itself is a view that begins inside its storage."""

import numpy as np

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck


def test_second_gradient_through_views_of_views():
    generator = np.random.default_rng(0)
    g = flambeau.tensor(generator.normal(size=(1, 2)), requires_grad=True)
    h = flambeau.tensor(generator.normal(size=(3, 1, 2)), requires_grad=True)

    def function(g, h):
        return (h[2][:1] * g).tanh(), (h[1][:1] * g).sum()

    assert gradcheck(function, (g, h)) and gradgradcheck(function, (g, h))
