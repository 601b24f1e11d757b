"""What a device says it has works; what it has not raises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau import accelerator, backends
from flambeau.backend import CAPABILITIES, Backend, Kernel, float32, float64


class Queue:
    """The streams and events of a device whose work is done when the host asks, in an order that a test can read."""

    def __init__(self):
        self.log, self.numbers, self.current, self.clock = [], itertools.count(1), 0, itertools.count()
        self.times = {}

    def new_stream(self, device, priority):
        self.log.append(("new_stream", str(device), priority))
        return next(self.numbers)

    def current_stream(self, device):
        return self.current

    def set_stream(self, device, stream):
        self.log.append(("set_stream", stream))
        self.current = stream

    def query_stream(self, device, stream):
        return stream == 0

    def synchronize_stream(self, device, stream):
        self.log.append(("synchronize_stream", stream))

    def synchronize(self, device):
        self.log.append(("synchronize", str(device)))

    def new_event(self, device, timing):
        return f"event{next(self.numbers)}{'+' if timing else ''}"

    def record_event(self, device, event, stream):
        self.log.append(("record", event, stream))
        self.times[event] = next(self.clock)

    def wait_event(self, device, event, stream):
        self.log.append(("wait", event, stream))

    def query_event(self, device, event):
        return event in self.times

    def synchronize_event(self, device, event):
        self.log.append(("synchronize_event", event))

    def elapsed_time(self, device, start, end):
        return self.times[end] - self.times[start]

    def pin_memory(self, tensor):
        twin = tensor.clone()
        twin.__dict__["pinned"] = True
        return twin

    def upload(self, tensor, device):
        self.log.append(("upload", tuple(tensor.shape), str(device)))
        return torch.Tensor.clone(tensor.detach()).to(device)

    def is_pinned(self, tensor):
        return getattr(tensor, "pinned", False)

    def start_profiling(self, device):
        self.log.append(("start_profiling", str(device)))

    def stop_profiling(self, device):
        return [("add", 1.0, 2.0)]

    def hooks(self, *capabilities):
        return {name: getattr(self, name) for each in capabilities for name in CAPABILITIES[each]}


ALL = ("streams", "events", "pinned_memory", "profiling")


@pytest.fixture
def queue(toy):
    made = Queue()
    toy(capabilities=frozenset(ALL), hooks=made.hooks(*ALL))
    return made


def test_streams(queue):
    stream = torch.Stream("toy", priority=-1)
    assert queue.log == [("new_stream", "toy:0", -1)] and stream.device == torch.device("toy:0")
    assert torch.Stream().device is stream.device  # the accelerator, as it is the only device off the host
    assert accelerator.current_stream("toy").handle == 0 and accelerator.current_stream().query()
    with stream as entered:
        assert entered is stream and accelerator.current_stream() == stream and not stream.query()
        with stream:
            assert accelerator.current_stream() == stream
        assert accelerator.current_stream() == stream
    assert accelerator.current_stream() != stream
    accelerator.set_stream(stream)
    assert accelerator.current_stream() == stream and len({stream, accelerator.current_stream()}) == 1
    stream.synchronize()
    accelerator.synchronize()
    accelerator.synchronize("toy:0")
    assert queue.log[-3:] == [("synchronize_stream", 1), ("synchronize", "toy:0"), ("synchronize", "toy:0")]


def test_events(queue):
    first, second = torch.Stream("toy"), torch.Stream("toy")
    start, end = torch.Event("toy", enable_timing=True), torch.Event(enable_timing=True)
    assert start.query()
    start.wait()  # never recorded: nothing to wait for
    first.record_event(start)
    end.record(second)
    assert start.query() and start.elapsed_time(end) == 1.0
    second.wait_event(start)
    second.wait_stream(first)
    end.wait()
    end.synchronize()
    names = [each for each in queue.log if each[0] != "new_stream"]
    assert names == [
        ("record", "event3+", 1), ("record", "event4+", 2), ("wait", "event3+", 2), ("record", "event5", 1),
        ("wait", "event5", 2), ("wait", "event4+", 0), ("synchronize_event", "event4+"),
    ]  # fmt: skip


def test_events_between_devices(queue, toy):
    other = Queue()
    toy(name="second", capabilities=frozenset(ALL), hooks=other.hooks(*ALL))
    stream, event = torch.Stream("second"), torch.Event("toy", enable_timing=True)
    with pytest.raises(RuntimeError, match="Event device toy:0 does not match recording stream's device second:0"):
        stream.record_event(event)
    event.record()
    stream.wait_event(event)  # the host waits in its place
    assert queue.log[-1] == ("synchronize_event", "event1+") and all(name != "wait" for name, *_ in other.log)
    with pytest.raises(RuntimeError, match="expected events of one device, got toy:0 and second:0"):
        event.elapsed_time(torch.Event("second", enable_timing=True))


def test_devices_by_index(queue):
    assert torch.Stream(0).device == torch.device("toy:0") == torch.Event(0).device
    accelerator.synchronize(0)
    assert queue.log[-1] == ("synchronize", "toy:0")


def test_events_say_what_they_cannot_do(queue):
    plain, timed = torch.Event("toy"), torch.Event("toy", enable_timing=True)
    with pytest.raises(ValueError, match="must be created with argument 'enable_timing=True'"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="Both events must be recorded"):
        timed.elapsed_time(timed)
    with pytest.raises(ValueError, match="events belong to one process"):
        torch.Event("toy", interprocess=True)
    with pytest.raises(TypeError, match=r"expected a flambeau\.Stream, got int 3"):
        plain.wait(3)


def test_pinned_memory(queue):
    x = torch.arange(3.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned.pin_memory() is pinned and pinned.tolist() == [0, 1, 2]
    assert torch.ones(2, pin_memory=True).is_pinned() and torch.tensor([1], pin_memory=True).is_pinned()
    assert torch.arange(3, pin_memory=True).is_pinned() and torch.rand(3, pin_memory=True).is_pinned()
    assert torch.empty(3, pin_memory=True, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match=r"cannot pin toy:0 memory: only tensors on the host can be pinned"):
        x.to("toy").pin_memory()


def test_a_copy_that_need_not_be_waited_for(queue):
    x = torch.arange(3.0)
    for pinned, non_blocking, queued in ((True, True, True), (True, False, False), (False, True, False)):
        queue.log.clear()
        source = x.pin_memory() if pinned else x
        for moved in (
            source.to("toy", non_blocking=non_blocking),
            source.to("toy", torch.float32, non_blocking),
            torch.zeros(3, device="toy").copy_(source, non_blocking),
        ):
            assert moved.tolist() == [0, 1, 2] and moved.device.type == "toy"
        assert queue.log == [("upload", (3,), "toy:0")] * 3 * queued
    a = x.clone().requires_grad_().pin_memory()
    assert x.to("toy", non_blocking=True).to("cpu", non_blocking=True).tolist() == [0, 1, 2] and a.is_pinned()


def test_profiling(queue):
    with accelerator.profile() as kernels:
        assert queue.log == [("start_profiling", "toy:0")] and kernels == []
    assert kernels == [("add", 1.0, 2.0)]


def test_rng(toy):
    def draw(target, low, high, seed, offset):
        target.memory[0][:] = np.random.default_rng([seed % 2**63, offset]).uniform(low, high, target.geometry.numel)

    toy(kernels={"uniform_": Kernel(draw, (float32, float64))}, capabilities=frozenset({"rng"}))
    torch.manual_seed(5)
    first, second = torch.rand(4, device="toy").tolist(), torch.rand(4, device="toy").tolist()
    torch.manual_seed(5)
    assert torch.rand(4, device="toy").tolist() == first != second
    generator = torch.Generator("toy").manual_seed(5)
    assert torch.rand(4, device="toy", generator=generator).tolist() == first


NO_STREAMS = (
    "streams.\nIts kernels have finished when a call returns: leave streams and synchronize() out on this device."
)
NO_EVENTS = "events.\nIts kernels have finished when a call returns: measure with time.perf_counter() on this device."
NO_PINS = "pinned memory.\nLeave pin_memory out: ordinary host memory works everywhere."
NO_RNG = "random number generator.\nDraw on another device and move the result there with .to('{}')."
ABSENT = [
    (lambda: torch.Stream("toy"), "toy", NO_STREAMS),
    (lambda: accelerator.synchronize("toy"), "toy", NO_STREAMS),
    (lambda: accelerator.current_stream("toy"), "toy", NO_STREAMS),
    (lambda: torch.Event("toy:0"), "toy:0", NO_EVENTS),
    (lambda: torch.ones(2).pin_memory("toy"), "toy", NO_PINS),
    (lambda: torch.ones(2).is_pinned("toy"), "toy", NO_PINS),
    (lambda: torch.Generator("toy"), "toy", NO_RNG),
    (lambda: torch.rand(2, device="toy"), "toy:0", NO_RNG),
    (
        lambda: accelerator.profile("toy").__enter__(),
        "toy",
        "profiling of its own.\nMeasure with time.perf_counter() on this device.",
    ),
]


@pytest.mark.parametrize("number", range(len(ABSENT)))
def test_what_a_device_has_not_raises(toy, number):
    toy()
    use, device, text = ABSENT[number]
    assert backends.capabilities("toy") == frozenset()
    with pytest.raises(RuntimeError) as caught:
        use()
    assert str(caught.value) == f"The device {device!r} has no {text.format(device)}"


def test_a_device_without_a_cache(toy):
    toy()
    with pytest.raises(RuntimeError, match="The device 'toy' offers no 'empty_cache'"):
        accelerator.empty_cache("toy")


def test_the_host_has_no_streams():
    with pytest.raises(RuntimeError, match="The device 'cpu' has no streams"):
        torch.Stream("cpu")
    assert "rng" in backends.capabilities() and "streams" not in backends.capabilities("cpu")


def test_without_an_accelerator():
    if accelerator.current_accelerator() is not None:
        pytest.skip("an accelerator is installed")
    assert not accelerator.is_available() and accelerator.device_count() == 0
    for use in (torch.Stream, torch.Event, accelerator.synchronize, accelerator.current_device_index):
        with pytest.raises(RuntimeError, match="No installed plug-in provides an accelerator"):
            use()
    with pytest.raises(RuntimeError, match="Pinned memory needs a device that offers it; no installed plug-in does"):
        torch.ones(2, pin_memory=True)


def test_several_devices_of_one_type(toy):
    current = [0]
    toy(hooks={
        "device_count": lambda: 2, "current_device": lambda: current[0],
        "set_device": lambda index: current.__setitem__(0, index),
    })  # fmt: skip
    assert accelerator.current_accelerator() == torch.device("toy") and accelerator.device_count() == 2
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1
    assert accelerator.current_device_index() == 0
    with pytest.raises(RuntimeError, match="Expected a device index below 2, the number of toy devices, got 2"):
        accelerator.set_device_index(2)


def described(**changes):
    return Backend(**{"name": "toy", "device": "toy", "version": "1", "kernels": {}, "memory": None, **changes})


QUEUE = Queue()
PIN = {"pin_memory": lambda x: x, "upload": lambda x, device: x}
IS_PINNED = "the hook is_pinned(tensor) -> bool for the capability 'pinned_memory', got"
WRONG = [
    (
        {"capabilities": {"streams"}},
        "no capabilities beside memory=None (they are the device's, not the kernels'), got ['streams']",
    ),
    (
        {"capabilities": {"stream"}},
        "capabilities of ['events', 'pinned_memory', 'profiling', 'rng', 'streams'], got ['stream']",
    ),
    ({"capabilities": {"pinned_memory"}, "hooks": PIN}, f"{IS_PINNED} none"),
    ({"capabilities": {"pinned_memory"}, "hooks": {**PIN, "ispinned": bool}}, f"{IS_PINNED} 'ispinned'"),
    (
        {"hooks": {"synchronize": lambda device: None}},
        "the capability 'streams' to be declared for the hook 'synchronize', got []",
    ),
    (
        {"capabilities": {"profiling"}, "hooks": {"start_profiling": lambda: None, "stop_profiling": list}},
        "the hook start_profiling(device): note when each kernel runs, got <lambda>()",
    ),
    (
        {"capabilities": {"rng"}},
        "a kernel that draws random numbers, such as 'uniform_', for the capability 'rng', got none",
    ),
    (
        {"kernels": {"normal_": Kernel(lambda *_: None)}},
        "the capability 'rng' to be declared for the kernel 'normal_', got []",
    ),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_declaration_names_plug_in_hook_and_expectation(number, toy):
    changes, text = WRONG[number]
    memory = None if number == 0 else toy().backends[0].memory
    with pytest.raises(RuntimeError) as caught:
        described(**{"memory": memory, **changes}).validate("fancy-toys")
    assert str(caught.value) == f"Plug-in 'fancy-toys', backend 'toy': expected {text}."


def test_every_hook_is_documented_with_its_arguments():
    for hooks in CAPABILITIES.values():
        for name, text in hooks.items():
            assert text.startswith("(") and ")" in text, name
