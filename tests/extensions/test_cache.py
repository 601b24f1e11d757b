"""What is built again and what is not; builds that are killed, race or fail; the size of the cache."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import flambeau
from flambeau.utils.cpp_extension import load, load_inline
from flambeau_extensions import toolchain
from flambeau_extensions.compile import workers

#: Without flambeau's headers, which take most of the time of a small build.
VALUE = """
#include <Python.h>
#include "value.h"
static PyObject *value(PyObject *, PyObject *) { return PyLong_FromLong(VALUE); }
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "value", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_value() { return PyModule_Create(&module); }
"""


@pytest.fixture
def counted(tmp_path, monkeypatch, uncached_compiler):
    """A compiler that notes each time that it is called to compile; returns the function that counts."""
    log, wrapper = tmp_path / "compiled", tmp_path / "counted-c++"
    wrapper.write_text(f'#!/bin/sh\ncase " $* " in *" -c "*) echo x >> {log};; esac\nexec {uncached_compiler} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    return lambda: len(log.read_text().split()) if log.exists() else 0


@pytest.fixture
def value(tmp_path, own_cache, counted):
    """A source and its header; returns (load it, count compilations)."""
    (tmp_path / "value.cpp").write_text(VALUE)
    (tmp_path / "value.h").write_text("#define VALUE 1\n")
    return lambda **options: load("value", str(tmp_path / "value.cpp"), extra_cflags=["-O0"], **options).value()


def test_edits_are_seen_in_the_same_process_and_nothing_else_compiles(tmp_path, value, counted, monkeypatch):
    assert value() == 1 and counted() == 1
    assert value() == 1 and counted() == 1

    (tmp_path / "value.h").write_text("#define VALUE 2\n")  # the same size, at nearly the same time
    assert value() == 2 and counted() == 2
    (tmp_path / "value.cpp").write_text(VALUE.replace("(VALUE)", "(VALUE + 1)"))
    assert value() == 3 and counted() == 3
    os.utime(tmp_path / "value.h")  # touched, with the same contents
    assert value() == 3 and counted() == 3

    # A header that would now be found first.
    first = tmp_path / "first"
    first.mkdir()
    assert value(extra_include_paths=[str(tmp_path / "first")]) == 3 and counted() == 4
    (tmp_path / "value.cpp").write_text(VALUE.replace('"value.h"', "<value.h>"))
    folders = [str(first), str(tmp_path)]
    assert value(extra_include_paths=folders) == 2 and counted() == 5
    (first / "value.h").write_text("#define VALUE 7\n")
    assert value(extra_include_paths=folders) == 7 and counted() == 6

    script = f"""
        from flambeau.utils.cpp_extension import load
        module = load("value", {str(tmp_path / "value.cpp")!r}, extra_cflags=["-O0"], extra_include_paths={folders!r})
        print(module.value())
    """
    assert run(script) == "7\n" and counted() == 6


def test_a_changed_library_links_again(own_cache, tmp_path, monkeypatch):
    (tmp_path / "value.cpp").write_text('#include <Python.h>\nextern "C" int f();\n' + VALUE.split("\n", 3)[3])

    def archive(number):
        (tmp_path / "f.c").write_text(f"int f(void) {{ return {number}; }}\n")
        for command in (["cc", "-fPIC", "-c", "f.c", "-o", "f.o"], ["ar", "rcs", "libf.a", "f.o"]):
            subprocess.run(command, cwd=tmp_path, check=True)

    def value():
        flags = [f"-L{tmp_path}", "-lf"]
        return load("value", str(tmp_path / "value.cpp"), extra_cflags=["-DVALUE=f()"], extra_ldflags=flags).value()

    archive(1)
    assert value() == 1
    archive(2)
    assert value() == 2


def test_another_compiler_builds_again(value, counted, tmp_path, monkeypatch):
    assert value() == 1 and counted() == 1
    monkeypatch.setenv("CXX", f"env {os.environ['CXX']}")
    assert value() == 1 and counted() == 2
    wrapper = tmp_path / "counted-c++"
    wrapper.write_text(wrapper.read_text() + "# a newer version\n")
    script = f"""
        from flambeau.utils.cpp_extension import load
        print(load("value", {str(tmp_path / "value.cpp")!r}, extra_cflags=["-O0"]).value())
    """
    assert run(script) == "1\n" and counted() == 3
    assert run(script) == "1\n" and counted() == 3


def test_code_for_this_processor_is_not_loaded_on_another(value, counted, tmp_path):
    def load_on(processor, flag):
        script = f"""
            import flambeau_extensions.toolchain as toolchain
            toolchain.processor = lambda: {processor!r}
            from flambeau.utils.cpp_extension import load
            print(load("value", {str(tmp_path / "value.cpp")!r}, extra_cflags=["-O0", {flag!r}]).value())
        """
        assert run(script) == "1\n"
        return counted()

    assert toolchain.processor() == toolchain.processor()
    assert [load_on(name, "-march=native") for name in ("one", "one", "other", "one")] == [1, 1, 2, 2]
    assert [load_on(name, "-DNOTHING") for name in ("one", "other")] == [3, 3]


def test_a_module_of_that_name_keeps_its_place(own_cache, tmp_path):
    import json

    (tmp_path / "json.cpp").write_text(VALUE.replace('#include "value.h"', "").replace("PyInit_value", "PyInit_json"))
    assert load("json", str(tmp_path / "json.cpp"), extra_cflags=["-DVALUE=3"]).value() == 3
    assert sys.modules["json"] is json


def run(script, **environment):
    """What a fresh process prints."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, **environment}, check=True, text=True,
        stdout=subprocess.PIPE,
    ).stdout  # fmt: skip


