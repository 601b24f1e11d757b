"""The kit itself: it knows every operator, its reference is right, and pytest finds it from anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from flambeau.conformance.families import DRAWS, SAMPLES
from flambeau.dispatch.operator import operators

#: kernels without samples of their own: who runs them
INDIRECT = {
    "move": "the transfers of the device's cases",
    "normal": "normal_",
    "class_loss_backward": "the gradient of class_loss",
    "recurrent_layer_backward": "the gradient of recurrent_layer",
}


def test_there_are_samples_of_every_primitive():
    primitives = {name for name, op in operators.items() if op.kind in ("pointwise", "primitive")}
    assert primitives - SAMPLES.keys() - DRAWS.keys() == INDIRECT.keys()


def kit(folder, *arguments, path=""):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "flambeau.conformance", *arguments],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_it_runs_from_an_empty_directory(tmp_path):
    done = kit(tmp_path, "--device=cpu", "--operators=add,sum,argmax,index_put_,uniform_")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 operators with" in done.stdout and "0 failed, 0 declined, 0 missing" in done.stdout


def test_a_wrong_plug_in_fails_the_run_and_the_summary_says_where(tmp_path):
    info = tmp_path / "lame-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lame\nVersion: 1.0\nRequires-Dist: flambeau>=0.1\n")
    (info / "entry_points.txt").write_text("[flambeau.backends]\nlame = lame\n")
    (tmp_path / "lame.py").write_text(
        """
import numpy as np
from flambeau.backend import hookimpl
from good import Good

class Lame(Good):
    def op_relu(self, a):
        return np.where(a > 0, a, 0)

@hookimpl
def flambeau_backends():
    return [Lame().backend("lame")]
"""
    )
    (tmp_path / "empty").mkdir()
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    done = kit(tmp_path / "empty", "--device=lame", "--operators=relu,add", "--json=found.json", path=path)
    assert done.returncode == 1
    text = done.stdout
    assert (
        "relu-float32-NaN" in text
        and "expected nan at [0]" in text
        and "     got 0.0 (1 of 6 elements are wrong)" in text
    )
    assert "NaN is not handled as the reference does" in text
    assert "flambeau conformance of lame (lame 1.0)" in text
    found = json.loads((tmp_path / "empty" / "found.json").read_text())
    assert found["operators"]["relu"]["status"] == "failed" and found["operators"]["add"]["status"] == "kernel"
    assert {each["id"] for each in found["failures"]} == {
        f"relu-{each}-NaN" for each in ("float16", "float32", "float64")
    }
    assert found["providers"] == [{"name": "lame", "version": "1.0"}] and found["problems"] == []


def test_what_it_says_when_it_cannot_begin(tmp_path):
    for arguments, said in (
        ((), "Name the device to prove: pytest --pyargs flambeau.conformance --device=NAME"),
        (("--device=quantum",), "No installed plug-in provides the device 'quantum'"),
        (("--device=cpu", "--provider=nobody"), "No provider 'nobody' serves the device 'cpu'; there are: "),
        (("--device=cpu", "--operators=addd"), "There is no operator 'addd'. Similar names: add, "),
    ):
        done = kit(tmp_path, *arguments)
        assert done.returncode == 4 and said in done.stderr, done.stdout + done.stderr


def test_it_fails_where_nothing_runs(tmp_path):
    done = kit(tmp_path, "--device=cpu", "--operators=narrow")
    assert done.returncode == 1 and "No kernel under test ran: nothing is proven." in done.stdout


def test_other_runs_of_pytest_neither_see_its_options_nor_load_it(tmp_path):
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--device')")
    (tmp_path / "test_x.py").write_text(
        "import sys\ndef test_x(pytestconfig):\n assert pytestconfig.option.device == '7' and 'flambeau' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device=7"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
