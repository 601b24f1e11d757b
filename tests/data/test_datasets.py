"""Datasets, splits, samplers and collation."""

import collections

import numpy as np
import pytest

import flambeau
from flambeau.utils import data

t = flambeau.tensor


class Squares(data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index * index


def test_tensor_dataset():
    whole = data.TensorDataset(t([1, 2, 3]), t([[4.0], [5.0], [6.0]]), t([True, False, True]))
    assert len(whole) == 3
    a, b, c = whole[1]
    assert (a.item(), b.tolist(), c.item()) == (2, [5.0], False)
    with pytest.raises(ValueError, match=r"Size mismatch between tensors.*got shapes \[\[3\], \[2\]\]"):
        data.TensorDataset(flambeau.zeros(3), flambeau.zeros(2))
    with pytest.raises(ValueError, match="Size mismatch"):
        data.TensorDataset(t(1.0))
    with pytest.raises(ValueError, match="Size mismatch"):
        data.TensorDataset()


def test_concatenation():
    both = Squares(3) + Squares(2)
    assert isinstance(both, data.ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1]
    assert (both[-1], both[-5]) == (1, 0)
    for bad in (5, -6):
        with pytest.raises(IndexError, match=f"Index {bad} is out of range for a dataset of 5 samples"):
            both[bad]
    assert len(data.ConcatDataset([Squares(0), Squares(2), Squares(0)])) == 2
    assert data.ConcatDataset([Squares(0), Squares(2)])[1] == 1
    with pytest.raises(ValueError, match="at least one dataset"):
        data.ConcatDataset([])


def test_chain_of_iterables():
    class Count(data.IterableDataset):
        def __init__(self, stop):
            self.stop = stop

        def __iter__(self):
            return iter(range(self.stop))

        def __len__(self):
            return self.stop

    chain = Count(2) + Count(3)
    assert list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(ValueError, match="does not support IterableDataset"):
        data.ConcatDataset([Count(1)])
    with pytest.raises(TypeError, match="expects IterableDatasets, got Squares"):
        data.ChainDataset([Squares(1)])


def test_subset_and_split():
    part = data.Subset(Squares(10), [3, 1])
    assert (len(part), part[0], part[1]) == (2, 9, 1)
    flambeau.manual_seed(0)
    parts = data.random_split(Squares(10), [7, 3])
    assert [len(each) for each in parts] == [7, 3]
    assert sorted(i for each in parts for i in each.indices) == list(range(10))
    thirds = data.random_split(Squares(10), [1 / 3, 1 / 3, 1 / 3])
    assert [len(each) for each in thirds] == [4, 3, 3]
    again = [data.random_split(Squares(9), [4, 5], flambeau.Generator().manual_seed(3))[0].indices for _ in range(2)]
    assert again[0] == again[1]
    with pytest.raises(ValueError, match=r"Sum of input lengths does not equal the length.*Expected 10, got \[7, 2\]"):
        data.random_split(Squares(10), [7, 2])
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(Squares(10), [-1, 11])


# ---------------------------------------------------------------- samplers


def test_sequential_and_batches():
    order = data.SequentialSampler(range(7))
    assert list(order) == list(range(7)) and len(order) == 7
    keep, drop = (data.BatchSampler(order, 3, each) for each in (False, True))
    assert list(keep) == [[0, 1, 2], [3, 4, 5], [6]] and len(keep) == 3
    assert list(drop) == [[0, 1, 2], [3, 4, 5]] and len(drop) == 2


def test_random_sampler_is_a_permutation():
    sampler = data.RandomSampler(range(50))
    a, b = list(sampler), list(sampler)
    assert sorted(a) == sorted(b) == list(range(50)) and a != b
    seeded = [list(data.RandomSampler(range(50), generator=flambeau.Generator().manual_seed(1))) for _ in range(2)]
    assert seeded[0] == seeded[1]
    longer = list(data.RandomSampler(range(4), num_samples=10))
    assert len(longer) == 10 and sorted(longer[:4]) == sorted(longer[4:8]) == [0, 1, 2, 3]


def test_random_sampler_with_replacement():
    flambeau.manual_seed(0)
    drawn = list(data.RandomSampler(range(10), replacement=True, num_samples=2000))
    counts = np.bincount(drawn, minlength=10)
    assert len(drawn) == 2000
    # 200 expected with a standard deviation of 13.4
    assert counts.min() > 130 and counts.max() < 270


def test_subset_sampler():
    sampler = data.SubsetRandomSampler([5, 6, 9])
    assert sorted(sampler) == [5, 6, 9] and len(sampler) == 3


def test_weighted_sampler():
    flambeau.manual_seed(1)
    drawn = list(data.WeightedRandomSampler([1.0, 0.0, 3.0], 4000))
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] / 4000 - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: data.BatchSampler([1], 0, False), ValueError, "positive integer value, but got batch_size=0"),
        (lambda: data.BatchSampler([1], True, False), ValueError, "batch_size=True"),
        (lambda: data.BatchSampler([1], 2, 1), TypeError, "drop_last should be a boolean value, but got drop_last=1"),
        (lambda: data.RandomSampler([1], replacement=0), TypeError, "should be a boolean value, but got replacement=0"),
        (lambda: data.RandomSampler([1], num_samples=0), ValueError, "positive integer value, but got num_samples=0"),
        (lambda: data.WeightedRandomSampler([1.0], -1), ValueError, "num_samples=-1"),
        (lambda: data.WeightedRandomSampler([1.0], 1, "no"), TypeError, "replacement=no"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, r"given weights have shape \(1, 1\)"),
        (lambda: list(data.RandomSampler([], num_samples=2)), ValueError, "draw 2 samples from an empty dataset"),
    ],
)  # fmt: skip
def test_sampler_arguments(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


# ---------------------------------------------------------------- collation

Point = collections.namedtuple("Point", "x y")


def test_collate_by_kind():
    collate = data.default_collate
    assert collate([t([1, 2]), t([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert collate([1, 2]).dtype is flambeau.int64
    assert collate([1.0, 2.0]).dtype is flambeau.float64
    assert collate([True, False]).dtype is flambeau.bool
    assert collate([np.float32(1), np.float32(2)]).dtype is flambeau.float32
    assert collate([np.ones((2, 2), np.int16)] * 3).shape == (3, 2, 2)
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([b"a"]) == [b"a"]
    mapping = collate([{"x": 1, "n": "p"}, {"x": 2, "n": "q"}])
    assert mapping["x"].tolist() == [1, 2] and mapping["n"] == ["p", "q"]
    point = collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point and point.x.tolist() == [1, 3]
    pair = collate([(1, [2]), (3, [4])])
    assert pair[0].tolist() == [1, 3] and pair[1][0].tolist() == [2, 4]


def test_collate_errors():
    with pytest.raises(RuntimeError, match=r"equal size, got sizes \[1, 2\]"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError):
        data.default_collate([flambeau.zeros(2), flambeau.zeros(3)])


def test_convert():
    got = data.default_convert({"a": np.arange(3), "b": ["x", np.float64(2)], "c": Point(np.ones(1), None)})
    assert got["a"].tolist() == [0, 1, 2] and got["b"][0] == "x" and got["b"][1].item() == 2
    assert type(got["c"]) is Point and got["c"].y is None
