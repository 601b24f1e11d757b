"""What the commands print, kept in files: FLAMBEAU_UPDATE_SNAPSHOTS=1 writes them anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import backends
from flambeau.__main__ import main
from flambeau.backend import DTYPES
from flambeau.cli.matrix import matrix
from flambeau.dispatch.operator import operators

SNAPSHOTS = Path(__file__).parent / "snapshots"
COMMANDS = {
    "backends": (0, "backends"),
    "backends_json": (0, "backends", "--json"),
    "doctor": (1, "doctor"),
    "doctor_json": (1, "doctor", "--json"),
    "matrix": (0, "matrix", "--device", "toy", "add", "mul", "linear", "cat"),
    "matrix_json": (0, "matrix", "--device", "toy", "--json", "add"),
    "matrix_of_nothing": (1, "matrix", "--device", "nix"),
    "matrix_of_no_operator": (1, "matrix", "--device", "toy", "addd"),
    "where": (0, "where", "add"),
    "where_composite": (0, "where", "softmin"),
    "where_nothing": (1, "where", "nothing"),
    "primitives": (0, "primitives", "add", "linear", "fill_", "softmin"),
    "primitives_nothing": (1, "primitives", "addd"),
    "version": (0, "version"),
    "help_backends": (0, "backends", "--help"),
    "help_doctor": (0, "doctor", "--help"),
    "help_matrix": (0, "matrix", "--help"),
    "help_where": (0, "where", "--help"),
    "help_primitives": (0, "primitives", "--help"),
    "help_new_backend": (0, "new-backend", "--help"),
    "no_command": (2,),
    "no_device": (2, "matrix"),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory, make_site):
    """A device, a second provider for it, a plug-in that is broken, and one for another core."""
    site = make_site(tmp_path_factory.mktemp("shop"))
    site.device("toy")
    site.provider("quick", "toy", '"mul": Kernel(max, predicate=lambda *_: True)', 3)
    site.install("lame", "import no_such_library")
    site.install("future", "x = 1", requires="flambeau>=7")
    return site


@pytest.mark.parametrize("name", COMMANDS)
def test_snapshots(shop, name):
    status, *arguments = COMMANDS[name]
    text = shop.flambeau(*arguments, status=status)
    if status == 2 or "--help" in arguments:  # how argparse breaks lines depends on the version of Python
        text = re.sub(r"\s+", " ", text) + "\n"
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("FLAMBEAU_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_where_names_the_tests_of_a_checkout(capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(["where", "softmin"]) == 0
    assert "    tested in tests/ops/test_softmax.py\n" in capsys.readouterr().out


def test_every_command_says_what_it_does(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def help_of(*command):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    listed = dict(re.findall(r"^    (\S+)\s+(.+)$", help_of(), re.MULTILINE))
    assert set(listed) >= {"backends", "doctor", "matrix", "where", "primitives", "version"}
    for command, text in listed.items():
        usage, description = help_of(command).split("\n\n")[:2]
        assert usage.startswith(f"usage: python -m flambeau {command}") and description.endswith(".") and text


def test_without_plug_ins(site):
    assert site.flambeau("backends") == (
        "flambeau 0.1.0\nNo backend is installed.\nInstall one, for example: pip install flambeau-cpu\n"
    )
    assert site.flambeau("doctor", status=1).splitlines()[1:] == [
        "No backend is installed.", "Install one, for example: pip install flambeau-cpu", "Plug-ins: 0, with problems: 0",
    ]  # fmt: skip


def test_a_plug_in_that_kills_python_does_not_kill_the_list(site):
    site.device("toy")
    site.install("segfaults", "import ctypes; ctypes.string_at(0)")
    text = site.flambeau("backends", status=1)
    assert re.search(r"^toy +toy 1\.0 +available$", text, re.MULTILINE)
    assert text.endswith(
        "Loading all plug-ins failed. It crashed Python: Segmentation fault (SIGSEGV).\nTry: python -m flambeau doctor\n"
    )
    assert json.loads(site.flambeau("backends", "--json", status=1))["problem"].startswith(
        "Loading all plug-ins failed"
    )


def test_doctor_where_all_is_well(site):
    site.device("toy")
    assert site.flambeau("doctor").splitlines()[-1] == "Plug-ins: 1, with problems: 0"


def test_doctor_finds_plug_ins_that_contradict_each_other(site):
    site.device("toy")
    for name in ("alpha", "beta"):
        site.provider(name, "toy", '"mul": Kernel(max)', 5)
    text = site.flambeau("doctor", status=1)
    assert re.search(r"^toy +alpha 1\.0 +works$", text, re.MULTILINE)
    assert re.search(r"^toy +beta 1\.0 +broken$", text, re.MULTILINE)
    assert "The providers 'alpha' and 'beta' both serve mul on toy (strided) with priority 5." in text


def test_doctor_finds_memory_that_forgets(site):
    site.device("toy")
    path = site.plugins / "toy.py"
    path.write_text(path.read_text().replace("(np.array(array), 0))", "(np.zeros_like(array), 0))"))
    text = site.flambeau("doctor", status=1)
    assert re.search(r"^toy +toy 1\.0 +unusable$", text, re.MULTILINE)
    assert "RuntimeError: [1.5, -2.0] was put into its memory, [0.0, 0.0] came out." in text


def test_matrix_says_what_runs():
    table = matrix("cpu")["operators"]
    assert set(table) >= {op.name for op in operators.values() if op.kind in ("pointwise", "primitive")}
    x = torch.ones(2, 2)
    for dtype in DTYPES:
        cell = table["exp"][dtype.name]
        try:
            served = backends.explain("exp", x.to(dtype)).calls[-1]
        except RuntimeError:
            continue
        if served.dtype == dtype.name:
            assert cell["served"] == served.how and (served.provider or cell["providers"] == [])
    assert {cell["served"] for row in table.values() for cell in row.values()} <= {"kernel", "composite", "missing"}


def test_matrix_as_json(capsys):
    assert main(["matrix", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == matrix("cpu")


def test_matrix_of_another_layout(capsys):
    status = main(["matrix", "--device", "cpu", "--layout", "sparse_coo", "add", "--json"])
    printed = capsys.readouterr()
    if status:  # no plug-in brings the layout
        assert "No installed plug-in provides the layout sparse_coo on cpu." in printed.err
    else:
        found = json.loads(printed.out)
        assert found["layout"] == "sparse_coo" and found["operators"]["add"]["float32"]["providers"] == ["sparse"]


def test_overridden_composites_are_in_the_matrix(toy):
    from flambeau.backend import Backend, Kernel

    with backends.register(
        Backend(name="fused", device="cpu", version="1", kernels={"softmin": Kernel(max)}, priority=9), plugin="fused"
    ):
        assert matrix("cpu")["operators"]["softmin"]["float32"] == {
            "served": "kernel", "providers": ["fused"], "conditional": True,
        }  # fmt: skip
    assert "softmin" not in matrix("cpu")["operators"]


def test_a_kernel_that_cannot_be_built_is_marked(toy, capsys):
    class Failing:
        predicate = None

        def build(self, key):
            raise ValueError("no compiler")

    toy(kernels={"exp": Failing()})
    assert main(["matrix", "--device", "toy", "exp"]) == 0
    assert "BROKEN" in capsys.readouterr().out
