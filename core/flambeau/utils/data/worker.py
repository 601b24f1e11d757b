"""Worker processes that make batches.

A worker is forked, gets tasks through one pipe and answers through another.  Tensors
travel as their elements, so a small view of a large tensor costs little.  A worker
leaves when its parent is gone, and ignores Ctrl-C: shutting down is the parent's task.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Final, cast

import numpy as np

from ...errors import FlambeauError
from ...geometry import contiguous
from ...ops.conversion import host_array
from ...random import manual_seed
from ...settings import set_num_threads
from ...tensor import Tensor, make

__all__ = ["Failure", "Pool", "WorkerError", "WorkerInfo", "get_worker_info"]

#: Seconds between looks at whether the parent still lives; those that a worker takes to finish a batch
#: when it shall leave; and those that the parent waits for it.
_WATCH: Final = 2.0
_GRACE: Final = 1.0
_PATIENCE: Final = 3.0


class WorkerError(FlambeauError, RuntimeError):
    """A worker process died or did not answer in time."""


class WorkerInfo:
    """What a worker knows of itself: ``id``, ``num_workers``, ``seed`` and its copy of the ``dataset``."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


class _Current:
    """The worker that this process is, if it is one."""

    info: WorkerInfo | None = None


_current: Final = _Current()


def get_worker_info() -> WorkerInfo | None:
    """In a worker process what it is, elsewhere None."""
    return _current.info


# ---------------------------------------------------------------- tensors between processes


class _Packer(pickle.Pickler):
    """Writes host tensors as their elements alone."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor and obj.key.memory.host:
            contents: Any = np.ascontiguousarray(host_array(obj)).reshape(-1).view(np.uint8)
            return _unpack, (pickle.PickleBuffer(contents), obj.key, tuple(obj.shape), cast(Any, obj).requires_grad)
        return NotImplemented


def _unpack(contents: Any, key: Any, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    array = np.frombuffer(bytearray(contents) if isinstance(contents, bytes) else contents, key.dtype.numpy)
    result: Any = make(key, contiguous(shape), key.memory.from_numpy(array, key.device, key.dtype))
    return cast(Tensor, result.requires_grad_() if requires_grad else result)


def _send(pipe: Connection, message: Any) -> None:
    """Send a message, the elements of its tensors behind it without copying them."""
    buffers: list[pickle.PickleBuffer] = []
    structure = io.BytesIO()
    _Packer(structure, 5, buffer_callback=buffers.append).dump(message)
    pipe.send_bytes(pickle.dumps((len(buffers), structure.getvalue())))
    for each in buffers:
        pipe.send_bytes(each.raw())


def _receive(pipe: Connection) -> Any:
    count, structure = pickle.loads(pipe.recv_bytes())
    return pickle.loads(structure, buffers=[bytearray(pipe.recv_bytes()) for _ in range(count)])


class _Shown(str):
    """A text that a KeyError shows as it is."""

    __repr__ = str.__str__


class Failure:
    """An exception in a worker, to be raised in the parent."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind = type(error)
        self.text = f"Caught {self.kind.__name__} {where}.\nOriginal {traceback.format_exc()}"

    def __reduce__(self) -> Any:
        try:  # a class that the parent cannot find travels as RuntimeError
            pickle.dumps(self.kind)
            kind = self.kind
        except Exception:
            kind = RuntimeError
        return _failure, (kind, self.text)

    def reraise(self) -> None:
        """Raise an exception of the same type with the worker's traceback in its message."""
        try:
            error: BaseException = self.kind(_Shown(self.text))
        except Exception:
            error = RuntimeError(self.text)
        raise error


def _failure(kind: type[BaseException], text: str) -> Failure:
    failed = Failure.__new__(Failure)
    failed.kind, failed.text = kind, text
    return failed


# ---------------------------------------------------------------- in the worker


class _Tasks:
    """Takes tasks from the pipe as they come, so that the parent never waits to send one."""

    def __init__(self, pipe: Connection, parent: int) -> None:
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.pipe, self.parent = pipe, parent
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                if self.pipe.poll(_WATCH):
                    task = pickle.loads(self.pipe.recv_bytes())
                    if task is None:
                        break
                    self.waiting.put(task)
                elif os.getppid() != self.parent:
                    break
        except (EOFError, OSError):
            pass
        self.waiting.put(None)
        # The worker may be in the middle of a batch, or wait to answer a parent that is gone.
        time.sleep(_GRACE)
        os._exit(0)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.waiting.get, None)


