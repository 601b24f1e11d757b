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


def test_an_expanded_view_of_what_was_written_since():
    for size, weights in (((1,), [1.0, 2.0, 4.0]), ((2,), [[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])):
        leaf = flambeau.ones(*size, requires_grad=True)
        base = leaf * 1
        spread = base.expand(3, *size[1:] if size == (1,) else size)
        base.mul_(5)
        (spread * flambeau.tensor(weights)).sum().backward()
        np.testing.assert_array_equal(leaf.grad.numpy(), np.reshape(5 * np.sum(weights, axis=0), size))
