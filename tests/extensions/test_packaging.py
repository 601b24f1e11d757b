"""Packages that are built with BuildExtension, and what stands in for flambeau-extensions where it is not installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
import venv
from importlib import metadata
from pathlib import Path

import numpy
import pytest
import setuptools

import flambeau
from flambeau.utils import cpp_extension, elsewhere
from flambeau.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "extensions" / "examples" / "package"


def run(*command, **options):
    done = subprocess.run(
        [str(each) for each in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.packaging
def test_a_wheel_built_in_isolation_works_in_a_fresh_environment(tmp_path):
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    for package in ("core", "extensions"):
        copy = tmp_path / package
        shutil.copytree(ROOT / package, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        run(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, copy)
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    environment = {**os.environ, "PIP_FIND_LINKS": str(wheels)}
    run(*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, tmp_path / "example", env=environment)
    (wheel,) = tmp_path.glob("gated-*.whl")

    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    python = fresh / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, *wheels.glob("flambeau-*.whl"))
    # Its NumPy and plug-ins are those of this environment.
    (site,) = fresh.glob("lib/python*/site-packages")
    places = {str(Path(numpy.__file__).parents[1])}
    for each in metadata.entry_points(group="flambeau.backends"):
        module = importlib.util.find_spec(each.module.partition(".")[0])
        places |= {str(Path(module.origin).parents[1]), str(each.dist.locate_file(""))}
    (site / "others.pth").write_text("\n".join(places))
    script = f"""
        import gated, flambeau
        x, y = flambeau.zeros(3, requires_grad=True), flambeau.arange(3.0)
        z = gated.gate(x, y=y)
        z.sum().backward()
        print(z.tolist(), x.grad.tolist(), all(each.__file__.startswith({str(fresh)!r}) for each in (gated, flambeau)))
        try:
            gated.gate(x, y[:2])
        except RuntimeError as error:
            print(str(error).splitlines()[0])
    """
    output = run(python, "-c", textwrap.dedent(script), cwd=tmp_path)
    assert output == "[0.0, 1.0, 2.0] [0.0, 0.5, 1.0] True\nexpected tensors of one size, got [3] and [2]\n"


def build(tmp_path, monkeypatch, extension, command=BuildExtension):
    """The library that setup.py would build in place, without a package around it."""
    monkeypatch.chdir(tmp_path)
    distribution = setuptools.Distribution({"name": "sample", "ext_modules": [extension]})
    builder = command(distribution)
    builder.build_lib, builder.build_temp = "lib", "temp"
    builder.ensure_finalized()
    builder.run()
    (library,) = (tmp_path / "lib").rglob("*.so")
    return library


def test_options_of_extensions_reach_the_compiler(tmp_path, monkeypatch):
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "other.h").write_text("#define OTHER 20\n")
    (tmp_path / "sample.cpp").write_text(
        "#include <torch/extension.h>\n#include <other.h>\n"
        "#ifdef GONE\n#error it is not gone\n#endif\n"
        "int value() { return OTHER + MACRO + FLAG; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("value", &value); }\n'
    )
    extension = CppExtension(
        "inner.sample", ["sample.cpp"], include_dirs=["headers"], define_macros=[("MACRO", "2"), ("GONE", None)],
        undef_macros=["GONE"], extra_compile_args={"cxx": ["-O0", "-DFLAG=100"]}, extra_link_args=["-Wl,-z,now"],
    )  # fmt: skip
    library = build(tmp_path, monkeypatch, extension, BuildExtension.with_options(use_ninja=False))
    assert library.parent.name == "inner"
    spec = importlib.util.spec_from_file_location("sample", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.value() == 122


def test_other_extensions_are_left_to_setuptools(tmp_path, monkeypatch):
    (tmp_path / "plain.c").write_text(
        '#include <Python.h>\nstatic struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "plain"};\n'
        "PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&d); }\n"
    )
    plain = setuptools.Extension("plain", ["plain.c"])
    library = build(tmp_path, monkeypatch, plain, BuildExtension.with_options(no_python_abi_suffix=True))
    assert library.name == "plain.so"


def test_unknown_options_are_refused():
    with pytest.raises(
        TypeError, match=r"BuildExtension has no option 'ninja'; it has no_python_abi_suffix and use_ninja\."
    ):
        BuildExtension.with_options(ninja=True)


def test_a_mistake_in_a_package_is_shown_like_one_in_a_program(tmp_path, monkeypatch):
    (tmp_path / "sample.cpp").write_text("#include <torch/extension.h>\nint value() { return nothing; }\n")
    with pytest.raises(RuntimeError, match=rf"^{tmp_path}/sample\.cpp:2:22: error: .*nothing"):
        build(tmp_path, monkeypatch, CppExtension("sample", ["sample.cpp"], extra_compile_args=["-O0"]))


def test_folders_and_questions():
    folders = cpp_extension.include_paths()
    assert any(Path(each, "torch", "extension.h").exists() for each in folders)
    assert any(Path(each, "flambeau", "operators.h").exists() for each in folders)
    size = sum(path.stat().st_size for each in folders for path in Path(each).rglob("*.h"))
    assert size <= 250_000, "the headers are small"
    assert cpp_extension.library_paths() == []
    assert cpp_extension.check_compiler_abi_compatibility("c++")
    assert not cpp_extension.check_compiler_abi_compatibility("no-such-compiler")
    assert cpp_extension.verify_ninja_availability() is None
    assert CUDAExtension("sample", ["sample.cu"]).cuda


def test_without_the_distribution_the_message_says_what_to_install():
    with pytest.raises(ModuleNotFoundError) as caught:
        elsewhere.provided("flambeau_absent.part", "flambeau-absent")
    assert str(caught.value) == (
        "This part of flambeau is in the distribution flambeau-absent, which is not installed.\n"
        "Install it: pip install flambeau-absent"
    )
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'flambeau\.absent'$"):
        elsewhere.provided("flambeau.absent", "flambeau")
    assert flambeau.utils.cpp_extension is cpp_extension
