"""Datasets: things with samples to get by number, or to iterate over."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from ...errors import ArgumentError, ArgumentTypeError, BoundsError
from ...generator import Generator
from ...ops.random import randperm
from ...tensor import Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number: a subclass gives ``__getitem__`` and usually ``__len__``.

    ``a + b`` is the concatenation of two datasets.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in an order of their own: a subclass gives ``__iter__``.

    With worker processes each has a copy; ask :func:`get_worker_info` which part is whose.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Sample ``i`` is the tuple of every tensor's row ``i``.

    Args:
        tensors: any number, of the same size in their first dimension.

    Raises:
        ValueError: the sizes differ, or there are no tensors.

    >>> import flambeau
    >>> flambeau.utils.data.TensorDataset(flambeau.tensor([1, 2]), flambeau.tensor([3, 4]))[1]
    (tensor(2), tensor(4))
    """

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [each.shape[0] if each.ndim else None for each in tensors]
        if not tensors or None in sizes or len(set(sizes)) > 1:
            raise ArgumentError(
                f"Size mismatch between tensors: TensorDataset expects tensors of one first size, got shapes "
                f"{[list(each.shape) for each in tensors]}."
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(cast(Any, each)[index] for each in self.tensors)

    def __len__(self) -> int:
        return cast(int, self.tensors[0].shape[0])


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        raise ArgumentTypeError(
            f"{type(dataset).__name__} has no length here.\nGive it __len__, or use an IterableDataset."
        ) from None


class ConcatDataset(Dataset[Any]):
    """Several datasets one after the other.

    Raises:
        ValueError: there are none, or one of them can only be iterated over.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset expects at least one dataset, got none.")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise ArgumentError("ConcatDataset does not support IterableDataset.\nChain them with ChainDataset.")
        self.cumulative_sizes = list(itertools.accumulate(map(_length, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise BoundsError(f"Index {index} is out of range for a dataset of {len(self)} samples.")
        index %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Several iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        for each in self.datasets:
            if not isinstance(each, IterableDataset):
                raise ArgumentTypeError(f"ChainDataset expects IterableDatasets, got {type(each).__name__}.")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(_length, self.datasets))


class Subset(Dataset[Any]):
    """The samples of a dataset with these numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Share a dataset's samples out at random.

    Args:
        lengths: the number of samples of each part, or fractions that sum to 1 (what rounding leaves over
            goes to the first parts, one each).
        generator: of the permutation.

    Raises:
        ValueError: the lengths do not sum to the dataset's.
    """
    total = _length(dataset)
    sizes = list(lengths)
    if any(isinstance(each, float) for each in sizes) and math.isclose(sum(sizes), 1):
        if any(not 0 <= each <= 1 for each in sizes):
            raise ArgumentError(f"random_split: fractions lie between 0 and 1, got {sizes}.")
        counts = [math.floor(total * each) for each in sizes]
        for number in range(total - sum(counts)):
            counts[number % len(counts)] += 1
    else:
        counts = [int(each) for each in sizes]
    if sum(counts) != total or any(each < 0 for each in counts):
        raise ArgumentError(
            f"Sum of input lengths does not equal the length of the input dataset! Expected {total}, "
            f"got {sizes} with sum {sum(sizes)}."
        )
    order = cast(Any, randperm(total, generator=generator)).tolist()
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]
