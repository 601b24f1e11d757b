"""Samplers: orders in which a dataset's samples are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from ...errors import ArgumentError, ArgumentTypeError
from ...generator import Generator
from ...ops.creation import as_tensor
from ...ops.random import multinomial, randint, randperm

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An order of sample numbers: a subclass gives ``__iter__`` and usually ``__len__``."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must implement __iter__.")


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ArgumentError(f"{name} should be a positive integer value, but got {name}={value}")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name} should be a boolean value, but got {name}={value}")


class SequentialSampler(Sampler[int]):
    """From the first sample to the last."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples at random.

    Args:
        data_source: the dataset.
        replacement: whether a sample may come twice.
        num_samples: how many to draw; as many as there are if not given.
        generator: of the random numbers.

    Raises:
        ValueError: ``num_samples`` is not positive.
        TypeError: ``replacement`` is no bool.
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        _flag("replacement", replacement)
        if num_samples is not None:
            _positive("num_samples", num_samples)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many samples are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, left = len(self.data_source), self.num_samples
        if left and not size:
            raise ArgumentError(f"RandomSampler cannot draw {left} samples from an empty dataset.")
        if self.replacement:
            yield from cast(Any, randint(0, size, (left,), generator=self.generator)).tolist() if left else ()
            return
        while left > 0:
            yield from cast(Any, randperm(size, generator=self.generator)).tolist()[:left]
            left -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given samples in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for each in cast(Any, randperm(len(self.indices), generator=self.generator)).tolist():
            yield self.indices[each]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Samples with probabilities in proportion to weights.

    Args:
        weights: one for each sample; need not sum to 1.
        num_samples: how many to draw.
        replacement: whether a sample may come twice.
        generator: of the random numbers.

    Raises:
        ValueError: ``num_samples`` is not positive, or the weights are not a sequence of numbers.
        TypeError: ``replacement`` is no bool.

    >>> import flambeau
    >>> list(flambeau.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _positive("num_samples", num_samples)
        _flag("replacement", replacement)
        self.weights = cast(Any, as_tensor(weights)).double()
        if self.weights.ndim != 1:
            raise ArgumentError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler["list[int]"]):
    """Lists of ``batch_size`` numbers from another sampler.

    Args:
        sampler: gives the numbers.
        batch_size: how many make a batch.
        drop_last: leave out a last batch that would be smaller.

    Raises:
        ValueError: ``batch_size`` is not positive.
        TypeError: ``drop_last`` is no bool.

    >>> from flambeau.utils.data import BatchSampler, SequentialSampler
    >>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentTypeError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch = []
        for each in self.sampler:
            batch.append(each)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(cast(Any, self.sampler))
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
