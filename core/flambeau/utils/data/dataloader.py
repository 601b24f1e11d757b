"""DataLoader: batches of a dataset, made here or in worker processes."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from ...errors import ArgumentError, ArgumentTypeError
from ...generator import Generator
from ...ops.random import randint
from .collate import can_pin, default_collate, default_convert, pinned
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .worker import Failure, Pool

__all__ = ["DataLoader"]

#: A worker's answer when its iterable dataset has no more samples.
_EXHAUSTED: Final = "flambeau: exhausted"


class DataLoader:
    """Batches of a dataset; iterate over it once for each epoch.

    Args:
        dataset: has ``__getitem__`` and ``__len__``, or is an :class:`IterableDataset`.
        batch_size: samples in a batch; None to get samples as they are.
        shuffle: take samples in another random order in each epoch.
        sampler: the order of samples, instead of ``shuffle``.
        batch_sampler: lists of samples for each batch, instead of all of the above.
        num_workers: processes that make batches ahead of time; 0 to make them here.
        collate_fn: makes a batch of a list of samples.
        pin_memory: put batches into pinned memory, if a device offers it.
        drop_last: leave out a last batch that would be smaller.
        timeout: seconds to wait for a batch of a worker; 0 for ever.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: of the worker processes; fork where the system has it.
        generator: of the order and of the workers' seeds.
        prefetch_factor: batches that each worker makes ahead; 2 if not given.
        persistent_workers: keep the workers from epoch to epoch.
        progress: wraps the batches, called as ``progress(batches, total=count)``: ``tqdm.tqdm`` or
            ``rich.progress.track`` fit as they are.

    Workers seed flambeau's, Python's and NumPy's generators with a number of their own in each epoch.
    Batches come in the sampler's order whatever worker made them.  A worker's exception is raised here with
    its traceback; a worker that dies raises RuntimeError, and Ctrl-C ends all workers.

    Raises:
        ValueError: arguments contradict each other.

    >>> import flambeau
    >>> data = flambeau.utils.data.TensorDataset(flambeau.arange(5))
    >>> [batch for (batch,) in flambeau.utils.data.DataLoader(data, batch_size=2)]
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        progress: Callable[..., Iterable[Any]] | None = None,
    ) -> None:
        if num_workers < 0:
            raise ArgumentError(
                f"num_workers option should be non-negative, got {num_workers}; use 0 to disable workers."
            )
        if timeout < 0:
            raise ArgumentError(f"timeout option should be non-negative, got {timeout}.")
        if num_workers == 0 and prefetch_factor is not None:
            raise ArgumentError(
                "prefetch_factor option could only be specified in multiprocessing: set num_workers > 0."
            )
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ArgumentError(f"prefetch_factor option should be positive, got {prefetch_factor}.")
        if persistent_workers and num_workers == 0:
            raise ArgumentError("persistent_workers option needs num_workers > 0")
        if progress is not None and not callable(progress):
            raise ArgumentTypeError(f"progress is called as progress(batches, total=count), got {progress!r:.60}.")
        self.dataset, self.num_workers, self.drop_last, self.timeout = dataset, num_workers, drop_last, timeout
        self.worker_init_fn, self.generator, self.progress = worker_init_fn, generator, progress
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor, self.persistent_workers = prefetch_factor or 2, persistent_workers
        self.pin_memory = pin_memory
        if pin_memory and not can_pin():
            warnings.warn(
                "pin_memory=True: no loaded device has pinned memory, so batches are not pinned.", stacklevel=2
            )
            self.pin_memory = False
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError(
                "DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler options.\n"
                "An iterable dataset has an order of its own."
            )
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ArgumentError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, self.drop_last = None, False
        elif batch_size is None and drop_last:
            raise ArgumentError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler if sampler is not None else (), batch_size, drop_last)
        self.batch_size, self.sampler, self.batch_sampler = batch_size, sampler, batch_sampler
        batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._pool: Pool | None = None

    def __len__(self) -> int:
        if self.iterable:
            samples = len(self.dataset)
            if self.batch_size is None:
                return samples
            return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)
        return len(cast(Any, self.sampler if self.batch_sampler is None else self.batch_sampler))

    def __iter__(self) -> Iterator[Any]:
        # Drawn without workers too, so that their number does not change what a sampler draws.
        seed = int(cast(Any, randint(0, 2**62, (), generator=self.generator)).item())
        batches = _here(self) if self.num_workers == 0 else _elsewhere(self, seed)
        if self.pin_memory:
            batches = map(pinned, batches)
        if self.progress is None:
            return batches
        try:
            total = len(self)
        except TypeError:
            total = None
        return iter(self.progress(batches, total=total))

    def tasks(self) -> Iterator[Any]:
        """What to fetch for each batch: a list of numbers, a number, or None from an iterable dataset."""
        if self.iterable:
            while True:
                yield None
        yield from cast(Any, self.sampler if self.batch_sampler is None else self.batch_sampler)

    def pool(self) -> Pool:
        """The workers: those that persist, or new ones."""
        if self._pool is None or not self._pool.open:
            make_fetch = functools.partial(
                _make_fetch, self.dataset, self.iterable, self.batch_size, self.batch_sampler is not None,
                self.drop_last, self.collate_fn,
            )  # fmt: skip
            pool = Pool(
                self.num_workers, make_fetch, self.dataset, self.worker_init_fn, self.timeout,
                self.multiprocessing_context or _start_method(),
            )  # fmt: skip
            if not self.persistent_workers:
                return pool
            self._pool = pool
        return self._pool

    def __del__(self) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool.close()


