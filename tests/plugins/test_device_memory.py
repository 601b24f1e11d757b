"""Devices whose memory the host cannot look into: nothing takes a pointer, and nothing becomes a copy in silence."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.backend import contiguous, make, results_of, tensors_in
from flambeau.dispatch.operator import operators


def test_resize_keeps_what_there_is(toy):
    toy()
    for device in ("toy", "cpu"):
        x = torch.arange(6.0).to(device)
        tail, turned = x[2:], x.clone().view(2, 3).t()
        assert x.resize_(2, 4).shape == (2, 4) and x.view(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]
        assert tail.resize_(6)[:4].tolist() == [2, 3, 4, 5]
        assert turned.resize_(7)[:6].tolist() == [0, 1, 2, 3, 4, 5]
        assert torch.empty(0, device=device).resize_(3).shape == (3,)


def test_reading_memory_as_another_dtype(toy):
    toy()
    with pytest.raises(NotImplementedError) as caught:
        torch.ones(2).to("toy").view(torch.int32)
    assert str(caught.value) == (
        "view(dtype): the device 'toy:0' cannot read memory as another dtype.\nCopy: x.cpu().view(dtype).to(x.device)"
    )
    toy.leave()

    class Memory(toy.Memory):
        def reinterpret(self, handle, dtype, wanted):
            return handle[0].view(wanted.numpy), handle[1]

        def to_numpy(self, handle, count, dtype):
            return super().to_numpy(handle, count, dtype).view(dtype.numpy)

    toy(memory=Memory())
    x = torch.tensor([0.0, 1.0, 2.0]).to("toy")
    bits = x[1:].view(torch.int32)
    assert bits.tolist() == [0x3F800000, 0x40000000] and bits[1:].view(torch.float32).tolist() == [2]
    x[2:].copy_(x[:1])
    assert bits.tolist() == [0x3F800000, 0]


def promised(operator, *args):
    """What a kernel will return: shapes and dtypes."""

    def new(key, geometry):
        assert key.device == torch.device("cpu")
        return make(key, geometry, None)

    found = results_of(operator, args, new)
    return (
        found if found is None or found is NotImplemented else [(each.shape, each.dtype) for each in tensors_in(found)]
    )


def test_what_a_kernel_will_return():
    x, index = torch.ones(2, 3, dtype=torch.float64), torch.tensor([0, 1, 1])
    assert promised("add", x, torch.ones(3, dtype=torch.float64)) == [((2, 3), torch.float64)]
    assert promised("lt", x, x) == [((2, 3), torch.bool)]
    assert promised("topk", x, 2, 1, True) == [((2, 2), torch.float64), ((2, 2), torch.int64)]
    assert promised("cast", x, torch.int8) == [((2, 3), torch.int8)]
    assert promised("copy_", x, x) is None
    assert promised("nonzero", x) is NotImplemented is promised("masked_select", x, x > 0)
    assert promised("index_select", x, index, 1) == [((2, 3), torch.float64)]
    assert promised("linear", x, torch.ones(3, dtype=torch.float64), None) == [((2,), torch.float64)]
    strided = x.t()
    assert results_of("neg", (strided,), lambda key, geometry: geometry) is strided.geometry
    assert results_of("neg", (x[:, ::2],), lambda key, geometry: geometry) is contiguous((2, 2))


SHAPES = {
    "mm": [((2, 3), (3, 4))], "bmm": [((5, 2, 3), (5, 3, 4))], "mv": [((2, 3), (3,))], "dot": [((3,), (3,))],
    "matmul": [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((3,), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((5, 2, 3), (3,))],
    "linear": [((2, 3), (4, 3), None), ((5, 2, 3), (4, 3), (4,)), ((3,), (4, 3), None), ((2, 3), (3,), None)],
    "addmm": [((4,), (2, 3), (3, 4), 1, 1)], "baddbmm": [((5, 2, 4), (5, 2, 3), (5, 3, 4), 1, 1)],
}  # fmt: skip


@pytest.mark.parametrize("operator", SHAPES)
def test_products_return_what_they_promise(operator):
    for shapes in SHAPES[operator]:
        args = [torch.ones(each) if isinstance(each, tuple) else each for each in shapes]
        op = operators[operator]
        result = op.resolve(args[0].key)(*args)
        assert promised(operator, *args) == [(result.shape, result.dtype)]


def test_embedding_returns_what_it_promises():
    weight, index = torch.ones(5, 2), torch.tensor([[0, 4, 1]])
    result = torch.nn.functional.embedding(index, weight)
    assert promised("embedding", weight, index, None, False, False) == [(result.shape, result.dtype)]
