"""Plug-ins that are missing, broken, incompatible or contradict each other leave everything else usable."""

from __future__ import annotations

import importlib.metadata
import time

import pytest

TRY = """
import warnings, flambeau
from flambeau.backends import report
warnings.simplefilter("ignore")
for device in {devices!r}:
    for _ in range(2):
        try:
            flambeau.ones(2, device=device)
        except RuntimeError as error:
            print(device, "raises:", error)
            print(device, "cause:", type(error.__cause__).__name__, error.__cause__)
x = flambeau.tensor([1.0, 2.0], device="fine")
print((x + x).tolist())
for each in report():
    print(each.device, "is", each.state)
"""


def test_the_core_works_without_any_backend(site):
    output = site.python(
        """
        import flambeau
        try:
            flambeau.ones(2)
        except RuntimeError as error:
            print(error)
        """
    )
    assert output == (
        "A tensor needs a device. No backend is installed.\nInstall one, for example: pip install flambeau-cpu\n"
    )


BROKEN = {
    "a missing module": ("import no_such_library", "ModuleNotFoundError", "No module named 'no_such_library'"),
    "sys.exit": ("import sys; sys.exit(3)", "SystemExit", "3"),
    "an exception": ("raise ValueError('half-written')", "ValueError", "half-written"),
    "a syntax error": ("def", "SyntaxError", "invalid syntax"),
    "a missing shared library": ("import ctypes; ctypes.CDLL('libabsent.so.7')", "OSError", "libabsent.so.7"),
    "no description": ("x = 1", "PluginError", "Plug-in 'lame' describes no backend in flambeau_backends()."),
    "a hook that raises": (
        "from flambeau.backend import hookimpl\n@hookimpl\ndef flambeau_backends():\n    raise OSError('no driver')",
        "OSError", "no driver",
    ),
    "a hook with arguments": (
        "from flambeau.backend import hookimpl\n@hookimpl\ndef flambeau_backends(wanted):\n    return []",
        "PluginValidationError", "Argument(s) {'wanted'} are declared in the hookimpl but can not be found",
    ),
    "something else than a description": (
        "from flambeau.backend import hookimpl\n@hookimpl\ndef flambeau_backends():\n    return ['lame']",
        "PluginError", "Plug-in 'lame': expected a Backend, got str.",
    ),
    "another device": (
        "from flambeau.backend import Backend, hookimpl\n@hookimpl\ndef flambeau_backends():\n"
        "    return [Backend(name='lame', device='other', version='1', kernels={})]",
        "PluginError", "expected a backend for 'lame', which its entry point names, got other.",
    ),
    "a kernel of no operator": (
        "from flambeau.backend import Backend, Kernel, hookimpl\n@hookimpl\ndef flambeau_backends():\n"
        "    return [Backend(name='lame', device='lame', version='1', kernels={'addd': Kernel(max)})]",
        "PluginError", "Plug-in 'lame', backend 'lame': expected kernels of declared operators (like add, ",
    ),
    "a kernel that is none": (
        "from flambeau.backend import Backend, hookimpl\n@hookimpl\ndef flambeau_backends():\n"
        "    return [Backend(name='lame', device='lame', version='1', kernels={'add': max})]",
        "PluginError", "Plug-in 'lame', backend 'lame': expected a Kernel for 'add', got <built-in function max>.",
    ),
    "memory that is none": (
        "from flambeau.backend import Backend, hookimpl\n@hookimpl\ndef flambeau_backends():\n"
        "    return [Backend(name='lame', device='lame', version='1', kernels={}, memory=7)]",
        "PluginError", "Plug-in 'lame', backend 'lame': expected memory with 'allocator', got 7.",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken(tmp_path_factory, make_site):
    """What one process prints that meets all of these, and a plug-in that works."""
    site = make_site(tmp_path_factory.mktemp("broken"))
    devices = {fault: f"lame{number}" for number, fault in enumerate(BROKEN)}
    for fault, device in devices.items():
        site.install(device, BROKEN[fault][0].replace("'lame'", repr(device)))
    site.device("fine")
    return site.python(TRY.format(devices=list(devices.values()))), devices


@pytest.mark.parametrize("fault", BROKEN)
def test_a_plug_in_that_fails_is_quarantined(broken, fault):
    output, devices = broken
    _, kind, reason = BROKEN[fault]
    name = devices[fault]
    assert output.count(f"{name} raises: The device '{name}' is unavailable: plug-in {name} is broken.") == 2
    assert output.count(f"{name} cause: {kind}") == 2 and reason.replace("'lame'", repr(name)) in output
    assert f"{name} is broken\n" in output and "[2.0, 4.0]\n" in output and "fine is loaded\n" in output


def test_an_unknown_device_names_those_that_are_installed(site):
    site.install("lame", "raise ValueError")
    site.device("fine")
    output = site.python(TRY.format(devices=["absent"]))
    assert "No installed plug-in provides the device 'absent'. Installed plug-ins provide: fine, lame.\n" in output


def test_another_core_version_is_rejected_without_an_import(site):
    site.install("future", "open(__file__ + '.imported', 'w')", requires="flambeau>=7,<8")
    site.device("fine")
    output = site.python(TRY.format(devices=["future"]) + "import sys; print('future' in sys.modules)")
    assert "future 1.0 needs flambeau>=7,<8, this is flambeau 0.1.0." in output and output.endswith("False\n")
    site.flambeau("doctor", status=1)
    assert not list(site.plugins.glob("*.imported"))
    site.install("present", "open(__file__ + '.imported', 'w')")
    site.flambeau("backends")
    assert [path.name for path in site.plugins.glob("*.imported")] == ["present.py.imported"]


RANGES = {
    "flambeau": True, "flambeau>=0.1": True, "flambeau>=0.1,<0.2": True, "flambeau (>=0.1)": True,
    "flambeau~=0.1.0": True, "flambeau==0.1.*": True, "flambeau[extra]>=0.1": True, "flambeau-cpu>=7": True,
    "flambeau>=0.1; python_version>'3'": True, "flambeau>=0.2": False, "flambeau<0.1": False,
    "flambeau==0.2.*": False, "flambeau~=1.0": False, "flambeau!=0.1.0": False,
}  # fmt: skip


def test_version_ranges(site):
    for number, requirement in enumerate(RANGES):
        site.install(f"ranged{number:02}", "x = 1", requires=requirement)
    states = site.python("from flambeau.plugins import plugins\nfor each in plugins: print(each.state)").split()
    assert dict(zip(RANGES, [each == "available" for each in states], strict=True)) == RANGES


def test_a_broken_provider_beside_a_device_that_works_is_told_once(site):
    site.device("fine")
    site.install("faster", "raise OSError('libfast.so')", device="fine")
    done = site.run(
        "-c",
        "import flambeau\nfor _ in range(3):\n    x = flambeau.tensor([1.0], device='fine')\nprint((x + x).tolist())",
    )
    assert done.stdout == "[2.0]\n"
    assert done.stderr.count("The plug-in faster for fine is broken and serves nothing: OSError: libfast.so") == 1
    assert "Run `python -m flambeau doctor` for details." in done.stderr


@pytest.mark.parametrize("names", [("alpha", "beta"), ("beta", "alpha")])
def test_equal_priorities_are_an_error_naming_both(site, names):
    for name in names:
        site.provider(name, "shared", '"add": Kernel(max)', priority=5)
    output = site.python(
        """
        from flambeau.backends import report
        import warnings
        warnings.simplefilter("ignore")
        for each in report():
            print(each.distribution, each.state, each.error)
        """
    )
    assert output == (
        "alpha loaded None\nbeta broken The providers 'alpha' and 'beta' both serve add on shared (strided) with "
        "priority 5.\nGive one of them another priority, so that the choice does not depend on the import order.\n"
    )


def test_two_providers_of_one_name_are_an_error(site):
    site.install("first", "from second import *", device="shared")
    site.provider("second", "shared", '"add": Kernel(max)')
    output = site.python(
        """
        from flambeau.backends import report
        import warnings
        warnings.simplefilter("ignore")
        print([(each.distribution, each.state, str(each.error)) for each in report()][1])
        """
    )
    assert "Two providers of shared (strided) are called 'second': of the plug-ins 'first' and 'second'." in output


@pytest.mark.parametrize("order", [("low", "high"), ("high", "low")])
def test_the_order_of_loading_does_not_decide(site, order):
    site.provider("low", "shared", '"add": Kernel(max), "mul": Kernel(max)', priority=1)
    site.provider("high", "shared", '"add": Kernel(max, predicate=lambda a, b: False)', priority=2)
    output = site.python(
        f"""
        from flambeau.plugins import probe
        from flambeau.dispatch.providers import first, registry
        from flambeau.key import devices, intern
        from flambeau.device import device
        from types import SimpleNamespace
        for name in {order!r}:
            probe(name, "shared")
        key = SimpleNamespace(device=device("shared"), layout=registry.providers[0].layout, dtype=None)
        for provider in registry.providers:
            provider.kernel = lambda operator, key, provider=provider: provider.kernels.get(operator)
        for operator in ("add", "mul"):
            found = registry.candidates(operator, key)
            print(operator, [each.provider.name for each in found], first(found, (1, 2)).provider.name)
        """
    )
    assert output == "add ['high', 'low'] low\nmul ['low'] low\n"


def test_a_kernel_that_cannot_be_built_names_its_plug_in(toy):
    import flambeau as torch

    class Failing:
        predicate = None

        def build(self, key):
            raise ValueError("no compiler")

    toy(kernels={**toy.kernels(), "exp": Failing()})
    x = torch.ones(2, device="toy")
    with pytest.raises(RuntimeError) as caught:
        x.exp()
    assert str(caught.value) == (
        "The provider 'toy' (plug-in toy) could not build its kernel of exp for float32 on toy:0: "
        "ValueError: no compiler\nDo without it: flambeau.backends.disable('toy', 'exp')"
    )
    with torch.backends.disable("toy", "exp"), torch.backends.fallback("cpu"):
        assert x.exp().device == x.device
    assert (x + 1).tolist() == [2, 2]


def test_a_plug_in_that_is_switched_off_is_not_imported(site):
    site.install("noisy", "open(__file__ + '.imported', 'w')")
    text = site.flambeau("doctor", status=0, FLAMBEAU_DISABLED_PLUGINS="other, noisy")
    assert "noisy 1.0" in text and "switched off" in text
    done = site.run("-c", "import flambeau; flambeau.ones(2, device='noisy')", FLAMBEAU_DISABLED_PLUGINS="noisy")
    assert done.stderr.endswith(
        "The device 'noisy' is unavailable: FLAMBEAU_DISABLED_PLUGINS switches off its plug-in noisy.\n"
    )
    assert not list(site.plugins.glob("*.imported"))


def test_a_plug_in_is_imported_when_its_device_is_used(site):
    for name in ("one", "two"):
        site.device(name)
    output = site.python(
        """
        import sys, flambeau
        print([each for each in ("one", "two", "pluggy", "importlib.metadata") if each in sys.modules])
        flambeau.tensor([1.0], device="two")
        print([each for each in ("one", "two", "pluggy") if each in sys.modules])
        """
    )
    assert output == "[]\n['two', 'pluggy']\n"


@pytest.mark.timing
def test_twenty_plug_ins_cost_nothing_at_import(site):
    code = "import numpy, time; a = time.process_time(); import flambeau; print(time.process_time() - a)"

    def seconds(path):
        return float(site.run("-c", code, PYTHONPATH=path).stdout)

    for number in range(20):
        site.install(f"extra{number}", "raise SystemExit('imported')")
    beside, alone = site.environment["PYTHONPATH"], str(site.library)
    seconds(beside)  # compiles
    times = [(seconds(alone), seconds(beside)) for _ in range(12)]
    without, with_plug_ins = (min(column) for column in zip(*times, strict=True))
    assert with_plug_ins - without < 0.005, f"{without * 1000:.1f} ms alone, {with_plug_ins * 1000:.1f} ms beside 20"


def test_plug_ins_installed_later_are_found_on_request(site):
    output = site.python(
        f"""
        import pathlib, sys, flambeau
        from flambeau.plugins import plugins
        print([each.device for each in plugins])
        sys.path.insert(0, {str(site.plugins.parent)!r})
        import importlib
        folder = pathlib.Path({str(site.plugins)!r})
        info = folder / "late-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: late\\nVersion: 1.0\\n")
        (info / "entry_points.txt").write_text("[flambeau.backends]\\nlate = late\\n")
        importlib.invalidate_caches()
        plugins.forget()
        print([each.device for each in plugins])
        """
    )
    assert output == "[]\n['late']\n"


def test_installed_metadata_declares_the_entry_point():
    points = importlib.metadata.entry_points(group="flambeau.backends")
    assert "cpu" in {each.name for each in points}


def test_a_plug_in_that_kills_python_is_survived_by_the_doctor(site):
    site.device("fine")
    site.install("exits", "import os; os._exit(9)")
    site.install("segfaults", "import ctypes; ctypes.string_at(0)")
    site.install("hangs", "import time; time.sleep(600)")
    began = time.monotonic()
    text = site.flambeau("doctor", "--timeout", "6", status=1)
    assert time.monotonic() - began < 60
    assert " works\n" in text
    assert "It ended Python with exit status 9." in text
    assert "It crashed Python: Segmentation fault (SIGSEGV)." in text
    assert "It was not ready after 6 seconds." in text
    assert text.count("fatal") == 3 and text.endswith("Plug-ins: 4, with problems: 3\n")
    assert "Upgrade or remove it (pip uninstall exits), or switch it off: FLAMBEAU_DISABLED_PLUGINS=exits" in text
