"""Falling back to another device: only when asked for, counted, and right in every position."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import Kernel, float32, int64


@pytest.fixture
def device(toy):
    toy()
    return "toy"


def values(x):
    return np.array(x.tolist())


def test_it_is_off_until_asked_for(device):
    x = torch.tensor([1.0, 2.0], device=device)
    with pytest.raises(NotImplementedError):
        x.exp()
    with backends.fallback("cpu"):
        x.exp()
    with pytest.raises(NotImplementedError):
        x.exp()


def test_values_and_counts(device):
    a = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    x = torch.tensor(a, device=device)
    with backends.fallback("cpu") as moved:
        y = x.exp()
        x.exp()
        total = (y + 1).sum()  # the device's own kernels
    assert y.device == torch.device("toy:0") and total.device == y.device
    np.testing.assert_allclose(values(y), np.exp(a), rtol=1e-6)
    assert list(moved.counts) == ["exp"]
    count = moved.counts["exp"]
    assert (count.calls, count.bytes) == (2, 2 * 2 * 12 * 4) and 0 < count.seconds < 60
    assert moved.total.bytes == 192
    lines = str(moved).splitlines()
    assert lines[0].split() == ["to", "cpu", "calls", "bytes", "moved", "ms"] and len(lines) == 3
    assert lines[1].split()[:3] == ["exp", "2", "192"] and lines[2].split()[:3] == ["together", "2", "192"]
    assert repr(moved) == "<Fallback to cpu: 2 calls, 192 bytes moved>"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.t()[1:, ::2], lambda a: a.T[1:, ::2]),
        (lambda x: x[1], lambda a: a[1]),
        (lambda x: x[1, 2], lambda a: a[1, 2]),
        (lambda x: x[:0], lambda a: a[:0]),
        (lambda x: x[0].expand(5, 4), lambda a: np.broadcast_to(a[0], (5, 4))),
    ],
    ids=["strides", "offset", "0-dim", "empty", "expanded"],
)
def test_views_are_seen_as_they_are(device, change, expected):
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = torch.tensor(a, device=device)
    with backends.fallback("cpu"):
        result = change(x).sqrt()
    assert result.shape == expected(a).shape
    np.testing.assert_allclose(values(result).reshape(result.shape), np.sqrt(expected(a)), rtol=1e-6)


def test_in_place_writes_through_views(device):
    a = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    x = torch.tensor(a, device=device)
    column = x[:, 1]
    with backends.fallback("cpu") as moved:
        column.sqrt_()  # a pointwise kernel with out=
        x[:, 2].masked_fill_(torch.tensor([True, False, True], device=device), 5.0)  # a mutating one
        x[0].cumsum(0, out=x[2])
    a[:, 1] = np.sqrt(a[:, 1])
    a[[0, 2], 2] = 5
    a[2] = np.cumsum(a[0])
    np.testing.assert_allclose(values(x), a, rtol=1e-6)
    assert set(moved.counts) == {"sqrt", "where", "cumsum"} and x._version == 3


def test_several_results_lists_and_scalars(device):
    x = torch.tensor([3.0, 1.0, 2.0], device=device)
    with backends.fallback("cpu"):
        top = x.topk(2)
        both = torch.cat([x, x[:1]])
        assert top.values.tolist() == [3, 2] and top.indices.tolist() == [0, 2] and type(top)._fields
        assert top.indices.dtype is torch.int64 and top.values.device == x.device
        assert both.tolist() == [3, 1, 2, 3]
        assert (x > 1.5).tolist() == [True, False, True]
        assert x.to(torch.float64).pow(2).tolist() == [9, 1, 4]


def test_gradients_fall_back_too_also_outside_of_the_block(device):
    a = np.linspace(0.5, 2, 6).astype(np.float32)
    x = torch.tensor(a, device=device, requires_grad=True)
    with backends.fallback("cpu") as moved:
        y = (x.log() * x.tanh()).sum()
    before = dict.fromkeys(moved.counts)
    y.backward()
    t = np.tanh(a.astype(np.float64))
    np.testing.assert_allclose(values(x.grad), t / a + np.log(a) * (1 - t * t), rtol=1e-5)
    assert x.grad.device == x.device and set(before) == {"log", "tanh"} < set(moved.counts)


def test_in_place_under_autograd(device):
    x = torch.tensor([1.0, 4.0], device=device, requires_grad=True)
    with backends.fallback("cpu"):
        y = x * 1
        y[1:].sqrt_()
        y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.25]


def test_a_composite_on_the_device_comes_first(device):
    x = torch.tensor([[1.0, 2.0]], device=device)
    with backends.fallback("cpu") as moved, backends.trace() as calls:
        torch.nn.functional.linear(x, x)
    assert "linear" not in moved.counts and "mm" in moved.counts
    assert calls.calls[0][:3] == ("linear", None, "composite")


def test_scopes_end_and_belong_to_a_thread(device):
    x = torch.tensor([1.0], device=device)
    failed = []

    def other():
        try:
            x.exp()
        except NotImplementedError as error:
            failed.append(error)

    with backends.fallback("cpu"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with backends.prefer("cpu"):
            assert x.exp().device == x.device  # an inner block keeps the fallback
    assert len(failed) == 1


def test_counting_in_many_threads(device):
    x = torch.tensor([1.0], device=device)
    moved = backends.fallback("cpu")

    def work():
        with moved:
            for _ in range(50):
                x.exp()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (moved.counts["exp"].calls, moved.counts["exp"].bytes) == (400, 3200)


def test_neither_device_has_it(device):
    x = torch.tensor([1 + 2j], device=device)
    with backends.fallback("cpu"), pytest.raises(NotImplementedError) as caught:
        x.exp()
    assert str(caught.value).splitlines()[0] == '"exp" not implemented for complex64 on toy:0 (strided).'
    assert str(caught.value).splitlines()[-1] == (
        "fallback('cpu') does not help: cpu has no kernel for complex64 either."
    )
    with backends.fallback("cpu"), pytest.raises(NotImplementedError, match="the tensor is on that device"):
        x.cpu().exp()
    with pytest.raises(RuntimeError, match="No installed plug-in provides the device 'quantum'"):
        backends.fallback("quantum")


def test_a_write_needs_the_devices_own_copying(toy):
    kernels = toy.kernels()
    del kernels["copy_"]
    toy(kernels=kernels)
    x = torch.tensor([4.0], device="toy")
    with backends.fallback("cpu"):
        assert x.sqrt().tolist() == [2.0]
        with pytest.raises(NotImplementedError, match="the result cannot be written, as toy:0 has no kernel for copy_"):
            x.sqrt_()
        assert x.tolist() == [4.0] and x._version == 0


def test_a_host_device_is_written_in_place(toy):
    class HostMemory(toy.Memory):
        host = True

        def to_numpy(self, handle, count, dtype):
            return handle[0][handle[1] : handle[1] + count]

    toy(memory=HostMemory(), kernels={"clone": Kernel(lambda x: toy.fresh(x.key, x.memory[0]), (float32, int64))})
    x = torch.tensor([4.0, 9.0, 16.0, 25.0], device="toy")
    with backends.fallback("cpu"):
        x[::2].sqrt_()
    assert x.tolist() == [2, 9, 4, 25]


def trained(where, make, x, target):
    """The losses and parameters of a few steps of training; the weights come from the host."""
    torch.manual_seed(0)
    model = make().to(where)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to(where)), target.to(where))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert {each.device.type for each in [*model.parameters(), *model.buffers()]} == {where}
    return losses, [values(each) for each in model.parameters()]


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = torch.nn.LSTM(3, 4), torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


NETWORKS = {
    "convolution": (
        lambda: torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3, bias=False), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.LayerNorm(27), torch.nn.Linear(27, 3),
        ),
        (4, 1, 8, 8),
    ),
    "recurrence": (Recurrent, (5, 4, 3)),
    "perceptron": (lambda: torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)), (4, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_train_as_on_the_other_device(device, name):
    make, shape = NETWORKS[name]
    x = torch.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    target = torch.tensor([0, 1, 2, 1])
    with backends.fallback("cpu") as moved:
        losses, parameters = trained(device, make, x, target)
    expected, others = trained("cpu", make, x, target)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for ours, theirs in zip(parameters, others, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert moved.total.calls > 30 and losses[-1] < losses[0]
