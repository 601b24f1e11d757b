"""The error for a call that nothing serves: under ten lines, and each says what helps."""

from __future__ import annotations

import contextlib

import pytest

import flambeau as torch
from flambeau import backends
from flambeau.backend import Backend, Kernel, float32, float64
from flambeau.dispatch.providers import registry


def message(call):
    with pytest.raises(NotImplementedError) as caught:
        call()
    text = str(caught.value)
    assert len(text.splitlines()) < 10
    return text


@pytest.fixture
def version():
    return next(each.version for each in backends.report() if each.device == "cpu")


def test_another_dtype_is_nearest(toy):
    def nearest(have, *served):
        toy(kernels={**toy.kernels(), "exp": Kernel(max, served)})
        try:
            return message(lambda: torch.ones(1, device="toy").to(have).exp()).splitlines()[-1]
        finally:
            toy.leave()

    def served(names, nearest):
        return f"It is served there for {names}; convert with x.to(flambeau.{nearest})."

    assert nearest(torch.float16, torch.float32, torch.float64) == served("float32, float64", "float32")
    assert nearest(torch.float16, torch.float64, torch.complex64) == served("float64, complex64", "float64")
    assert nearest(torch.complex64, torch.float64, torch.float32) == served("float32, float64", "float32")
    assert nearest(torch.float64, torch.int64, torch.float16) == served("int64, float16", "float16")


def test_the_whole_message_for_another_dtype(version):
    assert message(lambda: torch.ones(2, dtype=torch.complex64).exp()) == (
        '"exp" not implemented for complex64 on cpu (strided).\n'
        f"cpu {version} has no kernel for complex64.\n"
        "It is served there for float16, bfloat16, float32, float64; convert with x.to(flambeau.float32)."
    )


def test_another_device_has_it(toy):
    toy()
    assert message(lambda: torch.ones(2, device="toy").exp()) == (
        '"exp" not implemented for float32 on toy:0 (strided).\n'
        "toy 2.5 has no kernel for it.\n"
        "cpu has a kernel: move there with x.to('cpu'), or let it serve this device's gaps in a block: "
        "with flambeau.backends.fallback('cpu'): ..."
    )


def test_nobody_has_it(toy):
    toy()
    with contextlib.ExitStack() as disabled:
        for name in {each.name for each in registry.providers} - {"toy"}:
            disabled.enter_context(backends.disable(name, "exp"))
        text = message(lambda: torch.ones(2, device="toy").exp())
    assert text == (
        '"exp" not implemented for float32 on toy:0 (strided).\n'
        "toy 2.5 has no kernel for it.\n"
        "No loaded plug-in has a kernel; a newer toy may."
    )


def test_a_provider_is_disabled(rival, version):
    with backends.disable("cpu"):
        assert message(lambda: torch.ones(2)) == (
            '"copy_" not implemented for float32 on cpu (strided).\n'
            f"cpu {version} is disabled.\n"
            "rival 9 has no kernel for it.\n"
            "Put it back into service with flambeau.backends.enable('cpu')."
        )


def test_a_provider_declines(toy):
    toy(kernels={**toy.kernels(), "exp": Kernel(max, (float32,), lambda x: x.geometry.numel < 2)})
    assert message(lambda: torch.ones(2, device="toy").exp()).splitlines()[1] == "toy 2.5 declines these arguments."


def test_another_layout_has_it(toy):
    toy()
    with backends.register(
        Backend(name="loose", device="toy", version="3", kernels={}, layout=torch.sparse_coo, memory=toy.Memory()),
        plugin="loose-toys",
    ):
        from flambeau.dispatch.missing import missing_kernel
        from flambeau.dispatch.operator import operators
        from flambeau.key import intern

        key = intern(torch.device("toy:0"), torch.sparse_coo, float64)
        assert str(missing_kernel(operators["add"], key)) == (
            '"add" not implemented for float64 on toy:0 (sparse_coo).\n'
            "loose 3 has no kernel for it.\n"
            "toy 2.5 serves the layout strided.\n"
            "It is served there for dense tensors: convert with x.to_dense()."
        )


def test_many_providers_are_not_all_listed(toy):
    toy()
    with_kernels = [
        backends.register(Backend(name=f"extra{number}", device="toy", version="1", kernels={}, priority=number))
        for number in range(6)
    ]
    try:
        lines = message(lambda: torch.ones(2, device="toy").exp()).splitlines()
        assert lines[1] == "extra5 1 has no kernel for it." and lines[5] == "Neither do 3 more providers serve it."
    finally:
        for each in with_kernels:
            each.__exit__()


def test_a_plug_in_that_is_broken_is_named(site):
    site.device("toy")
    site.install("faster", "raise OSError('libfast.so')", device="toy")
    output = site.python(
        """
        import warnings, flambeau
        warnings.simplefilter("ignore")
        try:
            flambeau.tensor([1.0], device="toy").exp()
        except NotImplementedError as error:
            print(error)
        """
    )
    assert output == (
        '"exp" not implemented for float32 on toy (strided).\n'
        "toy 1.0 has no kernel for it.\n"
        "The plug-in faster for toy cannot be used: OSError: libfast.so\n"
        "No loaded plug-in has a kernel; a newer toy may.\n"
    )
