"""The kit itself: it knows every operator, its reference is right, and pytest finds it from anywhere."""

from __future__ import annotations

import subprocess
import sys

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


def kit(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "flambeau.conformance", *arguments],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip


def test_it_runs_from_an_empty_directory(tmp_path):
    done = kit(tmp_path, "--device=cpu", "--operators=add,sum,argmax,index_put_,uniform_")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 operators with" in done.stdout and "0 failed, 0 declined, 0 missing" in done.stdout
