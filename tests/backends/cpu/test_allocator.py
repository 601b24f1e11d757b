"""The caching allocator: what it counts, what it keeps, and what it gives back."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau_cpu._kernels import ffi, lib

MEGABYTE = 1 << 20
#: AddressSanitizer keeps freed memory for a while, and maps more than any limit allows.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
not_sanitized = pytest.mark.skipif(SANITIZED, reason="measures the process' memory")


def script(code):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_counts_follow_what_lives_and_what_is_kept():
    lib.fb_trim(0)
    live = lib.fb_live_bytes()
    assert lib.fb_cached_bytes() == 0
    x = torch.empty(MEGABYTE // 4)
    taken = lib.fb_live_bytes() - live
    assert MEGABYTE <= taken <= MEGABYTE * 9 // 8 + 64
    address = x.data_ptr()
    del x
    assert (lib.fb_live_bytes(), lib.fb_cached_bytes()) == (live, taken)
    again = torch.empty(MEGABYTE // 4)
    assert again.data_ptr() == address and lib.fb_cached_bytes() == 0
    view = again[10:]
    del again
    assert lib.fb_live_bytes() == live + taken, "a view keeps its memory"
    del view
    assert lib.fb_trim(0) == taken and lib.fb_cached_bytes() == 0


def test_small_tensors_are_not_its_business():
    live = lib.fb_live_bytes()
    kept = [torch.empty(512) for _ in range(10)]
    assert lib.fb_live_bytes() == live and all(each.data_ptr() for each in kept)


@pytest.mark.parametrize("size", [2049, 4096, 12345, MEGABYTE - 1, MEGABYTE, MEGABYTE + 1, 5 * MEGABYTE + 3])
def test_blocks_are_aligned_and_waste_at_most_an_eighth(size):
    live = lib.fb_live_bytes()
    block = lib.fb_allocate(size)
    assert int(ffi.cast("intptr_t", block)) % 64 == 0
    assert size <= lib.fb_live_bytes() - live <= (size + 64) * 9 // 8
    ffi.memmove(ffi.cast("char *", block) + size - 1, b"x", 1)
    lib.fb_release(block)


def test_what_cannot_be_had_is_null():
    live = lib.fb_live_bytes()
    for size in (1 << 62, (1 << 62) + 1, (1 << 64) - 1, 1 << 55):
        assert lib.fb_allocate(size) == ffi.NULL
    lib.fb_release(ffi.NULL)
    assert lib.fb_live_bytes() == live


def test_trim_keeps_as_much_as_it_is_told():
    lib.fb_trim(0)
    blocks = [lib.fb_allocate(MEGABYTE << shift) for shift in range(3)]
    for each in blocks:
        lib.fb_release(each)
    assert lib.fb_cached_bytes() > 7 * MEGABYTE
    lib.fb_trim(3 * MEGABYTE)
    assert 0 < lib.fb_cached_bytes() <= 3 * MEGABYTE
    lib.fb_trim(0)
    assert lib.fb_cached_bytes() == 0


@not_sanitized
def test_empty_cache_gives_memory_back_to_the_system():
    before, kept, after = map(int, script(
        """
        import flambeau as torch
        from flambeau.accelerator import function
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        torch.ones(1)
        empty_cache = function(torch.device("cpu"), "empty_cache")
        before = resident()
        x = torch.ones(100 << 20, dtype=torch.uint8)
        del x
        kept = resident()
        empty_cache()
        print(before, kept, resident())
        """
    ))  # fmt: skip
    assert kept - before > 90 * MEGABYTE and after - before < 10 * MEGABYTE


@not_sanitized
def test_the_cache_is_given_up_before_an_allocation_fails():
    cached, left, total, message = script(
        """
        import resource
        import flambeau as torch
        from flambeau_cpu._kernels import lib
        torch.ones(1)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20), -1))
        for megabytes in (100, 150, 200):
            x = torch.ones(megabytes << 20, dtype=torch.uint8)
            del x
        cached = lib.fb_cached_bytes() >> 20
        x = torch.ones(500 << 20, dtype=torch.uint8)
        left, total = lib.fb_cached_bytes(), int(x[::1 << 20].sum())
        try:
            torch.ones(500 << 20, dtype=torch.uint8)
        except MemoryError as error:
            message = str(error).split(";")[0].replace(" ", "_")
        assert int(torch.ones(3).sum()) == 3
        print(cached, left, total, message)
        """
    )
    assert int(cached) >= 450 and int(left) == 0 and int(total) == 500
    assert message == "The_host_could_not_allocate_524,288,000_bytes"


@not_sanitized
def test_kernels_that_run_out_of_memory_say_so_and_go_on():
    """A limit just above what is in use: each call works or raises MemoryError, and nothing ends the process."""
    assert script(
        """
        import resource
        import flambeau as torch
        import flambeau.nn.functional as F
        from flambeau_cpu._kernels import lib
        x, m, k = torch.rand(1 << 20), torch.rand(700, 700), torch.randint(0, 100, (1 << 18,))
        image, weight = torch.rand(2, 16, 64, 64), torch.rand(16, 16, 3, 3)
        calls = [
            lambda: x + x, lambda: x.sort(), lambda: x.cumsum(0), lambda: x[k], lambda: x.topk(9), lambda: k.unique(),
            lambda: torch.zeros(100).index_add_(0, k, x[: 1 << 18]), lambda: x[x > 0.5], lambda: m.t().contiguous(),
            lambda: m @ m, lambda: m.t() @ m.t(), lambda: m.softmax(0), lambda: F.conv2d(image, weight, padding=1),
            lambda: F.max_pool2d(image, 2), lambda: F.batch_norm(image, None, None, training=True), lambda: m.half() @ m.half(),
        ]
        x.sum()  # starts the threads
        lib.fb_trim(0)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        refused = 0
        for megabytes in (0.1, 1, 3, 5, 9, 20, 40):
            resource.setrlimit(resource.RLIMIT_AS, (used + int(megabytes * 2**20), -1))
            for call in calls:
                lib.fb_trim(0)
                try:
                    call()
                except MemoryError as error:
                    refused += 1
                    assert len(str(error).splitlines()) == 2
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        for call in calls:
            call()
        print(refused > 20)
        """
    ) == ["True"]


@pytest.mark.skipif(not SANITIZED, reason="only kernels built with AddressSanitizer notice")
@pytest.mark.parametrize("elements", [100, 10_000])
def test_the_sanitizer_sees_one_element_too_many(elements):
    code = (
        "import flambeau as torch; from flambeau.geometry import contiguous; from flambeau.tensor import make;"
        f"x = torch.zeros({elements}); make(x.key, contiguous(({elements + 1},)), x.memory).sum()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode and "ERROR: AddressSanitizer" in done.stderr and "in sum_f32" in done.stderr


def test_threads_allocate_side_by_side():
    lib.fb_trim(0)
    live, wrong = lib.fb_live_bytes(), []

    def work(seed):
        random = np.random.default_rng(seed)
        held = []
        for step in range(300):
            value = seed * 1000 + step
            held.append((value, torch.empty(int(random.integers(600, 40_000))).fill_(value)))
            if len(held) > 8 or random.random() < 0.3:
                value, x = held.pop(int(random.integers(len(held))))
                if not bool((x == value).all()):
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert lib.fb_live_bytes() == live
    assert lib.fb_trim(0) > 0 and lib.fb_cached_bytes() == 0


def test_a_forked_child_allocates_and_frees():
    assert script(
        """
        import os
        import flambeau as torch
        x = torch.ones(1 << 20)
        child = os.fork()
        if not child:
            y = torch.ones(1 << 20) + x
            del x
            os._exit(int(y[-1]) + 40)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(x.sum()))
        """
    ) == ["42", str(1 << 20)]
