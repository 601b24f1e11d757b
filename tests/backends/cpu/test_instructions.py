"""One binary serves machines with wide vectors and without: the narrowest set passes a sample of the tests as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau_cpu._kernels import lib

TESTS = Path(__file__).parents[2]
#: Tests of the families whose kernels differ most between instruction sets.
SAMPLE = {
    "ops/test_linalg.py": "threads or float32",
    "ops/test_reduction.py": "float32 or int64",
    "ops/test_convolution.py": "threads or values or transposed",
    "ops/test_softmax.py": "",
    "nn/test_rnn.py": "cells or half",
}


def run(instructions, *arguments):
    environment = {**os.environ, "FLAMBEAU_CPU_ISA": instructions, "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("path", SAMPLE)
def test_the_baseline_passes(path):
    done = run(
        "baseline", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", SAMPLE[path], TESTS / path
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_the_set_is_chosen_and_reported(instructions):
    if not lib.fb_supports(instructions.encode()):
        pytest.skip(f"this machine has no {instructions}")
    code = (
        "import flambeau as torch; from flambeau.accelerator import function;"
        "print(function(torch.ones(1).device, 'instructions')())"
    )
    assert run(instructions, "-c", code).stdout == f"{instructions}\n"


def test_a_set_that_is_not_there():
    done = run("avx1024", "-c", "import flambeau; flambeau.ones(1)")
    assert done.returncode == 1
    assert "FLAMBEAU_CPU_ISA='avx1024' is not available on this machine." in done.stderr
    assert ", baseline, or unset it." in done.stderr
