"""The kit itself: it knows every operator, its reference is right, and pytest finds it from anywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
import venv
from pathlib import Path

import numpy
import pluggy
import pytest

import flambeau
from flambeau.autograd import gradcheck
from flambeau.conformance.categories.memory import SCRATCH
from flambeau.conformance.families import DRAWS, SAMPLES
from flambeau.conformance.operands import Draw
from flambeau.conformance.reference import reference_device
from flambeau.conformance.samples import VALUES, samples_of
from flambeau.conformance.subject import placing
from flambeau.conformance.suite import Suite
from flambeau.dispatch.operator import operators

ROOT = Path(__file__).parents[2]
#: kernels without samples of their own: who runs them
INDIRECT = {
    "move": "the transfers of the device's cases",
    "class_loss_backward": "the gradient of class_loss",
    "recurrent_layer_backward": "the gradient of recurrent_layer",
}


def test_there_are_samples_of_every_primitive():
    primitives = {name for name, op in operators.items() if op.kind in ("pointwise", "primitive")}
    known = {each.split()[0] for each in SAMPLES}  # some are for another layout than strided
    assert primitives - known - DRAWS.keys() == INDIRECT.keys()


def test_there_are_samples_of_every_composite():
    composites = {name for name, op in operators.items() if op.kind == "composite"}
    composites.discard("module_gate")  # stands in the graph for the hooks of a module, and computes nothing
    assert composites - SAMPLES.keys() - DRAWS.keys() == set()


#: operators whose gradients are by intent others than those of what they compute, or need more than the reference has
CONVENTIONAL = {
    "embedding": "rows may be left out, or their gradients scaled",
    "index_copy_": "of repeated indices, each takes the gradient of the last",
    "scatter_": "likewise",
    "plane_put": "likewise",
    "sparse_tensor": "gradients are read by kernels of the layout",
}
DIFFERENTIABLE = sorted(
    name
    for name in (SAMPLES.keys() & operators.keys()) - CONVENTIONAL.keys()
    if operators[name].differentiable and operators[name].kind != "composite"
)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_on_the_reference_are_finite_differences(name):
    op, place = operators[name], placing(reference_device())
    ordinary = [each for each in samples_of(name, Draw(flambeau.float64, 1)) if each.about == VALUES]
    for sample in ordinary[:2]:
        args = [place(each) for each in sample.args]
        varied = [i for i, each in enumerate(args) if differentiable(op, i, each)]
        if not varied:
            continue

        def call(*values, args=args, varied=varied):
            filled = list(args)
            for i, value in zip(varied, values, strict=True):
                filled[i] = value
            if op.mutates:
                filled[0] = filled[0].clone()
            result = op.function.run(*filled)
            # The statistics that normalisation also returns are constants to autograd.
            return filled[0] if op.mutates else result[0] if name in ("batch_norm_train", "row_norm") else result

        assert gradcheck(call, tuple(args[i].requires_grad_() for i in varied), fast_mode=True)


def differentiable(op, position, argument):
    floating = isinstance(argument, flambeau.Tensor) and argument.dtype is flambeau.float64
    claimed = op.joint is not None or op.parameters[position] in op.formulas
    return floating and claimed and SCRATCH.get(op.name) != position


def kit(folder, *arguments, path=""):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "flambeau.conformance", *arguments],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_it_runs_from_an_empty_directory(tmp_path):
    done = kit(tmp_path, "--device=cpu", "--operators=add,sum,argmax,index_put_,uniform_")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " of them run. Cases: " in done.stdout and "0 failed, 0 declined, 0 missing" in done.stdout


def wick(folder, name, methods):
    """Install a plug-in that is the good backend but for some methods; where to find it, and an empty directory."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: flambeau>=0.1\n")
    (info / "entry_points.txt").write_text(f"[flambeau.backends]\n{name} = {name}\n")
    (folder / f"{name}.py").write_text(
        f"""
import os
import numpy as np
from flambeau.backend import hookimpl
from good import Good

class Lame(Good):
{textwrap.indent(textwrap.dedent(methods), "    ")}

@hookimpl
def flambeau_backends():
    return [Lame().backend({name!r})]
"""
    )
    (folder / "empty").mkdir()
    return os.pathsep.join([str(folder), str(Path(__file__).parent)]), folder / "empty"


