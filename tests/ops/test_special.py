"""Polygamma left of zero, where it is known by reflection and by recurrence."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy import special

import flambeau as torch

# Not near a zero of the even orders, where every relative error is large.
LEFT = np.array([-1e-20, -0.3, -1.7, -2.25, -7.9, -9.99])


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    return torch.polygamma(n, torch.from_numpy(x)).numpy()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_recurrence(n: int) -> None:
    """psi_n(x) = psi_n(x + m) - (-1)^n n! sum over k < m of (x + k)^(-n-1), with x + m > 0."""
    steps = 11
    powers = sum((LEFT + k) ** (-n - 1.0) for k in range(steps))
    wanted = special.polygamma(n, LEFT + steps) - (-1) ** n * math.factorial(n) * powers
    np.testing.assert_allclose(polygamma(n, LEFT), wanted, rtol=1e-11)


def test_reflection_far_to_the_left() -> None:
    """psi_1(1 - x) + psi_1(x) = (pi / sin(pi x))^2, and psi_1 of a large number is small."""
    x = np.array([-1e5 - 0.5, -1e12 - 0.5])
    began = time.process_time()
    np.testing.assert_allclose(polygamma(1, x), math.pi**2 - special.polygamma(1, 1 - x), rtol=1e-14)
    polygamma(3, np.full(100_000, -9e5 - 0.25))  # far more than a minute if terms were added one by one
    assert time.process_time() - began < 10


def test_poles_and_nan() -> None:
    x = np.array([0.0, -1.0, -3.0, math.nan])
    np.testing.assert_array_equal(polygamma(1, x), [math.inf, math.inf, math.inf, math.nan])
    np.testing.assert_array_equal(polygamma(2, x), [-math.inf, -math.inf, -math.inf, math.nan])
