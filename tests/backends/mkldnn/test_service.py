"""When the oneDNN plug-in serves, what it keeps between calls and lets go, threads, processes, and its absence."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F

cache = pytest.importorskip("flambeau_mkldnn.cache")


def servers(function):
    with torch.backends.trace() as calls:
        function()
    return {name: dict(found) for name, found in calls.providers().items() if name in ("conv", "linear", "mm")}


def script(code, **environment):
    """What a fresh process prints, with all plug-ins that are installed."""
    environment = {**os.environ, "FLAMBEAU_DISABLED_PLUGINS": "flambeau-remote-process", **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def image():
    return torch.ones(4, 16, 24, 24), torch.ones(16, 16, 3, 3)


def test_it_serves_what_is_large_and_the_cpu_plug_in_the_rest(image):
    assert servers(lambda: F.conv2d(*image)) == {"conv": {"mkldnn": 1}}
    assert servers(lambda: F.conv2d(image[0].double(), image[1].double())) == {"conv": {"cpu": 1}}
    small = torch.ones(1, 16, 4, 4), image[1]
    assert servers(lambda: F.conv2d(*small)) == {"conv": {"cpu": 1}}
    assert "mkldnn" in str(torch.explain("conv2d", *image))
    assert "declines: faster without: little work" in str(torch.explain("conv2d", *small))
    assert "has no kernel for float64" in str(torch.explain("conv2d", *(each.double() for each in image)))


def test_it_can_be_preferred_disabled_and_put_behind(image):
    with torch.backends.prefer("cpu"):
        assert servers(lambda: F.conv2d(*image)) == {"conv": {"cpu": 1}}
    with torch.backends.disable("mkldnn", "conv"):
        assert servers(lambda: F.conv2d(*image)) == {"conv": {"cpu": 1}}
    with torch.backends.prefer("cpu"), torch.backends.prefer("mkldnn"):
        assert servers(lambda: F.conv2d(*image)) == {"conv": {"mkldnn": 1}}


def test_operations_are_made_once_and_their_number_stays_bounded(always):
    capacity = cache.statistics().capacity
    try:
        cache.set_capacity(5)
        for size in range(1, 21):
            torch.ones(size, 8).mm(torch.ones(8, 3))
            assert cache.statistics().operations == min(size, 5)
        assert cache.statistics()[:4] == (5, 5, 0, 20)
        for size in (20, 16, 20):
            torch.ones(size, 8).mm(torch.ones(8, 3))
        torch.ones(21, 8).mm(torch.ones(8, 3))  # takes the place of the one that was used longest ago: 17
        torch.ones(16, 8).mm(torch.ones(8, 3))
        assert cache.statistics()[:4] == (5, 5, 4, 21)
        torch.ones(17, 8).mm(torch.ones(8, 3))
        assert cache.statistics()[:4] == (5, 5, 4, 22)
        cache.set_capacity(0)
        assert cache.statistics().operations == 0
        assert torch.ones(2, 8).mm(torch.ones(8, 3)).tolist() == [[8.0] * 3] * 2
    finally:
        cache.set_capacity(capacity)
    with pytest.raises(ValueError, match="A capacity of 0 or more operations is expected, got -1"):
        cache.set_capacity(-1)


def test_operations_differ_in_all_that_matters(always):
    x, weight = torch.ones(1, 4, 9, 9), torch.ones(4, 4, 3, 3)
    F.conv2d(x, weight)
    for call in (
        lambda: F.conv2d(x, weight, stride=2),
        lambda: F.conv2d(x, weight, padding=1),
        lambda: F.conv2d(x, weight, dilation=2),
        lambda: F.conv2d(x, weight[:, :2].contiguous(), groups=2),
        lambda: F.conv2d(x, weight, torch.ones(4)),
        lambda: F.conv2d(x.transpose(2, 3), weight),
        lambda: F.conv2d(x, weight.transpose(0, 1)),
        lambda: F.conv2d(torch.ones(2, 4, 9, 9), weight),
    ):
        before = cache.statistics().misses
        call()
        call()
        assert cache.statistics().misses == before + 1


@pytest.fixture
def halves():
    """What a layer multiplies, large and in bfloat16: there weights are kept in oneDNN's layout."""
    if torch.bfloat16 not in pytest.importorskip("flambeau_mkldnn.family").DTYPES:
        pytest.skip("this machine has no bfloat16")
    generator = np.random.default_rng(2)
    return [torch.tensor(generator.integers(-3, 4, shape).astype("f")).bfloat16() for shape in ((8, 1024), (512, 1024))]


def product(x, weight):
    """Whole numbers, whose sums float32 holds exactly, rounded once."""
    return torch.tensor(x.float().numpy() @ weight.float().numpy().T).bfloat16()


