"""Soft samples of categories."""

import numpy as np
import pytest

import flambeau
from flambeau.nn import functional as F


def test_gumbel_softmax_samples_by_probability():
    flambeau.manual_seed(5)
    logits = flambeau.tensor([0.0, 1.0, 2.0], dtype=flambeau.float64).expand(20000, 3)
    hard = F.gumbel_softmax(logits, hard=True).numpy()
    assert set(np.unique(hard)) == {0, 1} and (hard.sum(1) == 1).all()
    wanted = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    np.testing.assert_allclose(hard.mean(0), wanted, atol=0.02)
    cold = F.gumbel_softmax(logits, tau=0.01).numpy()
    assert (cold.max(1) > 0.99).mean() > 0.95
    np.testing.assert_allclose(F.gumbel_softmax(logits, dim=0).sum(0).numpy(), 1)


def test_gumbel_softmax_passes_the_soft_gradient():
    x = flambeau.randn(4, 3).requires_grad_()
    flambeau.manual_seed(1)
    (F.gumbel_softmax(x, hard=True) * flambeau.arange(3.0)).sum().backward()
    hard, x.grad = x.grad, None
    flambeau.manual_seed(1)
    (F.gumbel_softmax(x) * flambeau.arange(3.0)).sum().backward()
    np.testing.assert_allclose(hard.numpy(), x.grad.numpy(), rtol=1e-6)
    with pytest.warns(UserWarning, match="eps"):
        F.gumbel_softmax(x, eps=0.1)
