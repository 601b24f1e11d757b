"""How sparse tensors are made, what they say about themselves, and what is refused."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flambeau as torch

PLACES, VALUES = [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0]
DENSE = [[0, 0, 3], [4, 0, 5]]


def message(call, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_constructor():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    assert x.is_sparse and x.layout is torch.sparse_coo and x.dtype is torch.float32
    assert (x.shape, x.dim(), x.numel(), x._nnz(), x.sparse_dim(), x.dense_dim()) == ((2, 3), 2, 6, 3, 2, 0)
    assert (x._dimI(), x._dimV(), x.is_coalesced()) == (2, 0, False)
    assert x.to_dense().tolist() == DENSE and x.to_dense().layout is torch.strided
    assert x._indices().tolist() == PLACES and x._values().tolist() == VALUES
    assert x.coalesce().is_coalesced() and x.coalesce().indices().tolist() == PLACES


def test_size_is_inferred():
    x = torch.sparse_coo_tensor(PLACES, torch.ones(3, 4))
    assert x.shape == (2, 3, 4) and (x.sparse_dim(), x.dense_dim()) == (2, 1)
    assert torch.sparse_coo_tensor(torch.zeros(2, 0).long(), torch.zeros(0, 5)).shape == (0, 0, 5)


def test_dtype_and_one_value_for_all():
    assert torch.sparse_coo_tensor(PLACES, [1, 2, 3], dtype=torch.float64).dtype is torch.float64
    assert torch.sparse_coo_tensor(PLACES, 2.0, (2, 3)).to_dense().tolist() == [[0, 0, 2], [2, 0, 2]]
    assert torch.sparse_coo_tensor(torch.tensor(PLACES).int(), VALUES).to_dense().tolist() == DENSE


def test_values_are_shared():
    values = torch.tensor(VALUES)
    x = torch.sparse_coo_tensor(PLACES, values)
    values[0] = 7
    assert x.to_dense()[0, 2].item() == 7


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_nothing_held(shape):
    for x in (
        torch.sparse_coo_tensor(size=shape), torch.zeros(shape, layout=torch.sparse_coo),
        torch.zeros_like(torch.sparse_coo_tensor(size=shape)), torch.sparse_coo_tensor(size=shape).new_zeros(shape),
    ):  # fmt: skip
        assert x._nnz() == 0 and x.shape == shape and x.is_coalesced()
        assert x.to_dense().numpy().tolist() == np.zeros(shape).tolist()
        assert x.coalesce()._nnz() == 0 and (x + x)._nnz() == 0 and (x * 2)._nnz() == 0
        assert x.sum().item() == 0 and x.norm().item() == 0


def test_no_dimensions_may_hold_several():
    x = torch.sparse_coo_tensor(torch.zeros(0, 3).long(), VALUES, ())
    assert x.to_dense().item() == 12 and x.coalesce()._nnz() == 1 and x.item() == 12


def test_typed_names_of_old():
    x = torch.sparse.FloatTensor(torch.LongTensor(PLACES), torch.FloatTensor(VALUES), torch.Size([2, 3]))
    assert x.to_dense().tolist() == DENSE and x.type() == "torch.sparse.FloatTensor"
    assert isinstance(x, torch.sparse.FloatTensor) and not isinstance(x, torch.FloatTensor)
    assert not isinstance(torch.ones(2), torch.sparse.FloatTensor)
    assert torch.sparse.DoubleTensor(torch.LongTensor(PLACES), torch.DoubleTensor(VALUES)).dtype is torch.float64
    assert torch.sparse.LongTensor(2, 3).shape == (2, 3) and torch.sparse.FloatTensor().shape == (0,)
    assert torch.ones(2).type() == "torch.FloatTensor"
    assert x.type("torch.sparse.DoubleTensor").dtype is x.type(torch.sparse.DoubleTensor).dtype is torch.float64


@pytest.mark.parametrize("sparse_dim", [None, 1, 2, 3])
def test_from_dense_and_back(sparse_dim):
    rng = np.random.default_rng(0)
    array = np.where(rng.random((3, 4, 2)) < 0.3, rng.normal(size=(3, 4, 2)), 0)
    x = torch.tensor(array).to_sparse(sparse_dim)
    count = sparse_dim or 3
    held = (array != 0).reshape(*array.shape[:count], -1).any(-1)
    assert x.is_coalesced() and x.sparse_dim() == count and x._nnz() == held.sum()
    assert np.array_equal(x.indices().numpy(), np.argwhere(held).T)
    assert np.array_equal(x.to_dense().numpy(), array)
    assert x.to_sparse() is x and torch.tensor(array).to_dense().shape == array.shape


def test_conversions():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    assert x.double().dtype is torch.float64 and x.double().to_dense().tolist() == DENSE
    assert x.to(torch.int64)._values().tolist() == [3, 4, 5] and x.to("cpu") is x
    y = x.clone()
    y._values().zero_()
    assert x._values().tolist() == VALUES and y.to_dense().sum().item() == 0
    assert x.detach()._values().data_ptr() == x._values().data_ptr()


def test_writing():
    x, y = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)), torch.sparse_coo_tensor([[0], [0]], [1.0], (2, 3))
    alias = x.detach()
    assert x.zero_() is x and x._nnz() == 0 and x.shape == (2, 3) and alias._nnz() == 0
    x.copy_(y)
    assert alias.to_dense().tolist() == y.to_dense().tolist()
    dense = torch.ones(2, 3)
    assert dense.copy_(y).tolist() == [[1, 0, 0], [0, 0, 0]]
    assert "a sparse_coo tensor can only be filled with zeros, got 2.0" in message(lambda: x.fill_(2), ValueError)
    assert "from a dense tensor (shape [2, 3]) into a sparse_coo one" in message(lambda: x.copy_(dense))


def test_another_size():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    alias = x.detach()
    assert x.sparse_resize_((4, 5), 2, 0) is x and x.shape == (4, 5) and not x.is_coalesced()
    assert x.to_dense().tolist() == np.pad(DENSE, ((0, 2), (0, 2))).tolist()
    assert alias.shape == (2, 3) and alias.to_dense().tolist() == DENSE
    y = torch.sparse_coo_tensor([[1]], [[3.0, 4.0]], (2, 2)).coalesce()
    assert y.sparse_resize_((3, 3), 1, 1).to_dense().tolist() == [[0, 0, 0], [3, 4, 0], [0, 0, 0]] and y.is_coalesced()
    for z in (
        torch.sparse_coo_tensor(size=(2, 3)).sparse_resize_((4, 5, 2), 1, 2),
        x.sparse_resize_and_clear_((4, 5, 2), 1, 2),
    ):
        assert (z.shape, z.sparse_dim(), z.dense_dim(), z._nnz()) == ((4, 5, 2), 1, 2, 0)
        assert z.to_dense().sum().item() == 0 and z._values().shape == (0, 5, 2)


def test_another_size_is_refused():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    for size, counts in (((4, 2), (2, 0)), ((4, 5, 1), (2, 1)), ((4, 5), (1, 1))):
        assert message(lambda size=size, counts=counts: x.sparse_resize_(size, *counts)) == (
            "sparse_resize_: a tensor that holds 3 values keeps its 2 sparse and 0 dense dimensions, none smaller than "
            f"[2, 3]; got {counts[0]} and {counts[1]}, {list(size)}.\nUse sparse_resize_and_clear_, or make a new tensor."
        )
    for name in ("sparse_resize_", "sparse_resize_and_clear_"):
        resize = getattr(x, name)
        for size in ((4, 5, 1), (4, -5)):
            assert message(lambda resize=resize, size=size: resize(size, 2, 0)) == (
                f"{name}: number of dimensions must be sparse_dim (2) + dense_dim (0), none of a negative size, but got "
                f"{len(size)}: size {list(size)}."
            )
        assert message(lambda resize=resize: resize((2**40, 2**40), 2, 0)) == (
            f"{name}: places are numbered below 2**63, got sparse sizes [1099511627776, 1099511627776]."
        )
        leaf = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3), requires_grad=True)
        assert message(lambda leaf=leaf, name=name: getattr(leaf, name)((4, 5), 2, 0)) == (
            f"{name}: cannot resize a tensor that requires grad (shape [2, 3]).\nUse x.detach()."
        )
        assert "layout but got strided" in message(lambda name=name: getattr(torch.ones(2), name)((4,), 1, 0))
    assert x.shape == (2, 3) and x.to_dense().tolist() == DENSE
    w = torch.ones(3, 2, requires_grad=True)
    loss = (x @ w).sum()
    x.sparse_resize_((4, 5), 2, 0)
    assert "modified by an inplace operation" in message(loss.backward)


def test_printing():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3), dtype=torch.float64, requires_grad=True)
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1, 1],\n"
        "                       [2, 0, 2]]),\n"
        "       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, dtype=flambeau.float64, layout=flambeau.sparse_coo,\n"
        "       requires_grad=True)"
    )
    assert repr(torch.sparse_coo_tensor(size=(2, 3))) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=flambeau.sparse_coo)"
    )


WRONG = {
    "places outside": (
        (PLACES, VALUES, (2, 2)), "size is inconsistent with indices: for dim 1, size is 2 but found index 2."
    ),
    "negative places": (([[-1], [0]], [1.0], (2, 3)), "found negative index -1 for dim 0."),
    "other counts": (
        (PLACES, [1.0, 2.0], (2, 3)),
        "indices and values must have same nnz, but got nnz from indices: 3, nnz from values: 2.",
    ),
    "a vector of places": (([0, 1], [1.0, 2.0]), "indices must be sparse_dim x nnz, but got shape [2]."),
    "places with a point": (
        ([[0.5]], [1.0]), "indices must be an int64 tensor, got float32.\nConvert them with .long()."
    ),
    "dimensions": (
        (PLACES, VALUES, (2, 3, 4)),
        "number of dimensions must be sparse_dim (2) + dense_dim (0), but got 3: size [2, 3, 4].",
    ),
    "values of another size": (
        (PLACES, np.ones((3, 2)), (2, 3, 4)), "values has incorrect size, expected [3, 4], got [3, 2]."
    ),
    "negative sizes": (([[], []], [], (-1, 3)), "sizes are not negative, got [-1, 3]."),
    "too many places": (
        ([[0]] * 3, np.ones((1, 0)), (2**40, 2**40, 1, 0)),
        "places are numbered below 2**63, got sparse sizes [1099511627776, 1099511627776, 1].",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    args, expected = WRONG[name]
    assert message(lambda: torch.sparse_coo_tensor(*args)) == f"sparse_coo_tensor: {expected}"


def test_uncoalesced_has_no_plain_indices():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    for name in ("indices", "values"):
        assert message(getattr(x, name)) == (
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first.\nx._{name}() gives them as they are."
        )
    assert message(torch.ones(2)._nnz) == (
        "_indices expected sparse coordinate tensor layout but got strided (shape [2]).\nConvert it with x.to_sparse()."
    )


def test_an_operator_without_sparse_kernel():
    x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
    assert message(x.exp, NotImplementedError) == (
        '"exp" not implemented for float32 on cpu (sparse_coo).\n'
        "sparse 0.1.0 has no kernel for it.\n"
        "cpu 0.1.0 serves the layout strided.\n"
        "It is served there for dense tensors: convert with x.to_dense()."
    )
    for name, call in {
        "view": lambda: x.view(6), "expand": lambda: x.expand(4, 2, 3), "unsqueeze": lambda: x.unsqueeze(0),
        "select": lambda: x.select(0, 0),
    }.items():  # fmt: skip
        assert message(call, NotImplementedError) == (
            f'"{name}" not implemented for float32 on cpu (sparse_coo).\nA view needs strides: convert with x.to_dense().'
        )
    for call in (x.numpy, x.tolist, x.data_ptr, lambda: np.asarray(x)):
        assert message(call, NotImplementedError).startswith("Reading elements in place needs strides")


def test_what_needs_strides_is_refused():
    dense = torch.ones(2, 3)
    for name, call in {
        "resize_": lambda x: x.resize_(1, 1), "set_": lambda x: x.set_(dense), "stride": lambda x: x.stride(),
        "set": lambda x: dense.set_(x), "resize_as": lambda x: x.resize_as_(torch.ones(9)),
        "iter": lambda x: list(x), "diagonal": lambda x: x.diagonal(),
    }.items():  # fmt: skip
        x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
        assert "(sparse_coo)" in message(functools.partial(call, x), NotImplementedError), name
        assert x.to_dense().tolist() == DENSE and dense.sum().item() == 6
    assert message(lambda: x.resize_(1, 1), NotImplementedError) == (
        '"resize_" not implemented for float32 on cpu (sparse_coo): it needs strides.\nConvert with x.to_dense() first.'
    )


def test_indices_that_were_written_to():
    for call in (
        lambda x: x.to_dense(),
        lambda x: x.coalesce(),
        lambda x: x @ torch.ones(3, 2),
        lambda x: x + torch.ones(2, 3),
    ):
        x = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3))
        x._indices()[1, 2] = 7
        assert message(functools.partial(call, x), IndexError) == (
            "A sparse tensor's indices are inside of its sizes [2, 3], got [1, 7] in column 2.\n"
            "Make a new tensor instead of writing to x._indices()."
        )
    y = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)).coalesce()
    y._indices()[0, 0] = -1
    assert "got [-1, 2] in column 0" in message(lambda: y @ torch.ones(3, 2), IndexError)


def test_comparison():
    x, y = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)), torch.tensor(DENSE).float().to_sparse()
    assert (x == y).all().item() and not (x != y).any().item() and torch.equal(x, y)
    assert (x == 4).tolist() == [[False, False, False], [True, False, False]]
    assert (x == torch.zeros(2, 3)).tolist() == [[True, True, False], [False, True, False]]


def test_dense_kernels_never_see_sparse_operands():
    x, dense = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)), torch.ones(2, 3)
    for call in (
        lambda: torch.maximum(dense, x), lambda: torch.where(dense > 0, dense, x), lambda: torch.cat([dense, x]),
        lambda: dense.index_add_(0, torch.tensor([0, 1]), x), lambda: torch.nn.functional.linear(dense, x),
        lambda: torch.bmm(dense.unsqueeze(0), x), lambda: dense.masked_fill(dense > 1, x), lambda: torch.lerp(dense, dense, x),
    ):  # fmt: skip
        with pytest.raises((NotImplementedError, RuntimeError)):
            call()


def test_layouts_that_do_not_meet():
    x, dense = torch.sparse_coo_tensor(PLACES, VALUES, (2, 3)), torch.ones(2, 3)
    assert message(lambda: torch.nn.functional.linear(dense, x)) == (
        "linear: expected tensors of one layout, but got strided and sparse_coo.\n"
        "Convert those that are sparse with .to_dense()."
    )
    assert torch.nn.functional.linear(dense, x.to_dense()).tolist() == [[3, 9], [3, 9]]


ABSENT = """
        from importlib import metadata
        read = metadata.entry_points
        metadata.entry_points = lambda **of: [each for each in read(**of) if "sparse" not in each.value]
"""
BROKEN = """
        import sys
        sys.modules["flambeau_sparse.plugin"] = None
"""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (ABSENT, ""),
        (
            BROKEN,
            "The plug-in flambeau-sparse is broken: "
            "ModuleNotFoundError: import of flambeau_sparse.plugin halted; None in sys.modules\n",
        ),
    ],
    ids=["absent", "broken"],
)
def test_without_the_plug_in(how, reason):
    code = (
        how
        + """
        import flambeau as torch
        torch.ones(2)
        try:
            torch.sparse_coo_tensor([[0]], [1.0])
        except RuntimeError as error:
            print(error)
    """
    )
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    ).stdout
    assert said == (
        f"No installed plug-in provides the layout sparse_coo on cpu.\n{reason}"
        "Install the one that does: pip install flambeau-sparse\n"
    )
