"""The example of a device made of NumPy: installed as a third party's plug-in, it conforms and trains."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import flambeau as torch
from flambeau.conformance.report import Report
from flambeau.conformance.suite import Suite

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_it_uses_the_public_surface_alone():
    files = list((EXAMPLES / "backends/numpy_device/flambeau_numpy_device").glob("*.py"))
    lines = [line for each in files for line in each.read_text().splitlines()]
    imports = [line.split()[1] for line in lines if line.startswith(("from flambeau", "import flambeau"))]
    assert len(files) == 8 and set(imports) == {"flambeau.backend"}


def test_it_conforms():
    suite = Suite("numpy")
    report = Report(suite)
    failed = []
    for case in suite.cases():
        found = suite.run(case)
        report.add(case.operator, case.dtype.name, case.category, found.status, found.detail, sorted(found.served))
        if found.status == "failed":
            failed.append((str(case), found.detail))
    assert failed == [] and report.problems() == []
    assert "108 operators with 577 kernels, 577 of them run. " in list(report.lines())[-1]


def test_the_digits_are_learnt_on_it_alone(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("digits", EXAMPLES / "digits.py")
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    torch.set_default_device("numpy")
    try:
        torch.manual_seed(0)
        with torch.backends.trace() as calls:
            x = torch.tensor(images[order].reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
            y = torch.tensor(labels[order])
            net = digits.Net()
            optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
            for start in range(0, 1437, 64):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(x[start : start + 64]), y[start : start + 64])
                loss.backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                right = (net(x[1437:]).argmax(1) == y[1437:]).float().mean().item()
    finally:
        torch.set_default_device(None)
    assert right > 0.9
    assert {each.device for each in calls.calls} == {"numpy"}
    assert {each.how for each in calls.calls} == {"kernel", "composite"}


def test_a_whole_number_is_not_divided_by_zero():
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a whole number is divided by zero"):
        torch.tensor([1, 2], device="numpy") // torch.tensor([1, 0], device="numpy")
