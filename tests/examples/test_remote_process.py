"""A device whose kernels run in another process: memory of its own, work that goes on behind Python's back, and an end."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau import accelerator, backends

plugin = pytest.importorskip("flambeau_remote_process.plugin")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def remote():
    with backends.register(*plugin.flambeau_backends()):
        yield


@pytest.fixture(autouse=True)
def nothing_left():
    """Each test leaves no error behind for the next one to find."""
    yield
    accelerator.synchronize("remote")


def there(values):
    return torch.as_tensor(values).to("remote")


def slow(x, times=40):
    """Work that takes far longer than calling for it."""
    for _ in range(times):
        x = (x @ x) * 1e-3
    return x


# ---------------------------------------------------------------- memory


def test_the_host_holds_no_memory():
    x = torch.arange(6.0).reshape(2, 3).to("remote")
    assert x.device == torch.device("remote:0") and x.t()[1].tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="The memory of the device 'remote:0' has no addresses"):
        x.data_ptr()
    with pytest.raises(TypeError, match="can't convert remote:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"There is one remote device, got remote:1\.\nWrite 'remote'\."):
        x.to("remote:1")


def test_memory_read_as_another_dtype():
    x = there([0.0, 1.0, 2.0])
    bits = x[1:].view(torch.int32)
    bits[1:].fill_(0)
    assert bits.tolist() == [0x3F800000, 0] and x.tolist() == [0, 1, 0]


def test_memory_is_given_back():
    allocated = plugin.LINK.ask
    x = torch.ones(1000, device="remote")
    gc.collect()
    before = allocated("allocated")
    assert before >= 4000
    for _ in range(10_000):
        y = x + 1
    del y
    gc.collect()
    assert allocated("allocated") == before
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps freed memory for a while
        with open(f"/proc/{plugin.LINK.process.pid}/statm") as file:
            assert int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") < 300 << 20
    del x
    gc.collect()
    assert allocated("allocated") == before - 4000


def test_too_much_memory_is_refused():
    x = torch.empty(2**50, device="remote")
    with pytest.raises(MemoryError, match=r"could not allocate 4,503,599,627,370,496 bytes"):
        x[0].item()


# ---------------------------------------------------------------- streams and events


def test_calls_return_before_the_work_is_done():
    x = torch.rand(500, 500, device="remote")
    accelerator.synchronize("remote")
    result, event = slow(x, 100), torch.Event("remote")
    event.record()
    assert not event.query() and not accelerator.current_stream("remote").query()
    event.synchronize()
    assert event.query() and accelerator.current_stream("remote").query()
    np.testing.assert_allclose(result.cpu().numpy(), slow(x.cpu(), 100).numpy(), rtol=1e-3)


def test_streams_wait_for_each_other():
    x = torch.rand(500, 500, device="remote")
    accelerator.synchronize("remote")
    first, second = torch.Stream("remote"), torch.Stream("remote")
    with first:
        made = slow(x, 100)
    with second:
        early = made + 1
        with pytest.raises(RuntimeError) as caught:
            second.synchronize()
        assert str(caught.value) == (
            "A tensor was used before the stream that computes it had come so far.\n"
            "Let the using stream wait: stream.wait_stream(other)"
        )
        second.wait_stream(first)
        late = made + 1
        assert late.shape == (500, 500) and torch.equal(late.cpu(), slow(x, 100).cpu() + 1)
    assert accelerator.current_stream("remote").handle.number == 0
    with pytest.raises(RuntimeError, match="before the stream that computes it"):
        early.cpu()


def test_a_stream_that_is_let_go_is_waited_for():
    x, index = torch.rand(400, 400, device="remote"), there([400])
    accelerator.synchronize("remote")
    with torch.Stream("remote"):
        slow(x)
        x.index_add_(0, index, x[:1])
    gc.collect()
    with pytest.raises(IndexError, match="The kernel of 'index_add_' found it"):
        accelerator.synchronize("remote")


def test_streams_of_threads():
    found = {}

    def work(name):
        with torch.Stream("remote"):
            found[name] = [(torch.full((50,), float(i), device="remote") * 2).sum().item() for i in range(50)]

    threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(found[name] == [i * 100.0 for i in range(50)] for name in range(4))


def test_events_measure_time():
    start, end = (torch.Event("remote", enable_timing=True) for _ in range(2))
    x = torch.rand(500, 500, device="remote")
    accelerator.synchronize("remote")
    begun = time.perf_counter()
    start.record()
    slow(x)
    end.record()
    end.synchronize()
    whole = (time.perf_counter() - begun) * 1e3
    assert 0 < start.elapsed_time(end) <= whole and end.elapsed_time(start) < 0


def test_profiling_says_when_kernels_ran():
    x = torch.ones(4, device="remote")
    begun = time.monotonic() * 1e6
    with accelerator.profile("remote") as kernels:
        x.exp().sum()
    assert [name for name, _, _ in kernels] == ["exp", "sum"]
    assert all(begun <= start and 0 < duration < 1e6 for _, start, duration in kernels)
    assert kernels[0][1] + kernels[0][2] <= kernels[1][1]


def test_random_numbers_follow_the_seed():
    torch.manual_seed(3)
    first, second = (torch.rand(5, device="remote").tolist() for _ in range(2))
    torch.manual_seed(3)
    assert torch.rand(5, device="remote").tolist() == first != second


def test_other_kernels_can_be_hosted():
    output = printed(
        """
        hooks = torch.backends.report()[-1].backends[0].hooks
        before = hooks["get_num_threads"]()
        hooks["set_num_threads"](before + 1)
        print(hooks["get_num_threads"]() - before, torch.get_num_threads() - before)
        print(torch.nn.functional.gelu(torch.zeros(1, device="remote")))
        x = torch.arange(5).flip(0).to("remote")
        x[x] = torch.arange(5, device="remote") * 10  # kernels can tell that the arguments share memory
        print(x.tolist())
        """,
        FLAMBEAU_REMOTE_HOSTS="cpu", OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert output == "1 0\ntensor([0.], device='remote:0')\n[40, 30, 20, 10, 0]\n"


# ---------------------------------------------------------------- errors


def test_a_kernels_error_comes_when_one_waits():
    x, index = torch.arange(4.0).to("remote"), there([1, 9])
    for wait in (
        lambda: accelerator.synchronize("remote"),
        lambda: accelerator.current_stream("remote").synchronize(),
        lambda: x.tolist(),
        lambda: torch.masked_select(x, x > 1),
        lambda: _recorded().synchronize(),
    ):
        failed = x.index_select(0, index)  # returns at once
        with pytest.raises(IndexError, match=r"(?s)9.*\nThe kernel of 'index_select' found it\.$"):
            wait()
        accelerator.synchronize("remote")  # it was told
        later = failed + 1
        with pytest.raises(IndexError, match="The kernel of 'index_select' found it"):
            later.tolist()  # what depends on it has no value


def _recorded():
    event = torch.Event("remote")
    event.record()
    return event


def test_what_a_failed_kernel_would_have_written_stays():
    x, index = torch.zeros(3, device="remote"), there([0, 7])
    x.index_add_(0, index, torch.ones(2, device="remote"))
    with pytest.raises(IndexError, match="The kernel of 'index_add_' found it"):
        accelerator.synchronize("remote")
    assert x.tolist() == [0, 0, 0]


def test_other_errors_name_the_kernel_and_its_place():
    from flambeau_remote_process.messages import failure

    try:
        np.zeros(3).reshape(2)
    except ValueError as error:
        name, text = failure("view", error).args
    assert name == "DeviceError"
    assert re.fullmatch(
        r"The kernel of 'view' raised ValueError: cannot reshape .*  \[.*test_remote_process.py:\d+\]", text
    )


def test_an_error_that_the_backend_module_does_not_name_is_told_too():
    from flambeau_remote_process.messages import failure

    try:
        raise torch.FatalError("gave up")
    except torch.FatalError as error:
        name, text = failure("view", error).args
    assert name == "DeviceError" and text.startswith("The kernel of 'view' raised FatalError: gave up")


def test_an_answer_that_cannot_be_sent_is_an_error_and_no_hang():
    with pytest.raises(RuntimeError, match="no_such_hook"):
        plugin.LINK.ask("hook", "no_such_hook", ())
    assert there([1.0, 2.0]).sum().item() == 3


@contextmanager
def interrupted(seconds):
    """What Ctrl-C does, after a time."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_wait():
    x = torch.rand(700, 700, device="remote")
    accelerator.synchronize("remote")
    result = slow(x)
    with interrupted(0.01):
        result.tolist()  # a large answer, which nobody waits for now
    y = torch.zeros(3, device="remote")
    for _ in range(3000):  # the worker reads on all the same
        y += 1
    assert y.tolist() == [3000] * 3  # and not the answer to the earlier question


