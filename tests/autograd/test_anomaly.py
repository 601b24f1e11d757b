"""Anomaly detection shows the forward call behind an error or a NaN."""

import pytest

import flambeau
from flambeau.autograd import Function, detect_anomaly, set_detect_anomaly


def leaf(*values):
    return flambeau.tensor(list(values), dtype=flambeau.float64, requires_grad=True)


class Breaks(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("broken formula")


def notes(error):
    return "\n".join(getattr(error, "__notes__", [])) + str(error)


def test_an_error_shows_the_forward_line():
    x = leaf(1.0)
    with detect_anomaly(), pytest.raises(ValueError, match="broken formula") as caught:
        y = Breaks.apply(x)  # the line to find
        y.sum().backward()
    assert "the line to find" in notes(caught.value) and "backward pass of Breaks" in notes(caught.value)


def test_a_nan_is_an_error_inside_only():
    x = leaf(0.0)

    def run():
        y = x.sqrt() * 0  # makes 0 * inf
        y.sum().backward()

    run()
    assert x.grad.isnan().all()
    with (
        detect_anomaly(),
        pytest.raises(RuntimeError, match=r"'SqrtBackward0' returned nan values") as caught,
    ):
        run()
    assert "makes 0 * inf" in notes(caught.value)
    with detect_anomaly(check_nan=False):
        run()
    run()


def test_setting_nests_and_restores():
    x = leaf(0.0)

    def fails():
        try:
            (x.sqrt() * 0).sum().backward()
        except RuntimeError:
            return True
        return False

    with set_detect_anomaly(True):
        assert fails()
        with set_detect_anomaly(False):
            assert not fails()
        assert fails()
    assert not fails()
    set_detect_anomaly(True)
    assert fails()
    set_detect_anomaly(False)
    assert not fails()
