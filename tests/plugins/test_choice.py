"""Which of several providers serves: priority, predicates, preferences, disabling."""

from __future__ import annotations

import threading

import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import make


def test_the_higher_priority_serves(rival):
    torch.ones(3) + 1
    assert rival == []
    assert backends.explain("add", torch.ones(3), 1).provider == "cpu"


def test_prefer_in_a_block_and_in_its_backward(rival):
    x = torch.ones(3, requires_grad=True)
    with backends.prefer("rival"):
        y = (x * 2.0).sum()
    assert rival == ["mul"]
    y.backward()
    assert rival == ["mul", "mul"]
    torch.ones(3) * 2
    assert rival == ["mul", "mul"]


@pytest.mark.parametrize("outer", ["prefer", "anomaly"])
def test_preferences_and_anomaly_detection_see_the_same_nodes(rival, outer):
    x = torch.ones(3, requires_grad=True)
    scopes = [backends.prefer("rival"), torch.autograd.detect_anomaly()]
    first, second = scopes if outer == "prefer" else scopes[::-1]
    with first, second:
        y = (x * 2.0).sum()
    assert y.grad_fn.next_functions[0][0].trace
    y.backward()
    assert rival == ["mul", "mul"]


def test_prefer_one_operator(rival):
    with backends.prefer("rival", op="add"):
        torch.ones(3) * 2
        torch.ones(3) + 2
    assert rival == ["add"]


def test_a_predicate_declines(rival):
    with backends.prefer("rival"):
        torch.ones(200) + 1
        explanation = str(backends.explain("add", torch.ones(200), 1))
    assert rival == []
    assert "-> cpu" in explanation and "rival 9 (priority -1): declines these arguments" in explanation


def test_scopes_belong_to_a_thread(rival):
    with backends.prefer("rival"):
        thread = threading.Thread(target=lambda: torch.ones(3) * 2)
        thread.start()
        thread.join()
    assert rival == []


def test_a_plain_call_holds_until_undone(rival):
    wish = backends.prefer("rival")
    torch.ones(3) * 2
    with wish:
        pass
    torch.ones(3) * 2
    assert rival == ["mul"]


def test_disable_and_enable(rival):
    with backends.disable("cpu"), pytest.raises(NotImplementedError, match=r"cpu .* is disabled"):
        torch.ones(3)
    backends.disable("rival")
    assert "rival" not in backends.available()
    assert "disabled" in str(backends.explain("mul", torch.ones(3), 1))
    backends.enable("rival")
    assert "rival" in backends.available()


def test_unknown_names():
    with pytest.raises(ValueError, match="There is no provider 'nobody'; loaded are: cpu"):
        backends.prefer("nobody")
    with pytest.raises(ValueError, match="There is no operator 'addd'"):
        backends.explain("addd")


def test_explain_runs_nothing():
    x = torch.ones(3)
    before = x._version
    explanation = backends.explain("add_", x, 1) if hasattr(torch, "add_") else backends.explain("add", x, 1)
    assert explanation.provider == "cpu" and x._version == before and x.tolist() == [1, 1, 1]


def test_missing_kernel_message():
    with pytest.raises(NotImplementedError) as caught:
        torch.ones(2, dtype=torch.complex64).exp()
    text = str(caught.value)
    assert text.splitlines()[0] == '"exp" not implemented for complex64 on cpu (strided).'
    assert "It is served there for float16, bfloat16, float32, float64" in text and len(text.splitlines()) < 10


def test_unknown_device_message():
    with pytest.raises(RuntimeError, match="No installed plug-in provides the device 'quantum'"):
        torch.ones(2, device="quantum")


def test_make_is_public_for_backends():
    a = torch.ones(2)
    assert make(a.key, a.geometry, a.memory).tolist() == [1, 1]