def _work(
    number: int, count: int, make_fetch: Callable[[], Callable[[Any], Any]], dataset: Any,
    init: Callable[[int], None] | None, tasks: Connection, answers: Connection, foreign: list[Connection], parent: int,
) -> None:  # fmt: skip
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in foreign:
        each.close()
    set_num_threads(1)
    fetch: Callable[[Any], Any] | None = None
    failure: Failure | None = None
    for epoch, task, argument in _Tasks(tasks, parent):
        answer: Any
        try:
            if task is None:  # a new epoch begins; the argument is its seed
                seed = argument + number
                _seed(seed)
                _current.info = WorkerInfo(number, count, seed, dataset)
                failure = None
                try:
                    if init is not None:
                        init(number)
                    fetch = make_fetch()
                except Exception as error:
                    failure = Failure(error, f"in DataLoader worker process {number}")
                continue
            assert fetch is not None or failure is not None
            answer = failure if failure is not None or fetch is None else fetch(argument)
        except KeyboardInterrupt:
            break
        except Exception as error:
            answer = Failure(error, f"in DataLoader worker process {number}")
        try:
            _send(answers, (epoch, task, answer))
        except (BrokenPipeError, ConnectionError):
            break
        except Exception as error:
            _send(answers, (epoch, task, Failure(error, f"sending a batch from DataLoader worker process {number}")))
        del answer


def _seed(seed: int) -> None:
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(seed % 2**32)


# ---------------------------------------------------------------- in the parent


class Pool:
    """Worker processes with their pipes.

    Args:
        workers: how many.
        make_fetch: makes, in the worker at the start of an epoch, the function from a task to its answer.
        dataset: shown by :func:`get_worker_info`.
        init: called in each worker with its number.
        timeout: seconds to wait for an answer; 0 for ever.
        context: of multiprocessing.
    """

    def __init__(
        self, workers: int, make_fetch: Callable[[], Callable[[Any], Any]], dataset: Any,
        init: Callable[[int], None] | None, timeout: float, context: Any,
    ) -> None:  # fmt: skip
        self.timeout = timeout
        self.epoch = 0
        self.processes: list[Any] = []
        self.tasks: list[Connection] = []
        self.answers: list[Connection] = []
        self.open = True
        context = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        forks = context.get_start_method() == "fork"
        for number in range(workers):
            task_end, task_start = context.Pipe(duplex=False)
            answer_end, answer_start = context.Pipe(duplex=False)
            self.tasks.append(task_start)
            self.answers.append(answer_end)
            # A forked worker inherits the parent's ends; while it holds them, nobody notices that the parent is gone.
            foreign = [*self.tasks, *self.answers] if forks else []
            process = context.Process(
                target=_work, daemon=True, name=f"DataLoader worker {number}",
                args=(number, workers, make_fetch, dataset, init, task_end, answer_start, foreign, os.getpid()),
            )  # fmt: skip
            process.start()
            task_end.close()
            answer_start.close()
            self.processes.append(process)

    def begin(self, seed: int) -> None:
        """Start an epoch; answers to tasks of earlier ones are dropped."""
        self.epoch += 1
        for number in range(len(self.processes)):
            self.send(number, None, seed)

    def send(self, worker: int, task: int | None, argument: Any) -> None:
        """Give a worker a task."""
        try:
            self.tasks[worker].send_bytes(pickle.dumps((self.epoch, task, argument)))
        except (BrokenPipeError, ConnectionError):
            self._died(worker)

    def receive(self) -> tuple[int, Any]:
        """The next answer of any worker, with its task's number.

        Raises:
            RuntimeError: a worker died, or none answered in time.
        """
        while True:
            ready = wait(self.answers, self.timeout or None)
            if not ready:
                raise WorkerError(
                    f"DataLoader timed out after {self.timeout} seconds.\n"
                    "Raise timeout, or look for what blocks in the dataset."
                )
            for each in ready:
                pipe = cast(Connection, each)
                try:
                    epoch, task, answer = _receive(pipe)
                except (EOFError, ConnectionError):
                    self._died(self.answers.index(pipe))
                if epoch == self.epoch:
                    return task, answer

    def _died(self, worker: int) -> None:
        process = self.processes[worker]
        process.join(_PATIENCE)
        code = process.exitcode
        how = f"exited unexpectedly with exit code {code}"
        hint = "Look for what ends the process in the dataset or collate_fn."
        if code is not None and code < 0:
            how = f"is killed by signal: {signal.Signals(-code).name}"
            hint = "It may have run out of memory or crashed in native code; try num_workers=0."
        raise WorkerError(f"DataLoader worker {worker} (pid {process.pid}) {how}.\n{hint}")

    def close(self) -> None:
        """End the workers; those that do not leave are stopped."""
        if not self.open:
            return
        self.open = False
        for pipe in self.tasks:
            with contextlib.suppress(OSError):
                pipe.send_bytes(pickle.dumps(None))
        for pipe in (*self.tasks, *self.answers):
            pipe.close()
        for process in self.processes:
            process.join(_PATIENCE)
            if process.is_alive():
                process.terminate()
                process.join(_PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()