def test_an_interrupted_call():
    x = torch.rand(300, 300, device="remote")
    count = torch.zeros(1, device="remote")
    begun = 0
    with interrupted(0.3):
        while True:
            begun += 1
            count += 1
            x = (x @ x) * 1e-3
    assert begun - 1 <= count.item() <= begun


# ---------------------------------------------------------------- life and death


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "FLAMBEAU_DISABLED_PLUGINS": "", **changes}


def python(code: str, **changes: str):
    return subprocess.Popen(
        [sys.executable, "-c", "import os, signal\nimport flambeau as torch\n" + textwrap.dedent(code)],
        env=environment(**changes), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def printed(code: str, **changes: str) -> str:
    process = python(code, **changes)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and not errors, errors
    return output


def test_a_worker_that_dies_is_reported():
    output = printed("""
        from flambeau_remote_process.link import LINK
        x = torch.ones(2, device="remote")
        assert x.tolist() == [1, 1]
        os.kill(LINK.process.pid, signal.SIGKILL)
        for _ in range(2):
            try:
                print((x + 1).tolist())
            except RuntimeError as error:
                print(str(error).replace(str(LINK.process.pid), "PID"))
    """)
    assert output == 2 * (
        "The worker process PID of the device 'remote' was ended by SIGKILL: the tensors on the device are lost.\n"
        "Start the program again; flambeau.save and .cpu() keep what must not be lost.\n"
    )


def test_a_forked_process_is_told():
    output = printed("""
        x = torch.ones(2, device="remote")
        child = os.fork()
        if not child:
            try:
                print((x + 1).tolist(), flush=True)
            except RuntimeError as error:
                print(str(error).replace(str(os.getppid()), "PARENT"), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print((x + 1).tolist())
    """)
    assert output == (
        "The device 'remote' was in use before this process was forked, and its worker serves process PARENT alone.\n"
        "Fork before the device is used, or start processes with the method 'spawn'.\n[2.0, 2.0]\n"
    )


def test_a_process_forked_before_has_a_worker_of_its_own():
    output = printed("""
        child = os.fork()
        x = torch.ones(2, device="remote") * (1 if child else 2)
        print(x.tolist(), flush=True)
        os.waitpid(child, 0) if child else os._exit(0)
    """)
    assert sorted(re.findall(r"\[.*?\]", output)) == ["[1.0, 1.0]", "[2.0, 2.0]"]


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_worker_ends_with_its_parent(end):
    """Also when a kernel runs, and when a forked process has outlived the parent."""
    process = python(f"""
        from flambeau_remote_process.link import LINK
        x = torch.rand(2000, 2000, device="remote")
        for _ in range(20):
            x = x @ x
        if not os.fork():
            os.close(1), os.close(2)
            import time
            time.sleep(20)
            os._exit(0)
        LINK.ask("allocated")
        print(LINK.process.pid, flush=True)
        {end}
    """)
    worker = int(process.stdout.readline())
    process.wait(20)
    limit = time.monotonic() + 5
    while Path(f"/proc/{worker}").exists() and _state(worker) != "Z" and time.monotonic() < limit:
        time.sleep(0.02)
    assert not Path(f"/proc/{worker}").exists() or _state(worker) == "Z"


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "Z"


def test_an_unknown_host(monkeypatch):
    from flambeau_remote_process import hosted

    monkeypatch.setattr(hosted, "HOSTED", "abacus")
    with pytest.raises(RuntimeError) as caught:
        hosted.hosted_backend()
    assert str(caught.value) == (
        "The device 'remote' runs the kernels of the device 'abacus', which no installed plug-in brings.\n"
        "Install one, or name another device in FLAMBEAU_REMOTE_HOSTS."
    )


# ---------------------------------------------------------------- proof


@pytest.mark.parametrize("hosted", ["numpy", "cpu"])
def test_it_is_proven_by_the_kit(tmp_path, hosted):
    """A part of what `make conformance` proves, with the kernels of either backend."""
    operators = (
        "device,add,div,where,sum,argmax,mm,linear,conv,sort,index_select,index_add_,cat,normal_,drop,copy_,nonzero"
    )
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "flambeau.conformance",
            "--device=remote", f"--operators={operators}", "-k", "float32 or int64 or bool", "--json=found.json",
        ],
        cwd=tmp_path, capture_output=True, text=True, env=environment(FLAMBEAU_REMOTE_HOSTS=hosted),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["failures"] == [] and found["operators"]["index_add_"]["status"] == "kernel"
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 450


def test_it_reads_digits(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "digits.py"), "--device", "remote", "--epochs", "3", "--out", str(tmp_path)],
        capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"test accuracy (\S+) %$", done.stdout)[1]) >= 96
    assert re.findall(r"(\w+) served \d+ operators", done.stdout) == ["remote", "composite"]


def test_the_same_kernels_give_the_same_bits():
    def trained(device):
        torch.manual_seed(1)
        x = torch.rand(20, 4, device=device)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), (x.sum(1) > 2).long()).backward()
            optimizer.step()
        return [each.detach().cpu().numpy().tobytes() for each in model.parameters()]

    with backends.trace() as calls:
        found = trained("remote")
    assert found == trained("numpy")
    assert {each.provider for each in calls.calls if each.device == "remote:0"} == {"remote", None}
