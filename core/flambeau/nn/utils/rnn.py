"""Batches of sequences of different lengths: padded, and packed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...dtype import int64
from ...errors import ArgumentError, ShapeError
from ...ops.creation import tensor as make_tensor
from ...ops.views import declared
from .. import functional as F

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
]  # fmt: skip


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


class PackedSequence(_Packed):
    """Sequences of decreasing length laid step by step: the first step of all, then the second of those that have one.

    Attributes:
        data: (all steps, ...).
        batch_sizes: how many sequences have each step; int64 on the host.
        sorted_indices: where each sequence came from, or None if they came sorted.
        unsorted_indices: the inverse of that.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with ``data.to(...)``; indices move with it."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            None if each is None else each.to(data.device) for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a CUDA device."""
        return self._with(self.data.cuda(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """On the host."""
        data = self.data.cpu()
        return self if data is self.data else self._with(data)

    def _with(self, data: Any) -> PackedSequence:
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def double(self) -> PackedSequence:
        """With float64 data."""
        return self._with(self.data.double())

    def float(self) -> PackedSequence:
        """With float32 data."""
        return self._with(self.data.float())

    def half(self) -> PackedSequence:
        """With float16 data."""
        return self._with(self.data.half())

    @property
    def is_cuda(self) -> bool:
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes one; None for None."""
    return None if permutation is None else permutation.argsort()


def _lengths(lengths: Any) -> list[int]:
    return [int(each) for each in getattr(lengths, "tolist", lambda: lengths)()]


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a batch of padded sequences; differentiable.

    Args:
        input: (T, B, ...), or (B, T, ...) if ``batch_first``.
        lengths: of each sequence, a list or a tensor on the host.
        enforce_sorted: the sequences must come longest first; otherwise they are sorted here.

    Raises:
        RuntimeError: lengths are not sorted, not positive, or do not fit the input.
    """
    sizes = _lengths(lengths)
    order = None
    if not enforce_sorted:
        ranks = sorted(range(len(sizes)), key=lambda i: -sizes[i])
        order = make_tensor(ranks, dtype=int64, device=input.device)
        sizes = [sizes[i] for i in ranks]
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    if len(sizes) != input.shape[1]:
        raise ShapeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={input.shape[1]})"
        )
    if not sizes:
        raise ShapeError("Length of all samples has to be greater than 0, but found none: the batch is empty.")
    if any(a < b for a, b in pairwise(sizes)):
        raise ShapeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence."
        )
    if sizes[-1] <= 0:
        raise ShapeError(
            f"Length of all samples has to be greater than 0, but found an element in 'lengths' that is {sizes[-1]}."
        )
    if sizes[0] > input.shape[0]:
        raise ShapeError(f"Expected lengths of at most the input's {input.shape[0]} steps, got {sizes[0]}.")
    # Steps with the same number of sequences are one block.
    blocks, batch_sizes, done = [], [], 0
    for count in range(len(sizes), 0, -1):
        length = sizes[count - 1]
        if length > done:
            blocks.append(input[done:length, :count].reshape(-1, *input.shape[2:]))
            batch_sizes += [count] * (length - done)
            done = length
    data = blocks[0] if len(blocks) == 1 else declared("cat")(blocks)
    return PackedSequence(data, make_tensor(batch_sizes, dtype=int64), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Unpack into a padded batch and the lengths; differentiable.

    Args:
        batch_first: give (B, T, ...) instead of (T, B, ...).
        padding_value: of what is missing.
        total_length: T; the longest length if not given.

    Raises:
        ValueError: ``total_length`` is less than the longest length.
    """
    data, counts = sequence.data, sequence.batch_sizes.tolist()
    steps, batch = len(counts), counts[0]
    total = steps if total_length is None else total_length
    if total < steps:
        raise ArgumentError(
            f"Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total} "
            f"and max sequence length being {steps}"
        )
    rows: list[int] = []
    for step, count in enumerate(counts):
        rows += range(step * batch, step * batch + count)
    places = make_tensor(rows, dtype=int64, device=data.device)
    padded = data.new_full((total * batch, *data.shape[1:]), padding_value).index_copy(0, places, data)
    padded = padded.view(total, batch, *data.shape[1:])
    lengths = [sum(count > i for count in counts) for i in range(batch)]
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = [lengths[i] for i in sequence.unsorted_indices.tolist()]
    return (padded.transpose(0, 1) if batch_first else padded), make_tensor(lengths, dtype=int64)


def pad_sequence(
    sequences: Iterable[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Stack sequences (L, ...) of different lengths, the shorter ones padded.

    Args:
        batch_first: give (B, T, ...) instead of (T, B, ...).
        padding_value: of what is missing.
        padding_side: where to put it, ``'right'`` or ``'left'``.

    Raises:
        RuntimeError: there is no sequence, or trailing dimensions differ.
    """
    listed = list(sequences)
    if not listed:
        raise ShapeError("pad_sequence: received an empty list of sequences")
    rest = tuple(listed[0].shape[1:])
    if any(tuple(each.shape[1:]) != rest for each in listed):
        raise ShapeError(
            f"pad_sequence: expected trailing dimensions {list(rest)} of all, got {[list(e.shape) for e in listed]}."
        )
    longest = max(each.shape[0] for each in listed)
    around = [0, 0] * len(rest)
    rows = []
    for each in listed:
        missing = longest - each.shape[0]
        sides = [missing, 0] if padding_side == "left" else [0, missing]
        rows.append(F.pad(each, [*around, *sides], "constant", padding_value) if missing else each)
    return declared("stack")(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded batch without their padding."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [each[:length] for each, length in zip(batch, _lengths(lengths), strict=True)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, ...); longest first unless ``enforce_sorted`` is False."""
    return pack_padded_sequence(
        pad_sequence(sequences), [each.shape[0] for each in sequences], enforce_sorted=enforce_sorted
    )
