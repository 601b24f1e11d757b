"""The shape of the code: layers, sizes, declarations."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau.nn
from flambeau.dispatch.operator import operators

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core/flambeau"
FILES = sorted(CORE.rglob("*.py"))
PLUG_INS = sorted(path for path in (ROOT / "backends").rglob("flambeau_*/**/*.py") if "build" not in path.parts)
C_FILES = sorted(path for path in (ROOT / "backends").rglob("flambeau_*/**/*.[ch]") if "build" not in path.parts)
EXTENSIONS = sorted(path for end in ("py", "h") for path in (ROOT / "extensions/flambeau_extensions").rglob(f"*.{end}"))
#: module (or package) to its layer; what is not listed stands above all of these
LAYERS = {
    "errors": 0, "dtype": 1, "device": 1, "layout": 1, "geometry": 2, "key": 2, "tensor": 3, "autograd.grad_mode": 4,
    "autograd.node": 4, "dispatch.providers": 5, "dispatch.writes": 5, "dispatch.operator": 5, "dispatch.pointwise": 5,
    "dispatch.missing": 5, "dispatch.plans": 5, "dispatch.binding": 5, "dispatch.scope": 5, "dispatch.trace": 5, "dispatch.fallback": 5,
    "autograd.engine": 6,
}  # fmt: skip


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path):
    """(line, level, dotted module) of each import statement, those for type checkers left out."""
    tree = ast.parse(path.read_text())
    checked = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checked:
            continue
        if isinstance(node, ast.Import):
            for each in node.names:
                yield node.lineno, 0, each.name
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.level, node.module or ""


def absolute(path: Path, level: int, module: str) -> str:
    parts = module_name(path).split(".") if path.name != "__init__.py" else [*module_name(path).split("."), "_"]
    base = parts[: len(parts) - level]
    return ".".join([*base, module]).strip(".")


@pytest.mark.parametrize("path", [path for path in FILES if module_name(path) in LAYERS], ids=module_name)
def test_layers_import_downwards(path):
    own = LAYERS[module_name(path)]
    for line, level, module in imports(path):
        if level:
            target = absolute(path, level, module)
            assert target in LAYERS, f"{path}:{line} imports {target}, which stands higher"
            assert LAYERS[target] <= own, f"{path}:{line} imports {target}, which stands higher"


def test_the_core_needs_numpy_and_pluggy_only():
    allowed = {"numpy", "pluggy", "flambeau", *sys.stdlib_module_names}
    for path in FILES:
        tested = {"pytest"} if "conformance" in path.parts else set()  # which nothing else imports
        for line, level, module in imports(path):
            assert level or module.split(".")[0] in allowed | tested, f"{path}:{line} imports {module}"


def test_plug_ins_import_the_backend_module_alone():
    for path in PLUG_INS:
        for line, _, module in imports(path):
            if module.split(".")[0] == "flambeau":
                assert module == "flambeau.backend", f"{path}:{line} imports {module}"


def test_the_core_holds_no_device_name():
    for path in FILES:
        if path.name in ("legacy.py", "exchange.py", "cuda.py"):  # the names that old code calls
            continue
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if path == CORE / "__init__.py" and getattr(node, "value", None) == "cuda":  # the module of that name
                continue
            if isinstance(node, ast.Constant) and node.value in ("cpu", "cuda") and id(node) not in docs:
                pytest.fail(f"{path}:{node.lineno} names a device: {node.value!r}")


@pytest.mark.parametrize("path", [*FILES, *PLUG_INS, *C_FILES, *EXTENSIONS], ids=lambda path: path.name)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) < 600


def test_imports_stand_at_the_top():
    for path in FILES:
        if path.name == "plugins.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for inner in ast.walk(node):
                    assert not isinstance(inner, (ast.Import, ast.ImportFrom)), f"{path}:{inner.lineno}"


def test_every_operator_is_documented_and_differentiable_or_marked():
    assert flambeau.nn
    for op in operators.values():
        function = op.declared_with
        assert (function.__doc__ or "").strip(), f"{op.name} has no docstring"
        if op.kind != "composite":
            assert op.differentiable is not None, f"{op.name} has neither a gradient nor nondifferentiable()"


def test_every_kernel_belongs_to_an_operator():
    from flambeau_cpu.kernels import KERNELS

    assert not KERNELS.keys() - operators.keys()


@pytest.mark.timing
def test_import_costs_at_most_another_numpy(tmp_path):
    code = (
        "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); import flambeau;"
        "print(b - a, time.perf_counter() - b)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)  # the first run compiles, for both alike
    times = [
        tuple(map(float, subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).split()))
        for _ in range(8)
    ]
    assert min(own for _, own in times) <= min(numpy for numpy, _ in times)