def test_a_wrong_plug_in_fails_the_run_and_the_summary_says_where(tmp_path):
    path, empty = wick(tmp_path, "lame", "def op_relu(self, a): return np.where(a > 0, a, 0)")
    done = kit(empty, "--device=lame", "--operators=relu,add", "--json=found.json", path=path)
    assert done.returncode == 1
    text = done.stdout
    assert (
        "relu-float32-NaN" in text
        and "expected nan at [0]" in text
        and "     got 0.0 (1 of 6 elements are wrong)" in text
    )
    assert "NaN is not handled as the reference does" in text
    assert "flambeau conformance of lame (lame 1.0)" in text
    found = json.loads((empty / "found.json").read_text())
    assert found["operators"]["relu"]["status"] == "failed" and found["operators"]["add"]["status"] == "kernel"
    assert {each["id"] for each in found["failures"]} == {
        f"relu-{each}-NaN" for each in ("float16", "float32", "float64")
    }
    assert found["providers"] == [{"name": "lame", "version": "1.0"}] and found["problems"] == []


def test_a_crash_is_survived_and_named(tmp_path):
    path, empty = wick(tmp_path, "lame", "def op_exp(self, a): return os.abort() if not a.size else np.exp(a)")
    done = kit(
        empty, "-n", "1", "-k", "float32", "--device=lame", "--operators=exp,add", "--json=found.json", path=path
    )
    assert done.returncode == 1
    failed = {each["id"] for each in json.loads((empty / "found.json").read_text())["failures"]}
    assert "exp-float32-empty" in failed and not any(each.startswith("add") for each in failed)


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
    done = kit(tmp_path, "--device=cpu", "--operators=t")
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


def test_the_documentation_names_every_category():
    text = (ROOT / "docs/conformance.md").read_text()
    suite = Suite("cpu")
    titles = {each.category for each in suite.cases()}
    unnamed = {each for each in titles if each not in text and not each.startswith("error: ")}
    assert unnamed == set()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """An environment with the core's wheel that knows nothing of this repository: its Python, and what installs there."""
    folder = tmp_path_factory.mktemp("fresh")
    shutil.copytree(ROOT / "core", folder / "core", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, folder / "core"], check=True)
    (wheel,) = folder.glob("flambeau-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = [*pip, "--python", python, "install", "--no-deps"]
    subprocess.run([*install, wheel], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    # NumPy, pluggy and pytest are this environment's.
    others = {str(Path(each.__file__).parents[1]) for each in (numpy, pluggy, pytest)}
    (site / "others.pth").write_text("\n".join(others))
    return python, install


def run(*command, cwd, **environment):
    """What a command prints; it must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.packaging
def test_wheels_are_enough(fresh, tmp_path):
    """The core's wheel and a plug-in beside it, from an empty folder."""
    python, _ = fresh
    path, empty = wick(tmp_path, "lame", "pass")
    told = run(python, "-m", "pytest", "--pyargs", "flambeau.conformance", "--device=lame", cwd=empty, PYTHONPATH=path)
    assert "flambeau conformance of lame (lame 1.0)" in told
    assert "37 operators with 192 kernels, 192 of them run" in told
    files = run(
        python, "-c", "import flambeau, pytest_flambeau; print(flambeau.__file__, pytest_flambeau.__file__)", cwd=empty
    ).split()
    assert len(files) == 2 and all(each.startswith(str(python.parents[1])) for each in files), files


@pytest.mark.packaging
def test_a_new_backend_is_written_installed_proven_and_trained_on(fresh, tmp_path):
    python, install = fresh
    told = run(python, "-m", "flambeau", "new-backend", "abacus", cwd=tmp_path)
    assert "Wrote ./flambeau-abacus:\n" in told and "-m pip install -e ./flambeau-abacus\n" in told
    run(*install, "./flambeau-abacus", cwd=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    start = time.monotonic()
    told = run(python, "-m", "pytest", "--pyargs", "flambeau.conformance", "--device=abacus", cwd=empty)
    assert time.monotonic() - start < 60
    assert "15 operators with 69 kernels, 69 of them run. " in told and " 0 failed" in told
    script = Path(__file__).with_name("perceptron.py")
    assert "served by abacus alone" in run(python, script, "abacus", cwd=empty)
