"""The DataLoader, here and with worker processes."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import flambeau
from flambeau.utils import data

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")


class Numbers(data.Dataset):
    def __init__(self, count, act=lambda index: index):
        self.count, self.act = count, act

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.act(index)


class Stream(data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        info = data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.count, step))


def batches(loader):
    return [each.tolist() for each in loader]


def flat(lists):
    return [each for inner in lists for each in inner]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    deadline = time.monotonic() + 5
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    loader = data.DataLoader(Numbers(10), batch_size=3, num_workers=workers)
    assert len(loader) == 4
    assert batches(loader) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert batches(data.DataLoader(Numbers(10), batch_size=3, num_workers=workers, drop_last=True))[-1] == [6, 7, 8]
    assert batches(data.DataLoader(Numbers(0), num_workers=workers)) == []


def test_a_slow_worker_does_not_change_the_order():
    loader = data.DataLoader(Numbers(8, lambda i: (time.sleep(0.05 if i == 0 else 0), i)[1]), num_workers=2)
    assert batches(loader) == [[i] for i in range(8)]


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffle(workers):
    loader = data.DataLoader(Numbers(20), batch_size=5, shuffle=True, num_workers=workers)
    flambeau.manual_seed(5)
    first, second = batches(loader), batches(loader)
    flambeau.manual_seed(5)
    assert batches(loader) == first != second
    assert sorted(flat(first)) == list(range(20))


def test_the_number_of_workers_does_not_change_the_order():
    orders = []
    for workers in (0, 1, 3):
        flambeau.manual_seed(5)
        orders.append([batches(data.DataLoader(range(20), 3, shuffle=True, num_workers=workers)) for _ in range(2)])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][0] != orders[0][1]


@pytest.mark.parametrize("workers", [0, 2])
def test_own_samplers_and_collation(workers):
    options = {"num_workers": workers}
    assert batches(data.DataLoader(Numbers(5), sampler=[4, 2], **options)) == [[4], [2]]
    assert batches(data.DataLoader(Numbers(5), batch_sampler=[[1, 2], [3]], **options)) == [[1, 2], [3]]
    assert list(data.DataLoader(Numbers(3), batch_size=None, **options)) == [0, 1, 2]
    assert list(data.DataLoader(Numbers(3), batch_size=3, collate_fn=sum, **options)) == [3]


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_datasets(workers):
    loader = data.DataLoader(Stream(7), batch_size=2, num_workers=workers)
    assert sorted(flat(batches(loader))) == list(range(7))
    assert sorted(data.DataLoader(Stream(5), batch_size=None, num_workers=workers)) == list(range(5))
    assert len(loader) == 4
    dropped = batches(data.DataLoader(Stream(7), batch_size=2, num_workers=workers, drop_last=True))
    assert all(len(each) == 2 for each in dropped)


def test_what_travels_between_processes():
    base = flambeau.arange(10000.0).reshape(100, 100)

    def make(index):
        return {"row": base[index], "text": "x" * index, "half": flambeau.ones(2, dtype=flambeau.bfloat16),
                "empty": flambeau.zeros(0, 3), "bool": flambeau.tensor(True), "array": np.arange(2)}  # fmt: skip

    (got,) = data.DataLoader(Numbers(3, make), batch_size=3, num_workers=1)
    assert flambeau.equal(got["row"], base[:3])
    assert got["row"].is_contiguous() and len(got["row"].storage()) == 300
    assert got["text"] == ["", "x", "xx"] and got["half"].dtype is flambeau.bfloat16
    assert got["empty"].shape == (3, 0, 3) and got["bool"].tolist() == [True] * 3
    got["row"].add_(1)
    (view,) = data.DataLoader(Numbers(1, lambda i: base.t()[1:3]), batch_size=None, num_workers=1)
    assert flambeau.equal(view, base.t()[1:3])


def test_large_batches_do_not_block():
    loader = data.DataLoader(Numbers(12, lambda i: flambeau.full((1 << 18,), float(i))), batch_size=2, num_workers=2)
    assert [each[:, 0].tolist() for each in loader] == [[i, i + 1.0] for i in range(0, 12, 2)]


def test_seeds_of_workers_differ_and_repeat():
    def draw(index):
        return [float(flambeau.rand(1)), random.random(), float(np.random.rand())]

    def epoch():
        return [[float(x) for x in each] for each in data.DataLoader(Numbers(4, draw), batch_size=None, num_workers=2)]

    flambeau.manual_seed(1)
    first = epoch()
    assert len({tuple(each) for each in first}) == 4
    assert all(a != b for a, b in zip(first[0], first[1], strict=True))
    assert epoch() != first
    flambeau.manual_seed(1)
    assert epoch() == first


def test_worker_info_and_init():
    seen = multiprocessing.get_context("fork").Array("i", 2)

    def init(number):
        seen[number] = os.getpid()

    def ask(index):
        info = data.get_worker_info()
        return (info.id, info.num_workers, info.dataset.count, flambeau.get_num_threads())

    loader = data.DataLoader(Numbers(2, ask), batch_size=None, num_workers=2, worker_init_fn=init)
    assert sorted(loader) == [(0, 2, 2, 1), (1, 2, 2, 1)]
    assert len({*seen}) == 2 and os.getpid() not in seen[:]
    assert data.get_worker_info() is None


def test_persistent_workers_stay():
    loader = data.DataLoader(Numbers(4, lambda i: os.getpid()), batch_size=None, num_workers=2, persistent_workers=True)
    first = set(loader)
    assert set(loader) == first and len(first) == 2
    flambeau.manual_seed(0)
    stream = data.DataLoader(Stream(5), batch_size=None, num_workers=2, persistent_workers=True)
    assert sorted(stream) == sorted(stream) == list(range(5))
    del loader, stream


class Custom(Exception):
    def __init__(self, a, b):
        super().__init__(a)


@pytest.mark.parametrize("kind", [ValueError, KeyError, IndexError])
def test_a_worker_s_exception_is_raised_here(kind):
    def fail(index):
        if index == 2:
            raise kind("number two")
        return index

    loader = iter(data.DataLoader(Numbers(6, fail), num_workers=2))
    assert next(loader).tolist() == [0] and next(loader).tolist() == [1]
    with pytest.raises(kind) as caught:
        next(loader)
    text = str(caught.value)
    for part in (f"Caught {kind.__name__} in DataLoader worker process 0.\n", "Traceback", "in fail", "number two"):
        assert part in text
    assert list(loader) == []


def test_exceptions_that_cannot_be_rebuilt_become_runtime_errors():
    def fail(index):
        raise Custom(1, 2)

    with pytest.raises(RuntimeError, match="Caught Custom in DataLoader worker process 0"):
        list(data.DataLoader(Numbers(1, fail), num_workers=1))
    with pytest.raises(
        (TypeError, AttributeError, RuntimeError), match="sending a batch from DataLoader worker process 0"
    ):
        list(data.DataLoader(Numbers(1, lambda i: lambda: i), batch_size=None, num_workers=1))

    def bad_init(number):
        raise ValueError("init")

    with pytest.raises(ValueError, match=r"(?s)Caught ValueError.*init"):
        list(data.DataLoader(Numbers(1), num_workers=1, worker_init_fn=bad_init))


def test_a_dead_worker_is_an_error():
    def die(index):
        if index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    with pytest.raises(RuntimeError, match=r"DataLoader worker 1 \(pid \d+\) is killed by signal: SIGKILL"):
        list(data.DataLoader(Numbers(50, die), num_workers=2))
    with pytest.raises(RuntimeError, match=r"exited unexpectedly with exit code 3"):
        list(data.DataLoader(Numbers(2, lambda i: os._exit(3)), num_workers=1))


def test_timeout():
    loader = data.DataLoader(Numbers(1, lambda i: time.sleep(30)), num_workers=1, timeout=0.2)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.2 seconds"):
        list(loader)
    assert time.monotonic() - start < 10


def test_leaving_early_ends_the_workers():
    loader = data.DataLoader(Numbers(1000, lambda i: flambeau.zeros(100000)), num_workers=2)
    for _ in loader:
        break
    iterator = iter(loader)
    next(iterator)
    del iterator


def test_ctrl_c_ends_everything(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, time
            import flambeau
            from flambeau.utils import data

            class Slow(data.Dataset):
                def __len__(self):
                    return 100000
                def __getitem__(self, index):
                    time.sleep(0.01)
                    return os.getpid()

            for batch in data.DataLoader(Slow(), batch_size=None, num_workers=2):
                print(batch, flush=True)
            """
        )
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    workers = {int(process.stdout.readline()) for _ in range(8)}
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1
    deadline = time.monotonic() + 5
    while any(alive(each) for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(each) for each in workers)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_leave_when_the_parent_is_killed(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, time
            from flambeau.utils import data
            class Big(data.Dataset):
                def __len__(self): return 1000
                def __getitem__(self, index): return str(os.getpid()) + " " * 10**6
            for batch in data.DataLoader(Big(), batch_size=None, num_workers=2):
                print(batch.strip(), flush=True)
                time.sleep(0.05)
            """
        )
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    workers = {int(process.stdout.readline()) for _ in range(4)}
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while any(alive(each) for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(each) for each in workers)


# ---------------------------------------------------------------- progress, pinned memory, arguments


@pytest.mark.parametrize("workers", [0, 2])
def test_progress_wraps_the_batches(workers):
    calls = []

    def bar(iterable, total=None):
        calls.append(total)
        for each in iterable:
            calls.append("tick")
            yield each

    loader = data.DataLoader(Numbers(3), num_workers=workers, progress=bar)
    assert batches(loader) == [[0], [1], [2]]
    assert calls == [3, "tick", "tick", "tick"]


def test_progress_without_a_length():
    class Endless(data.IterableDataset):
        def __iter__(self):
            return iter(range(2))

    totals = []
    loader = data.DataLoader(Endless(), progress=lambda batches, total: totals.append(total) or batches)
    assert len(list(loader)) == 2 and totals == [None]


def test_pinned_memory_needs_a_device():
    with pytest.warns(UserWarning, match="no loaded device has pinned memory"):
        assert batches(data.DataLoader(Numbers(1), pin_memory=True)) == [[0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative, got -1"),
        ({"timeout": -1}, "timeout option should be non-negative, got -1"),
        ({"prefetch_factor": 2}, "set num_workers > 0"),
        ({"prefetch_factor": 0, "num_workers": 1}, "prefetch_factor option should be positive, got 0"),
        ({"persistent_workers": True}, "needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
    ],
)
def test_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader(Numbers(3), **options)


def test_more_arguments():
    with pytest.raises(ValueError, match="An iterable dataset has an order of its own"):
        data.DataLoader(Stream(3), shuffle=True)
    with pytest.raises(TypeError, match="progress is called as"):
        data.DataLoader(Numbers(3), progress=3)
