"""Complex tensors are right or refused: no wrong moments, parts or gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

NUMBERS = np.array([1 + 2j, 3 - 1j])


@pytest.mark.parametrize(("dtype", "part"), [(np.complex64, torch.float32), (np.complex128, torch.float64)])
def test_real_part(dtype: type, part: torch.dtype) -> None:
    real = torch.from_numpy(NUMBERS.astype(dtype)).real
    assert real.dtype is part and real.tolist() == [1, 3]
    x = torch.ones(2)
    assert x.real is x


@pytest.mark.parametrize("name", ["var", "std"])
def test_no_moments(name: str) -> None:
    with pytest.raises(RuntimeError, match="only support floating point dtypes, got complex128"):
        getattr(torch.from_numpy(NUMBERS), name)()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, z: x * z,
        lambda x, z: z * x,
        lambda x, z: x / z,
        lambda x, z: z / x,
        lambda x, z: x * 2j,
        lambda x, z: torch.addcmul(z, x, z),
        lambda x, z: torch.addcdiv(x, x, z),
        lambda x, z: (x + z).reciprocal(),
        lambda x, z: torch.dot(x + z, z),
        lambda x, z: torch.outer(x + 0 * x, z),
    ],
)
def test_gradients_that_need_a_conjugate_are_refused(function) -> None:
    z = torch.from_numpy(NUMBERS)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="it would need its conjugate"):
        function(x, z)
    with torch.no_grad():
        function(x, z)


def test_linear_gradients() -> None:
    z = torch.from_numpy(NUMBERS)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    y = torch.cat([x + z, (x - z)[:1], 3 * (x + z).sum().view(1)])
    y.backward(torch.ones(4, dtype=torch.complex128))
    np.testing.assert_array_equal(x.grad.numpy(), [5, 4])


def test_no_strides_without_strides() -> None:
    with pytest.raises(RuntimeError, match="expected the layout strided, got sparse_coo"):
        torch.empty_strided((2,), (1,), layout=torch.sparse_coo)
