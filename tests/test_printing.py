"""Printed tensors: notation, alignment, summaries and suffixes."""

import numpy as np
import pytest

import flambeau

t = flambeau.tensor


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: t([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: t([1, 2, -30]), "tensor([  1,   2, -30])"),
        (lambda: t([True, False]), "tensor([ True, False])"),
        (lambda: t(3.1416), "tensor(3.1416)"),
        (lambda: t(5), "tensor(5)"),
        (lambda: t(True), "tensor(True)"),
        (lambda: t([0.5, -1.25]), "tensor([ 0.5000, -1.2500])"),
        (lambda: t([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (lambda: t([[[1.0]], [[2.0]]]), "tensor([[[1.]],\n\n        [[2.]]])"),
        (lambda: t([0.0, float("nan")]), "tensor([0., nan])"),
        (lambda: t([float("inf"), 1.5, float("-inf")]), "tensor([   inf, 1.5000,   -inf])"),
        (lambda: t([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (lambda: t([1.0, 2000.0]), "tensor([1.0000e+00, 2.0000e+03])"),
        (lambda: t([1e9]), "tensor([1.0000e+09])"),
        (lambda: t([0.1, 100.0]), "tensor([  0.1000, 100.0000])"),
        (lambda: t([-0.0]), "tensor([-0.])"),
        (lambda: t([1 + 2j, -0.5 - 1.5j]), "tensor([ 1.0000+2.0000j, -0.5000-1.5000j])"),
        (lambda: t([]), "tensor([])"),
        (lambda: flambeau.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: flambeau.zeros(0, dtype=flambeau.int64), "tensor([], dtype=flambeau.int64)"),
        (lambda: t([1.0], dtype=flambeau.float64), "tensor([1.], dtype=flambeau.float64)"),
        (lambda: t([1.5], dtype=flambeau.float16), "tensor([1.5000], dtype=flambeau.float16)"),
        (lambda: t([1.5], dtype=flambeau.bfloat16), "tensor([1.5000], dtype=flambeau.bfloat16)"),
        (lambda: t([200], dtype=flambeau.uint8), "tensor([200], dtype=flambeau.uint8)"),
        (lambda: t([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: t([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (
            lambda: t([1, 2, 3, 4, 5, 6])[::2],
            "tensor([1, 3, 5])",
        ),
    ],
)
def test_small_tensors(make, expected):
    assert repr(make()) == expected
    assert str(make()) == expected


def test_long_tensors_are_summarised_at_both_ends():
    values = flambeau.from_numpy(np.arange(1001))
    assert repr(values) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    table = flambeau.from_numpy(np.arange(2000).reshape(2, 1000))
    assert (
        repr(table)
        == "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])"
    )
    tall = flambeau.from_numpy(np.arange(1200).reshape(600, 2))
    assert repr(tall).splitlines()[3] == "        ...,"


def test_notation_looks_only_at_what_a_summary_shows():
    values = np.ones(2000, np.float32)
    values[1000] = 1e-7
    assert repr(flambeau.from_numpy(values)) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_lines_break_at_the_line_width():
    lines = repr(flambeau.from_numpy(np.arange(100))).splitlines()
    assert lines[0].startswith("tensor([ 0,  1,")
    assert all(len(each) <= 80 for each in lines)
    assert all(each.startswith("        ") for each in lines[1:])
    assert lines[1].strip().startswith("18,")


def test_suffixes_that_do_not_fit_go_to_the_next_line():
    wide = flambeau.from_numpy(np.full(13, 1000000))
    x = flambeau.from_numpy(np.linspace(0.11, 0.19, 8)).requires_grad_()
    assert repr(x).splitlines()[-1] == "       dtype=flambeau.float64, requires_grad=True)"
    assert repr(wide).endswith("1000000])")


def test_options():
    x = t([1.23456, 100.0])
    with flambeau.printoptions(precision=2):
        assert repr(x) == "tensor([  1.23, 100.00])"
    with flambeau.printoptions(sci_mode=True):
        assert repr(x) == "tensor([1.2346e+00, 1.0000e+02])"
    with flambeau.printoptions(sci_mode=False):
        assert repr(t([1.0, 20000.0])) == "tensor([    1., 20000.])"
    with flambeau.printoptions(threshold=3, edgeitems=1):
        assert repr(t([1, 2, 3, 4])) == "tensor([1,  ..., 4])"
    with flambeau.printoptions(profile="full"):
        assert "..." not in repr(flambeau.zeros(2000))
    assert flambeau.get_printoptions()["threshold"] == 1000
    with pytest.raises(ValueError, match="expected a profile of default, short, full, got 'loud'"):
        flambeau.set_printoptions(profile="loud")


def test_options_change_at_once_and_profiles_restore():
    flambeau.set_printoptions(precision=1)
    assert repr(t([0.25])) == "tensor([0.2])"
    flambeau.set_printoptions(profile="default")
    assert repr(t([0.25])) == "tensor([0.2500])"


def test_a_number_formats_like_its_value():
    assert f"{t(3.14159):.2f}" == "3.14"
    assert f"{t(7):03d}" == "007"
    assert f"{t(2.5)}" == "2.5"
    assert f"{t([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError):
        format(t([1.0]), ".2f")


def test_default_dtype_needs_no_mention():
    assert repr(flambeau.zeros(3, 0, dtype=flambeau.int32)) == "tensor([], size=(3, 0), dtype=flambeau.int32)"