def _start_method() -> str | None:
    return "fork" if hasattr(os, "fork") else None


def _make_fetch(
    dataset: Any, iterable: bool, size: int | None, batched: bool, drop_last: bool, collate: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """The function from a task to its batch."""
    if iterable:
        return functools.partial(_next_batch, iter(dataset), size, drop_last, collate)
    if not batched:
        return lambda index: collate(dataset[index])
    several = getattr(dataset, "__getitems__", None)
    if several is not None:
        return lambda indices: collate(several(indices))
    return lambda indices: collate([dataset[index] for index in indices])


def _next_batch(
    samples: Iterator[Any], size: int | None, drop_last: bool, collate: Callable[[Any], Any], _: None
) -> Any:
    batch = [each for _, each in zip(range(size or 1), samples, strict=False)]
    if not batch or (drop_last and size is not None and len(batch) < size):
        return _EXHAUSTED
    return collate(batch if size is not None else batch[0])


def _here(loader: DataLoader) -> Iterator[Any]:
    """Batches made in this process."""
    fetch = _make_fetch(
        loader.dataset, loader.iterable, loader.batch_size, loader.batch_sampler is not None, loader.drop_last,
        loader.collate_fn,
    )  # fmt: skip
    for task in loader.tasks():
        batch = fetch(task)
        if isinstance(batch, str) and batch is _EXHAUSTED:
            return
        yield batch


def _elsewhere(loader: DataLoader, seed: int) -> Iterator[Any]:
    """Batches made by workers, in order."""
    pool = loader.pool()
    finished = False
    try:
        pool.begin(seed)
        yield from _ordered(loader, pool)
        finished = True
    finally:
        if not loader.persistent_workers or not finished:
            pool.close()


def _ordered(loader: DataLoader, pool: Pool) -> Iterator[Any]:
    tasks = enumerate(loader.tasks())
    owner: dict[int, int] = {}  # task to worker, in the order of the tasks
    arrived: dict[int, Any] = {}
    working = set(range(loader.num_workers))

    def assign(worker: int) -> None:
        if worker in working:
            for number, argument in tasks:
                pool.send(worker, number, argument)
                owner[number] = worker
                return

    for _ in range(loader.prefetch_factor):
        for worker in range(loader.num_workers):
            assign(worker)
    while owner:
        due = next(iter(owner))
        while due not in arrived:
            number, answer = pool.receive()
            arrived[number] = answer
        answer, worker = arrived.pop(due), owner.pop(due)
        if isinstance(answer, Failure):
            answer.reraise()
        if isinstance(answer, str) and answer == _EXHAUSTED:
            working.discard(worker)
            continue
        assign(worker)
        yield answer