def test_weights_that_do_not_change_are_kept_in_the_layout_of_the_operation(halves):
    x, weight = halves
    found = [F.linear(x, weight) for _ in range(4)]
    kept = cache.statistics()
    assert (kept.kept, kept.kept_hits) == (1, 2) and kept.kept_bytes >= weight.numel() * 2
    assert all(torch.equal(each, product(x, weight)) for each in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.mul_(2),
        lambda weight: weight[:8].fill_(3.0),
        lambda weight: weight.data.add_(1),
        lambda weight: weight.view(-1).copy_(torch.arange(weight.numel()).remainder(5).bfloat16()),
        lambda weight: torch.mul(weight, 5, out=weight),
        lambda weight: weight.view(torch.int16).numpy().__setitem__((511, 1023), 0x40E0),
        lambda weight: setattr(weight, "data", weight * 3),
    ],
    ids=["method", "slice", "data", "view", "out", "numpy", "set_data"],
)
def test_weights_that_are_written_are_seen(halves, change):
    x, weight = halves
    for _ in range(3):
        F.linear(x, weight)
    assert cache.statistics().kept == 1
    before = product(x, weight)
    change(weight)
    wanted = product(x, weight)
    assert not torch.equal(wanted, before)
    for _ in range(3):
        assert torch.equal(F.linear(x, weight), wanted)


def test_weights_that_are_trained_are_seen():
    x = torch.tensor(np.random.default_rng(0).standard_normal((4, 16, 24, 24)).astype("f"))

    def train(provider):
        torch.manual_seed(0)
        layer = torch.nn.Conv2d(16, 16, 3)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        with torch.backends.prefer(provider):
            for _ in range(5):
                optimizer.zero_grad()
                layer(x).pow(2).mean().backward()
                optimizer.step()
        return layer.weight.detach()

    assert (train("mkldnn") - train("cpu")).abs().max() < 1e-5


def test_memory_of_weights_that_died_is_free_again(halves):
    x = halves[0]
    for number in range(5):
        weight = torch.full((512, 1024), number + 1.0).bfloat16()
        for _ in range(3):
            F.linear(x, weight)
        assert cache.statistics().kept == 1
    del weight
    assert (cache.statistics().kept, cache.statistics().kept_bytes) == (0, 0)


def test_everything_kept_can_be_let_go(halves):
    for _ in range(3):
        F.linear(*halves)
    assert cache.statistics().kept == 1
    cache.clear()
    assert cache.statistics() == (0, cache.statistics().capacity, 0, 0, 0, 0, 0)


def test_threads_follow_set_num_threads(image):
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            found.append(F.conv2d(*image))
    finally:
        torch.set_num_threads(before)
    assert cache.statistics()[:4] == (2, cache.statistics().capacity, 1, 2)
    assert all(torch.equal(each, found[0]) for each in found)


def test_one_operation_runs_in_several_threads_at_once(always):
    generator = np.random.default_rng(1)
    pairs = [[generator.standard_normal(shape).astype("f") for shape in ((40, 30), (30, 20))] for _ in range(4)]
    wrong = []

    def work(a, b):
        x, y, wanted = torch.tensor(a), torch.tensor(b), a.astype(float) @ b.astype(float)
        for _ in range(100):
            if np.abs(x.mm(y).numpy() - wanted).max() > 1e-4:
                wrong.append(wanted)

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and cache.statistics().operations == 1


def test_a_forked_child_computes():
    printed = script(
        """
        import os
        import flambeau as torch, flambeau.nn.functional as F
        x, weight = torch.ones(4, 16, 24, 24), torch.ones(16, 16, 3, 3)
        wanted = F.conv2d(x, weight)
        child = os.fork()
        if not child:
            os._exit(0 if torch.equal(F.conv2d(x, weight), wanted) and torch.get_num_threads() == 1 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), torch.equal(F.conv2d(x, weight), wanted))
        """,
        OMP_NUM_THREADS="2",
    )
    assert printed == ["0", "True"]


def test_it_is_found_where_it_is_installed_and_missed_where_not():
    code = """
        import flambeau as torch, flambeau.nn.functional as F
        with torch.backends.trace() as calls:
            y = F.conv2d(torch.ones(4, 16, 24, 24), torch.ones(16, 16, 3, 3))
        print(*calls.providers()["conv"], y.max().item(), y.min().item())
        """
    assert script(code) == ["mkldnn", "144.0", "144.0"]
    assert script(code, FLAMBEAU_DISABLED_PLUGINS="flambeau-mkldnn") == ["cpu", "144.0", "144.0"]


def test_calls_leave_no_memory_behind(image, halves):
    from flambeau_cpu._kernels import lib

    for _ in range(3):
        F.conv2d(*image), F.linear(*halves)
    gc.collect()
    live = lib.fb_live_bytes()
    for _ in range(50):
        F.conv2d(*image), F.linear(*halves)
    assert lib.fb_live_bytes() == live
