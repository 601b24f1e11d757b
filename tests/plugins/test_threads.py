"""Choices hold for their own thread, also while seven others make, leave and change theirs."""

from __future__ import annotations

import sys
import threading

import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import Backend, Kernel
from flambeau.dispatch.providers import registry


@pytest.fixture
def second():
    """A provider ``second`` of mul on the CPU; the set holds the names of the threads that it served."""
    served = set()
    torch.ones(1)
    own = next(each for each in registry.providers if each.name == "cpu")

    def mul(*args, out=None):
        served.add(threading.current_thread().name)
        real = own.kernel("mul", args[0].key)
        return real(*args) if out is None else real(*args, out=out)

    backend = Backend(name="second", device="cpu", version="2", kernels={"mul": Kernel(mul)}, priority=-1)
    with backends.register(backend):
        yield served
    backends.reset()


def together(*works, seconds=1.0):
    """Run functions over and over, each in a thread of its own that bears its name; raise what one raises."""
    failed, stop = [], threading.Event()
    barrier = threading.Barrier(len(works) + 1)

    def loop(work):
        barrier.wait()
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=loop, args=(work,), name=work.__name__) for work in works]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in threads:
            each.start()
        barrier.wait()
        stop.wait(seconds)
        stop.set()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    if failed:
        raise failed[0]
    assert registry.scopes == 0


def named(name, function):
    function.__name__ = name
    return function


def test_scoped_preferences_never_reach_other_threads(second):
    x = torch.ones(4)

    def prefers():
        with backends.prefer("second"), backends.trace() as calls:
            y = x * 2
        assert calls.calls[0].provider == "second" and y.tolist() == [2, 2, 2, 2]

    def one_operator():
        with backends.prefer("second", op="add"), backends.trace() as calls:
            x * 2
        assert calls.calls[0].provider == "cpu"

    def disables():
        with backends.prefer("second"), backends.disable("second"), backends.trace() as calls:
            x * 2
        assert calls.calls[0].provider == "cpu"

    def computes():
        assert (x * 3).tolist() == [3, 3, 3, 3]

    def explains():
        found = backends.explain(lambda each: (each * 2).exp(), x)
        assert [each.provider for each in found.calls] == ["cpu", "cpu"] and found.stopped is None

    def explains_inside():
        with backends.prefer("second"):
            assert backends.explain("mul", x, 2).provider == "second"

    def backward():
        a = torch.ones(3, requires_grad=True)
        with backends.prefer("second"):
            b = (a * 2).sum()
        with backends.trace() as calls:
            b.backward()
        assert {each.provider for each in calls.calls if each.operator == "mul"} == {"second"}
        assert a.grad.tolist() == [2, 2, 2]

    together(prefers, one_operator, disables, computes, named("computes too", lambda: computes()), explains,
             explains_inside, backward)  # fmt: skip
    assert second == {"prefers", "backward"}
    x * 2
    assert threading.current_thread().name not in second


def test_global_wishes_come_and_go_while_others_compute(second):
    x = torch.ones(4)

    def everyone():
        backends.prefer("second")
        backends.disable("second")
        backends.enable("second")
        backends.reset()

    def computes():
        assert (x * 3).tolist() == [3, 3, 3, 3]

    def holds():
        with backends.prefer("cpu"), backends.trace() as calls:
            x * 2
        assert calls.calls[0].provider == "cpu"

    together(everyone, *[named(f"computes {number}", lambda: computes()) for number in range(5)],
             *[named(f"holds {number}", lambda: holds()) for number in range(2)])  # fmt: skip
    assert registry.wishes == ()
    x * 2
    assert "MainThread" not in second


def test_a_plain_statement_reaches_threads_that_run_already(second):
    x = torch.ones(2)
    ready, go, done = threading.Event(), threading.Event(), threading.Event()

    def work():
        x * 2
        ready.set()
        go.wait()
        x * 2
        done.set()

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    ready.wait()
    assert second == set()
    backends.prefer("second")
    go.set()
    done.wait()
    thread.join()
    assert second == {"worker"}
    backends.disable("second")
    second.clear()
    x * 2
    assert second == set() and "second" not in backends.available()


def test_a_kept_wish_is_this_threads_until_it_is_let_go(second):
    x = torch.ones(2)

    def elsewhere():
        thread = threading.Thread(target=lambda: x * 2, name="other")
        thread.start()
        thread.join()

    wish = backends.prefer("second")
    x * 2
    elsewhere()
    assert second == {"MainThread"}
    del wish
    elsewhere()
    assert second == {"MainThread", "other"}


def test_fallbacks_beside_threads_that_did_not_ask(toy):
    toy()
    x = torch.ones(3, device="toy")

    def asks():
        with backends.fallback("cpu") as moved:
            assert x.exp().device == x.device
            assert (x + 1).tolist() == [2, 2, 2]
        assert list(moved.counts) == ["exp"] and moved.counts["exp"].calls == 1

    def does_not():
        with pytest.raises(NotImplementedError):
            x.exp()
        assert (x + 1).tolist() == [2, 2, 2]

    def traces():
        with backends.trace() as calls:
            x + 1
        assert [each.provider for each in calls.calls] == ["toy"]

    works = [named(f"{work.__name__} {number}", lambda work=work: work())
             for work in (asks, does_not, traces) for number in range(3)]  # fmt: skip
    together(*works)


def test_exceptions_leave_no_choice_behind(second):
    x = torch.ones(2)
    for enter in (lambda: backends.prefer("second"), lambda: backends.fallback("cpu"), backends.trace):
        with pytest.raises(KeyError), enter():
            raise KeyError
    with pytest.raises(RuntimeError):
        backends.explain("mm", torch.ones(2, 3), torch.ones(2, 3))
    assert registry.scopes == 0
    x * 2
    assert second == set()


def test_answers_are_kept_within_a_block_and_found_anew_after_a_change(second, monkeypatch):
    x, searches, candidates = torch.ones(4), [], registry.candidates
    monkeypatch.setattr(registry, "candidates", lambda *args: searches.append(args[0]) or candidates(*args))
    with backends.prefer("second"):
        for _ in range(5):
            x * 2
        assert searches == ["mul"]
        backends.disable("second")
        x * 2
        assert searches == ["mul", "mul"] and second == {"MainThread"}
        second.clear()
        x * 2
    assert second == set()