@pytest.mark.timing
def test_a_killed_build_delays_nobody(own_cache, tmp_path, monkeypatch):
    slow = tmp_path / "slow-c++"
    slow.write_text('#!/bin/sh\ntouch "$STARTED"\n[ -n "$SLOW" ] && sleep 30\nexec g++ "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("CXX", str(slow))
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    source = "int one() { return 1; }"
    script = (
        f"from flambeau.utils.cpp_extension import load_inline; load_inline('killed', {source!r}, functions=['one'])"
    )
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "SLOW": "1"}, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not list(own_cache.glob("*/killed/*.so"))
        start = time.monotonic()
        assert load_inline("killed", source, functions=["one"]).one() == 1
        first = time.monotonic() - start
        start = time.monotonic()
        assert load_inline("unkilled", source, functions=["one"]).one() == 1
        assert first < 2 * (time.monotonic() - start) + 1
    finally:
        with contextlib.suppress(ProcessLookupError):  # on a slow machine it has ended by now
            os.killpg(process.pid, signal.SIGKILL)  # the compiler that it left


def test_processes_that_race_compile_once(own_cache, counted, tmp_path):
    source, header = tmp_path / "value.cpp", tmp_path / "value.h"
    source.write_text(VALUE)
    script = f"""
        import sys
        from flambeau.utils.cpp_extension import load
        print("ready", flush=True)
        for _ in sys.stdin:
            print(load("value", {str(source)!r}).value(), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        for each in processes:
            assert each.stdout.readline() == "ready\n"
        for round in range(3):
            header.write_text(f"#define VALUE {round}\n")
            for each in processes:
                each.stdin.write("go\n")
                each.stdin.flush()
            assert [each.stdout.readline() for each in processes] == [f"{round}\n"] * 4
            assert counted() == round + 1
    finally:
        for each in processes:
            each.stdin.close()
            each.wait()
            each.stdout.close()


def test_failures_are_not_cached(own_cache, tmp_path):
    source = tmp_path / "value.cpp"
    source.write_text(VALUE)
    with pytest.raises(RuntimeError, match=rf"^{source}:3:10: fatal error: value\.h"):
        load("value", str(source))
    (tmp_path / "value.h").write_text("#define VALUE 5\n")
    assert load("value", str(source), extra_cflags=["-O0"]).value() == 5
    with pytest.raises(FileNotFoundError, match=r"The source .*/missing\.cpp of the extension 'value' cannot be read"):
        load("value", str(tmp_path / "missing.cpp"))


def test_a_missing_symbol_is_named(own_cache):
    text = r"^The extension 'incomplete' uses other\(int\), which nothing defines\.\nAdd the source that defines it"
    for _ in range(2):
        with pytest.raises(ImportError, match=text):
            load_inline(
                "incomplete", "int other(int); int f() { return other(1); }", functions=["f"], extra_cflags=["-O0"]
            )
    assert not list(own_cache.glob("*/incomplete/*.json"))


def test_a_module_without_a_definition_says_what_to_write(own_cache):
    text = r"^The extension 'unbound' defines no module of that name\.\nWrite PYBIND11_MODULE"
    with pytest.raises(ImportError, match=text):
        load_inline("unbound", "int f() { return 1; }", extra_cflags=["-O0"])
    path = load_inline("unbound", 'extern "C" int f() { return 1; }', is_python_module=False, extra_cflags=["-O0"])
    assert os.path.exists(path) and path.endswith(".so")


def test_another_binary_interface_is_refused(own_cache, monkeypatch):
    source = "int f() { return 1; }"
    script = f"""
        import importlib
        importlib.import_module("flambeau.tensor").ABI_VERSION = 999
        from flambeau.utils.cpp_extension import load_inline
        try:
            load_inline("older", {source!r}, functions=["f"], extra_cflags=["-O0"])
        except RuntimeError as error:
            print(error)
    """
    assert run(script) == (
        "This extension was built for version 1 of flambeau's binary interface; the installed flambeau has version 999.\n"
        "Build the extension again (load() does so by itself; reinstall a packaged one).\n"
    )


def test_the_cache_has_a_limit_and_can_be_listed_and_cleared(own_cache, monkeypatch):
    def build(number):
        return load_inline(f"sized_{number}", f"int f() {{ return {number}; }}", functions=["f"], extra_cflags=["-O0"])

    build(1)
    build(2)
    (library,) = own_cache.glob("*/sized_1/*.so")
    os.utime(library, (1, 1))  # unused for long
    monkeypatch.setenv("FLAMBEAU_EXTENSIONS_CACHE_MB", str(2.5 * library.stat().st_size / (1 << 20)))
    assert build(3).f() == 3
    assert not library.exists() and len(list(own_cache.glob("*/*/*.so"))) == 2
    listed = run("import sys; from flambeau.__main__ import main; sys.exit(main(['extensions', 'list']))").splitlines()
    assert [line.split()[0] for line in listed[:-1]] == ["sized_2", "sized_3"]
    assert listed[-1].startswith("2 libraries, ") and listed[-1].endswith(f" in {own_cache}")
    cleared = run("import sys; from flambeau.__main__ import main; sys.exit(main(['extensions', 'clear']))")
    assert cleared == f"Removed 3 extensions from {own_cache}\n" and not list(own_cache.glob("*/*/*.so"))
    assert flambeau.ones(1).item() == 1 and build(3).f() == 3


@pytest.mark.parametrize("keep", [True, False])
def test_objects_and_texts_are_kept_if_wanted(tmp_path, keep):
    load_inline(
        "kept", "int f() { return 1; }", functions=["f"], build_directory=tmp_path, keep_intermediates=keep,
        extra_cflags=["-O0"],
    )  # fmt: skip
    kept = {path.name for path in tmp_path.glob("build/*")}
    assert kept == ({"main.cpp", "0-main.o", "0-main.d"} if keep else set())
    assert len(list(tmp_path.glob("kept.*.so"))) == 1


def test_compilers_side_by_side(monkeypatch):
    monkeypatch.setenv("MAX_JOBS", "3")
    assert [workers(jobs) for jobs in (1, 2, 8)] == [1, 2, 3]
    monkeypatch.setenv("MAX_JOBS", "many")
    with pytest.raises(ValueError, match=r"^MAX_JOBS: expected a number of compilers, got 'many'\.$"):
        workers(2)
    monkeypatch.delenv("MAX_JOBS")
    assert 1 <= workers(1000) <= os.cpu_count() and workers(1) == 1


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        OSError, match=r"The cache of extensions cannot be written \(Not a directory\)\.\nName another folder: TORCH"
    ) as caught:
        load_inline("nowhere", "int f() { return 1; }", functions=["f"])
    assert caught.value.filename.startswith(str(tmp_path / "file" / "cache"))
