"""einsum and tensordot against NumPy's; gradients; errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)

EQUATIONS = [
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("iji->j", (3, 2, 3)),
    ("bii->bi", (2, 3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i->", (4,)),
    ("ij->", (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("b...i,i->b...", (2, 3, 4), (4,)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("ab,bc,cd", (2, 3), (3, 4), (4, 5)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)),
    ("...,...->...", (2, 3), (3,)),
    ("ij,k->i", (2, 3), (4,)),
    ("xyz,zyx->y", (2, 3, 4), (4, 3, 2)),
    (" i j , j k -> k i ", (2, 3), (3, 4)),
    ("Ab,bA->A", (2, 3), (3, 2)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    (",ij->ij", (), (2, 3)),
]


@pytest.mark.parametrize("equation, shapes", [(each[0], each[1:]) for each in EQUATIONS])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_values(equation, shapes, dtype):
    arrays = [(rng.standard_normal(shape) * 9).astype(dtype) for shape in shapes]
    expected = np.einsum(equation, *arrays)
    tensors = [flambeau.tensor(each) for each in arrays]
    for result in (flambeau.einsum(equation, *tensors), flambeau.einsum(equation, tensors)):
        assert tuple(result.shape) == expected.shape
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)


def test_sizes_of_one_broadcast():
    a, b = rng.standard_normal((2, 1)), rng.standard_normal((3, 4))
    expected = np.einsum("ij,jk->ik", np.broadcast_to(a, (2, 3)), b)
    np.testing.assert_allclose(flambeau.einsum("ij,jk->ik", flambeau.tensor(a), flambeau.tensor(b)).numpy(), expected)
    batch = flambeau.einsum("bi,bi->b", flambeau.tensor(a), flambeau.ones(1, 3, dtype=flambeau.float64))
    np.testing.assert_allclose(batch.numpy(), 3 * a[:, 0])


def test_lists_of_numbers():
    a, b = (flambeau.tensor(rng.standard_normal(shape)) for shape in ((2, 3), (5, 3, 4)))
    np.testing.assert_array_equal(
        flambeau.einsum(a, [0, 1], b, [..., 1, 2], [..., 0, 2]).numpy(),
        flambeau.einsum("ab,...bc->...ac", a, b).numpy(),
    )
    np.testing.assert_array_equal(flambeau.einsum(a, [1, 0]).numpy(), a.t().numpy())


@pytest.mark.parametrize("equation, shapes", [(each[0], each[1:]) for each in EQUATIONS[2:8] + EQUATIONS[18:21]])
def test_gradients(equation, shapes):
    inputs = [flambeau.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]
    assert gradcheck(lambda *args: flambeau.einsum(equation, *args), inputs)
    assert gradgradcheck(lambda *args: flambeau.einsum(equation, *args), inputs)


@pytest.mark.parametrize(
    "equation, message",
    [
        ("ij,jk", "2 operands, but 1"),
        ("i.j->i", "invalid subscript 'i.j'"),
        ("ij->ik", "output subscript k does not appear"),
        ("ij->ii", "i appears more than once"),
        ("i1->i", "invalid subscript 'i1'"),
        ("...i...->i", "at most one ellipsis"),
        ("i", "number of subscripts in 'i' \\(1\\) does not match the number of dimensions \\(2\\)"),
        ("ii", "2 != 3"),
    ],
)
def test_wrong_equations(equation, message):
    with pytest.raises(RuntimeError, match=message):
        flambeau.einsum(equation, flambeau.ones(2, 3))


def test_wrong_operands():
    with pytest.raises(RuntimeError, match="subscript j has sizes 3 and 2"):
        flambeau.einsum("ij,jk", flambeau.ones(2, 3), flambeau.ones(2, 3))
    with pytest.raises(RuntimeError, match="same dtype"):
        flambeau.einsum("i,i", flambeau.ones(2), flambeau.ones(2, dtype=flambeau.float64))
    with pytest.raises(TypeError, match="expected tensors, got int"):
        flambeau.einsum("i", 3)
    with pytest.raises(TypeError, match="equation or a Tensor"):
        flambeau.einsum(3)
    with pytest.raises(ValueError, match="at least one operand"):
        flambeau.einsum("i")


@pytest.mark.parametrize("dims", [0, 1, 2, ([2, 0], [1, 0]), ([-1], [-2])])
def test_tensordot(dims):
    shapes = (
        ((3, 4, 5), (4, 5, 2)) if dims in (0, 2) else ((3, 4, 5), (5, 4, 2)) if dims == 1 else ((3, 4, 5), (3, 5, 2))
    )
    a, b = (rng.standard_normal(shape) for shape in shapes)
    result = flambeau.tensordot(flambeau.tensor(a), flambeau.tensor(b), dims)
    np.testing.assert_allclose(result.numpy(), np.tensordot(a, b, dims), atol=1e-12)


def test_tensordot_errors():
    a, b = flambeau.ones(2, 3), flambeau.ones(2, 3)
    with pytest.raises(RuntimeError, match="size 3 in dim 1 and second has size 2"):
        flambeau.tensordot(a, b, 1)
    with pytest.raises(RuntimeError, match="dims=3"):
        flambeau.tensordot(a, b, 3)
    with pytest.raises(RuntimeError, match="same length"):
        flambeau.tensordot(a, b, ([0, 1], [0]))
