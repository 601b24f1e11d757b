"""Random numbers: distributions against scipy, streams that seeds decide, ranges, dropout, arguments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import flambeau
from flambeau.nn import functional as F

COUNT = 20_000


def fresh(dtype="float64", count=COUNT):
    return flambeau.zeros(count, dtype=getattr(flambeau, dtype))


#: how each is drawn, and its distribution
CONTINUOUS = {
    "rand": (lambda: flambeau.rand(COUNT), stats.uniform()),
    "randn": (lambda: flambeau.randn(COUNT), stats.norm()),
    "uniform_": (lambda: fresh().uniform_(-2, 3), stats.uniform(-2, 5)),
    "normal_": (lambda: fresh().normal_(1, 2), stats.norm(1, 2)),
    "normal of tensors": (lambda: flambeau.normal(flambeau.full((COUNT,), 3.0), flambeau.full((COUNT,), 0.5)), stats.norm(3, 0.5)),
    "exponential_": (lambda: fresh().exponential_(2), stats.expon(scale=0.5)),
    "cauchy_": (lambda: fresh().cauchy_(1, 2), stats.cauchy(1, 2)),
    "log_normal_": (lambda: fresh().log_normal_(0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5))),
}  # fmt: skip
DISCRETE = {
    "bernoulli_": (lambda: fresh("int64").bernoulli_(0.3), stats.bernoulli(0.3)),
    "bernoulli": (lambda: flambeau.full((COUNT,), 0.3).bernoulli(), stats.bernoulli(0.3)),
    "geometric_": (lambda: fresh().geometric_(0.4), stats.geom(0.4)),
    "poisson": (lambda: flambeau.poisson(flambeau.full((COUNT,), 3.5)), stats.poisson(3.5)),
    "poisson, many": (lambda: flambeau.poisson(flambeau.full((COUNT,), 60.0)), stats.poisson(60)),
    "randint": (lambda: flambeau.randint(2, 7, (COUNT,)), stats.randint(2, 7)),
    "random_": (lambda: fresh("int32").random_(0, 5), stats.randint(0, 5)),
    "multinomial": (
        lambda: flambeau.multinomial(flambeau.tensor([1.0, 0.0, 3.0]), COUNT, True), stats.rv_discrete(values=([0, 2], [0.25, 0.75])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    flambeau.manual_seed(11)
    draw, distribution = CONTINUOUS[name]
    numbers = draw().numpy().astype(np.float64)
    assert stats.kstest(numbers, distribution.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(numbers[1:].clip(-9, 9), numbers[:-1].clip(-9, 9))[0, 1]) < 0.03


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    flambeau.manual_seed(12)
    draw, distribution = DISCRETE[name]
    numbers = draw().numpy().astype(np.int64)
    values, counts = np.unique(numbers, return_counts=True)
    expected = distribution.pmf(values) * COUNT
    usual = expected > 5
    assert usual.sum() > 1 and abs(expected[usual].sum() / COUNT - 1) < 0.01
    assert stats.chisquare(counts[usual], expected[usual] * counts[usual].sum() / expected[usual].sum()).pvalue > 1e-3


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_seeds_decide(name):
    draw = {**CONTINUOUS, **DISCRETE}[name][0]
    flambeau.manual_seed(5)
    first, second = draw(), draw()
    flambeau.manual_seed(5)
    assert flambeau.equal(draw(), first) and not flambeau.equal(first, second)
    state = flambeau.get_rng_state()
    third = draw()
    flambeau.set_rng_state(state)
    assert flambeau.equal(draw(), third) and flambeau.equal(third, second)
    threads = flambeau.get_num_threads()
    try:
        flambeau.manual_seed(5)
        flambeau.set_num_threads(3)
        assert flambeau.equal(draw(), first)
    finally:
        flambeau.set_num_threads(threads)


def test_generators_are_apart():
    mine = flambeau.Generator().manual_seed(3)
    flambeau.manual_seed(3)
    a = flambeau.rand(4)
    assert flambeau.equal(flambeau.rand(4, generator=mine), a) and mine.initial_seed() == 3
    with flambeau.random.fork_rng():
        inside = flambeau.rand(4)
    assert flambeau.equal(flambeau.rand(4), inside)


def test_permutations_and_samples():
    flambeau.manual_seed(0)
    order = flambeau.randperm(500)
    assert (
        order.dtype is flambeau.int64
        and sorted(order.tolist()) == list(range(500))
        and order.tolist() != list(range(500))
    )
    places = np.array([flambeau.randperm(5).tolist() for _ in range(2000)])
    counts = np.stack([np.bincount(column, minlength=5) for column in places.T])
    assert stats.chisquare(counts.ravel()).pvalue > 1e-3
    chosen = flambeau.multinomial(flambeau.tensor([[1.0, 2.0, 0.0, 4.0]] * 50), 3)
    assert all(sorted(row) == [0, 1, 3] for row in chosen.tolist())


def test_shapes_dtypes_and_strides():
    assert (
        flambeau.rand(2, 3, dtype=flambeau.float64).shape == (2, 3)
        and flambeau.randn(0).shape == (0,)
        and flambeau.rand(()).ndim == 0
    )
    base = flambeau.zeros(4, 4)
    base[::2, 1:3].uniform_(1, 2)
    assert (base[::2, 1:3] >= 1).all() and base.sum() == base[::2, 1:3].sum()
    x = flambeau.ones(3, dtype=flambeau.int64)
    assert flambeau.randint_like(x, 5).dtype is flambeau.int64 and flambeau.rand_like(x.float()).shape == (3,)
    assert flambeau.randint(3, (2,), dtype=flambeau.float32).dtype is flambeau.float32
    for dtype in ("float16", "bfloat16", "float32"):
        numbers = flambeau.zeros(50_000, dtype=getattr(flambeau, dtype)).uniform_()
        assert (numbers >= 0).all() and (numbers < 1).all()


@pytest.mark.parametrize("p", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("name", ["dropout", "dropout2d", "dropout3d", "alpha_dropout"])
def test_dropout(name, p):
    flambeau.manual_seed(1)
    shape = {
        "dropout": (100, 200),
        "dropout2d": (200, 50, 2, 3),
        "dropout3d": (200, 50, 2, 1, 3),
        "alpha_dropout": (100, 200),
    }[name]
    x = flambeau.ones(shape, dtype=flambeau.float64, requires_grad=True)
    result = getattr(F, name)(x, p)
    numbers = result.detach().numpy()
    if name == "alpha_dropout":
        normal = flambeau.randn(400, 500, dtype=flambeau.float64)
        kept = F.alpha_dropout(normal, p).numpy()
        assert p == 1 or (abs(kept.mean()) < 0.02 and abs(kept.std() - 1) < 0.02)  # what it is for
    else:
        values = sorted(set(np.unique(numbers).round(9).tolist()))
        assert values == ([0] if p == 1 else [1] if p == 0 else [0, round(1 / (1 - p), 9)])
        assert abs((numbers == 0).mean() - p) < 0.02
        result.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), numbers)  # the same elements, scaled alike
    if name in ("dropout2d", "dropout3d"):
        flat = numbers.reshape(200, 50, -1)
        assert (flat == flat[..., :1]).all()  # whole channels
    assert getattr(F, name)(x, p, training=False) is x or flambeau.equal(getattr(F, name)(x, p, training=False), x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flambeau.ones(2).uniform_(3, 1), RuntimeError, "from|low"),
        (lambda: flambeau.ones(2).normal_(0, -1), RuntimeError, "std"),
        (lambda: flambeau.ones(2).exponential_(-1), RuntimeError, "lambda"),
        (lambda: flambeau.ones(2).geometric_(0), RuntimeError, "p"),
        (lambda: flambeau.ones(2).bernoulli_(1.5), RuntimeError, r"\[0, 1\]|0 <= p"),
        (lambda: flambeau.randint(3, 3, (2,)), RuntimeError, "3"),
        (lambda: flambeau.randperm(-1), RuntimeError, "-1"),
        (lambda: flambeau.rand(2, dtype=flambeau.int64), RuntimeError, "int64"),
        (lambda: flambeau.multinomial(flambeau.tensor([1.0, 0.0]), 2), RuntimeError, "non-zero|replacement|nonzero"),
        (lambda: flambeau.multinomial(flambeau.tensor([1.0, -1.0]), 1), RuntimeError, "negative|< 0|inf"),
        (lambda: flambeau.poisson(flambeau.tensor([-1.0])), RuntimeError, "-1|negative|rate"),
        (lambda: F.dropout(flambeau.ones(2), 1.5), ValueError, r"1\.5"),
        (lambda: flambeau.manual_seed("a"), (TypeError, RuntimeError), "str"),
        (lambda: flambeau.set_rng_state(flambeau.ones(3)), (RuntimeError, TypeError), "state|uint8"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
