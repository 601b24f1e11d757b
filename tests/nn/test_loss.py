"""Losses against their definitions in NumPy, over reductions, shapes and dtypes."""

import warnings

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

REDUCTIONS = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}


def rng():
    return np.random.default_rng(7)


def close(got, wanted, tolerance=1e-10):
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def log_softmax(x, axis):
    top = x.max(axis, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis, keepdims=True))


# ---------------------------------------------------------------- pairs


def binary_entropy(x, t):
    with np.errstate(divide="ignore"):
        return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))


def stirling(t):
    return np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0)


def rounded(d, a):
    """A parabola up to a, then a line."""
    return np.where(abs(d) <= a, d * d / 2, a * (abs(d) - a / 2))


#: name, options, value of each element, inputs: real, positive, probabilities, signs or counts
PAIRS = [
    ("l1_loss", {}, lambda x, t: abs(x - t), "real", "real"),
    ("mse_loss", {}, lambda x, t: (x - t) ** 2, "real", "real"),
    ("smooth_l1_loss", {"beta": 0.7}, lambda x, t: rounded(x - t, 0.7) / 0.7, "real", "real"),
    ("smooth_l1_loss", {"beta": 0.0}, lambda x, t: abs(x - t), "real", "real"),
    ("huber_loss", {"delta": 0.6}, lambda x, t: rounded(x - t, 0.6), "real", "real"),
    ("binary_cross_entropy", {}, binary_entropy, "probability", "probability"),
    ("binary_cross_entropy_with_logits", {}, lambda x, t: softplus(x) - x * t, "real", "probability"),
    ("kl_div", {}, lambda x, t: t * (np.log(t) - x), "real", "probability"),
    ("kl_div", {"log_target": True}, lambda x, t: np.exp(t) * (t - x), "real", "real"),
    ("poisson_nll_loss", {}, lambda x, t: np.exp(x) - t * x, "real", "count"),
    ("poisson_nll_loss", {"log_input": False, "eps": 0.1}, lambda x, t: x - t * np.log(x + .1), "probability", "count"),
    ("poisson_nll_loss", {"full": True}, lambda x, t: np.exp(x) - t * x + stirling(t), "real", "count"),
    ("hinge_embedding_loss", {"margin": 0.8}, lambda x, t: np.where(t == 1, x, np.maximum(0, 0.8 - x)), "real", "sign"),
    ("soft_margin_loss", {}, lambda x, t: softplus(-x * t), "real", "sign"),
]  # fmt: skip
IDS = [f"{name}-{options}" for name, options, *_ in PAIRS]


def draw(kind, shape, generator):
    if kind == "real":
        return generator.normal(size=shape) * 2
    if kind == "probability":
        return generator.uniform(0.05, 0.95, size=shape)
    if kind == "sign":
        return generator.choice([-1.0, 1.0], size=shape)
    return generator.integers(1, 6, size=shape).astype(float)


@pytest.mark.parametrize(("name", "options", "value", "input", "target"), PAIRS, ids=IDS)
def test_pairs(name, options, value, input, target):
    function = getattr(F, name)
    for shape in [(), (0,), (5,), (3, 4), (2, 3, 700)]:
        generator = rng()
        x, t = np.asarray(draw(input, shape, generator)), np.asarray(draw(target, shape, generator))
        for reduction, reduce in REDUCTIONS.items():
            if shape == (0,) and reduction == "mean":
                continue
            close(function(flambeau.tensor(x), flambeau.tensor(t), reduction=reduction, **options), reduce(value(x, t)))
        single = function(
            flambeau.tensor(x.astype(np.float32)), flambeau.tensor(t.astype(np.float32)), reduction="none", **options
        )
        assert single.dtype is flambeau.float32
        close(single, value(x, t), 2e-4)


@pytest.mark.parametrize(("name", "options", "value", "input", "target"), PAIRS, ids=IDS)
def test_pairs_of_views(name, options, value, input, target):
    generator = rng()
    x, t = draw(input, (4, 6), generator), draw(target, (8, 6), generator)
    a, b = flambeau.tensor(x).t(), flambeau.tensor(t).t()[:, 1::2]
    close(getattr(F, name)(a, b, reduction="none", **options), value(x.T, t.T[:, 1::2]))
    close(getattr(F, name)(a, b, **options), np.mean(value(x.T, t.T[:, 1::2])))


@pytest.mark.parametrize(("name", "options", "value", "input", "target"), PAIRS, ids=IDS)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_pairs_differentiate_twice(name, options, value, input, target, reduction):
    generator = rng()
    x = flambeau.tensor(draw(input, (3, 2), generator)).requires_grad_()
    t = flambeau.tensor(draw(target, (3, 2), generator))
    t.requires_grad_(target in ("real", "probability"))

    def function(x, t):
        return getattr(F, name)(x, t, reduction=reduction, **options)

    assert gradcheck(function, (x, t))
    assert gradgradcheck(function, (x, t))


def test_weights_of_elements():
    generator = rng()
    x, t, w = generator.normal(size=(3, 4)), generator.uniform(size=(3, 4)), generator.uniform(size=(4,))
    a, b, c = (flambeau.tensor(each) for each in (x, t, w))
    values = softplus(x) - x * t
    close(F.binary_cross_entropy_with_logits(a, b, weight=c), (values * w).mean())
    positive = w * t * softplus(-x) + (1 - t) * softplus(x)
    close(F.binary_cross_entropy_with_logits(a, b, pos_weight=c, reduction="sum"), positive.sum())
    close(F.binary_cross_entropy(a.sigmoid(), b, weight=c), (values * w).mean(), 1e-8)
    full = np.broadcast_to(w, (3, 4))
    close(F.mse_loss(a, b, weight=flambeau.tensor(full.copy())), (full * (x - t) ** 2).sum() / full.sum())
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        F.mse_loss(a, b, weight=c)
    assert gradcheck(lambda x: F.binary_cross_entropy_with_logits(x, b, pos_weight=c), (a.requires_grad_(),))


def test_binary_cross_entropy_at_the_ends():
    x = flambeau.tensor([0.0, 1.0, 0.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, flambeau.tensor([0.0, 1.0, 1.0]), reduction="none")
    assert loss.tolist() == [0, 0, 100]
    loss.sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad[2].item() < -1e11
    for wrong in (-0.1, 1.1):
        for reduction in REDUCTIONS:
            with pytest.raises(RuntimeError, match="between 0 and 1"):
                F.binary_cross_entropy(flambeau.tensor([0.5, wrong]), flambeau.ones(2), reduction=reduction)


def test_logits_do_not_overflow():
    x = flambeau.tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, flambeau.tensor([0.0, 1.0]), reduction="none")
    assert loss.tolist() == [1000, 1000]
    loss.sum().backward()
    assert x.grad.tolist() == [1, -1]


# ---------------------------------------------------------------- classes


def class_loss(scores, target, weight, ignored, normalise):
    """The loss and the weight of each target."""
    scores = log_softmax(scores, 1) if normalise else scores
    kept = target != ignored
    safe = np.where(kept, target, 0)
    values = -np.take_along_axis(scores, safe[:, None], 1)[:, 0]
    factors = kept * (np.ones(scores.shape[1]) if weight is None else weight)[safe]
    return values * factors, factors


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 4, 6), (2, 5, 3, 70), (4, 300), (0, 3)])
def test_classes(shape, normalise):
    function = F.cross_entropy if normalise else F.nll_loss
    generator = rng()
    x = generator.normal(size=shape) * 3
    t = generator.integers(0, shape[1], size=shape[:1] + shape[2:])
    t.reshape(-1)[::3] = -7
    w = generator.uniform(0.5, 2, size=shape[1])
    for weight in (None, w):
        values, factors = class_loss(x, t, weight, -7, normalise)
        options = {"ignore_index": -7, "weight": None if weight is None else flambeau.tensor(weight)}
        for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-5), (np.float16, 2e-2)):
            a = flambeau.tensor(x.astype(dtype))
            if weight is not None:
                options["weight"] = flambeau.tensor(weight.astype(dtype))
            close(function(a, flambeau.tensor(t), reduction="none", **options), values, tolerance * 10)
            if dtype is not np.float16:
                close(function(a, flambeau.tensor(t), reduction="sum", **options), values.sum(), tolerance * 100)
                with np.errstate(invalid="ignore"):
                    close(
                        function(a, flambeau.tensor(t), **options),
                        np.divide(values.sum(), factors.sum()),
                        tolerance * 10,
                    )


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_classes_differentiate_twice(function, reduction):
    generator = rng()
    weight = flambeau.tensor(generator.uniform(0.5, 2, size=4))
    for shape in ((3, 4), (2, 4, 3)):
        x = flambeau.tensor(generator.normal(size=shape), requires_grad=True)
        t = generator.integers(0, 4, size=shape[:1] + shape[2:])
        t.reshape(-1)[0] = -100
        target = flambeau.tensor(t)
        assert gradcheck(lambda x: function(x, target, weight, reduction=reduction), (x,))  # noqa: B023
        assert gradgradcheck(lambda x: function(x, target, weight, reduction=reduction), (x,))  # noqa: B023


def test_classes_from_views_and_single_rows():
    generator = rng()
    x = generator.normal(size=(7, 5))
    t = generator.integers(0, 7, size=10)
    a, b = flambeau.tensor(x).t(), flambeau.tensor(t)[::2]
    close(F.cross_entropy(a, b, reduction="none"), class_loss(x.T, t[::2], None, -100, True)[0])
    a.requires_grad_()
    F.cross_entropy(a, b).backward()
    p = np.exp(log_softmax(x.T, 1)) - np.eye(7)[t[::2]]
    close(a.grad, p / 5)
    row = flambeau.tensor(x[:, 0])
    close(F.cross_entropy(row, flambeau.tensor(3)), -log_softmax(x[:, 0], 0)[3])
    assert F.nll_loss(row, flambeau.tensor(3), reduction="none").shape == ()


def test_probabilities_as_targets_and_smoothing():
    generator = rng()
    x, w = generator.normal(size=(3, 4, 2)), generator.uniform(0.5, 2, size=4)
    p = generator.uniform(size=(3, 4, 2))
    scores = log_softmax(x, 1)
    a, b, c = (flambeau.tensor(each) for each in (x, p, w))
    weighted = -(scores * p * w[:, None]).sum(1)
    close(F.cross_entropy(a, b, c, reduction="none"), weighted)
    close(F.cross_entropy(a, b, c), weighted.sum() / 6)
    smooth = 0.7 * p + 0.3 / 4
    close(F.cross_entropy(a, b, label_smoothing=0.3, reduction="sum"), -(scores * smooth).sum())
    t = generator.integers(0, 4, size=(3, 2))
    t[0, 0] = -100
    hard, factors = class_loss(x, t, w, -100, True)
    even = -(scores * w[:, None]).sum(1) * (t != -100)
    values = 0.7 * hard + 0.3 / 4 * even
    target = flambeau.tensor(t)
    close(F.cross_entropy(a, target, c, label_smoothing=0.3, reduction="none"), values)
    close(F.cross_entropy(a, target, c, label_smoothing=0.3), values.sum() / factors.sum())
    a.requires_grad_()
    assert gradcheck(lambda x: F.cross_entropy(x, target, c, label_smoothing=0.3), (a,))
    assert gradcheck(lambda x: F.cross_entropy(x, b, c, label_smoothing=0.3), (a,))
    with pytest.raises(RuntimeError, match="label_smoothing must be between"):
        F.cross_entropy(a, target, label_smoothing=1.5)


def test_class_errors():
    x = flambeau.zeros(2, 3)
    with pytest.raises(IndexError, match="Target 3 is out of bounds: expected a class number from 0 to 2"):
        F.cross_entropy(x, flambeau.tensor([0, 3]))
    with pytest.raises(IndexError, match="Target -1 is out of bounds"):
        F.nll_loss(x, flambeau.tensor([-1, 0]))
    with pytest.raises(ValueError, match=r"expected a target of shape \[2\] for input \[2, 3\], got \[3\]"):
        F.cross_entropy(x, flambeau.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match="expected target of dtype int64"):
        F.cross_entropy(x, flambeau.tensor([0, 1], dtype=flambeau.int32))
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 3 classes"):
        F.nll_loss(x, flambeau.tensor([0, 1]), weight=flambeau.ones(2))
    with pytest.raises(TypeError, match="expected tensors"):
        F.cross_entropy(x, [0, 1])
    with pytest.raises(RuntimeError, match="not implemented for int64"):
        F.cross_entropy(flambeau.zeros(2, 3, dtype=flambeau.int64), flambeau.tensor([0, 1]))
    assert np.isnan(F.cross_entropy(x, flambeau.tensor([-100, -100])).item())


def test_an_ignored_row_does_not_spread_nan():
    x = flambeau.tensor([[float("nan"), 0.0], [1.0, 2.0]], requires_grad=True)
    F.cross_entropy(x, flambeau.tensor([-100, 1])).backward()
    assert x.grad[0].tolist() == [0, 0] and np.isfinite(x.grad.numpy()).all()


# ---------------------------------------------------------------- margins and embeddings


def test_margin_ranking():
    generator = rng()
    a, b, t = generator.normal(size=6), generator.normal(size=6), generator.choice([-1.0, 1.0], size=6)
    x, y, z = (flambeau.tensor(each) for each in (a, b, t))
    for reduction, reduce in REDUCTIONS.items():
        close(F.margin_ranking_loss(x, y, z, 0.4, reduction=reduction), reduce(np.maximum(0, -t * (a - b) + 0.4)))
    with pytest.raises(RuntimeError, match="same dimension"):
        F.margin_ranking_loss(x, y.reshape(2, 3), z)


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin(p):
    generator = rng()
    x, t, w = generator.normal(size=(4, 5)), generator.integers(0, 5, size=4), generator.uniform(size=5)
    gaps = np.maximum(0, 0.9 - x[np.arange(4), t][:, None] + x) ** p * w[t][:, None]
    gaps[np.arange(4), t] = 0
    a, b, c = flambeau.tensor(x, requires_grad=True), flambeau.tensor(t), flambeau.tensor(w)
    for reduction, reduce in REDUCTIONS.items():
        close(F.multi_margin_loss(a, b, p, 0.9, c, reduction=reduction), reduce(gaps.sum(1) / 5))
    assert gradcheck(lambda x: F.multi_margin_loss(x, b, p, 0.9, c), (a,))
    assert F.multi_margin_loss(a[0], b[0], reduction="none").shape == ()
    with pytest.raises(ValueError, match="only p == 1 and p == 2"):
        F.multi_margin_loss(a, b, 3)
    with pytest.raises(RuntimeError, match="expected input"):
        F.multi_margin_loss(a, b[:2])


def test_multilabel_margin():
    generator = rng()
    x = generator.normal(size=(2, 4))
    t = np.array([[2, 0, -1, 1], [1, -1, 0, 0]])
    wanted = []
    for row, labels in zip(x, [[2, 0], [1]], strict=True):
        others = [c for c in range(4) if c not in labels]
        wanted.append(sum(max(0, 1 - row[j] + row[c]) for j in labels for c in others) / 4)
    a, b = flambeau.tensor(x, requires_grad=True), flambeau.tensor(t)
    for reduction, reduce in REDUCTIONS.items():
        close(F.multilabel_margin_loss(a, b, reduction=reduction), reduce(np.array(wanted)))
    close(F.multilabel_margin_loss(a[0], b[0]), wanted[0])
    assert gradcheck(lambda x: F.multilabel_margin_loss(x, b), (a,))
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(a, b[0])
    with pytest.raises(RuntimeError, match="target out of range"):
        F.multilabel_margin_loss(a, b + 3)


def test_multilabel_soft_margin():
    generator = rng()
    x, t, w = (
        generator.normal(size=(3, 4)),
        generator.integers(0, 2, size=(3, 4)).astype(float),
        generator.uniform(size=4),
    )
    values = ((softplus(x) - t * x) * w).mean(1)
    a, b, c = (flambeau.tensor(each) for each in (x, t, w))
    for reduction, reduce in REDUCTIONS.items():
        close(F.multilabel_soft_margin_loss(a, b, c, reduction=reduction), reduce(values))
    with pytest.raises(RuntimeError, match="expected input and target of the same size"):
        F.multilabel_soft_margin_loss(a, b[:2])


def test_cosine_embedding_and_similarity():
    generator = rng()
    a, b = generator.normal(size=(5, 3)), generator.normal(size=(5, 3))
    t = np.array([1.0, -1, 1, -1, -1])
    cos = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    x, y, z = flambeau.tensor(a, requires_grad=True), flambeau.tensor(b, requires_grad=True), flambeau.tensor(t)
    close(F.cosine_similarity(x, y), cos)
    close(F.cosine_similarity(x, y, dim=0), (a * b).sum(0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0))
    wanted = np.where(t == 1, 1 - cos, np.maximum(0, cos - 0.1))
    for reduction, reduce in REDUCTIONS.items():
        close(F.cosine_embedding_loss(x, y, z, 0.1, reduction=reduction), reduce(wanted), 1e-8)
    close(F.cosine_embedding_loss(x[0], y[0], z[0]), 1 - cos[0], 1e-8)
    assert gradcheck(lambda x, y: F.cosine_embedding_loss(x, y, z, 0.1), (x, y))
    assert gradcheck(F.cosine_similarity, (x, y)) and gradgradcheck(F.cosine_similarity, (x, y))
    zero = flambeau.zeros(2, 3, requires_grad=True)
    F.cosine_similarity(zero, flambeau.ones(2, 3)).sum().backward()
    assert np.isfinite(zero.grad.numpy()).all()
    with pytest.raises(RuntimeError, match="1D target"):
        F.cosine_embedding_loss(x, y[0], z)


def test_triplet_margin_and_distance():
    generator = rng()
    a, b, c = (generator.normal(size=(4, 3)) for _ in range(3))
    x, y, z = (flambeau.tensor(each, requires_grad=True) for each in (a, b, c))
    for p in (1.0, 2.0, 3.0):
        near, far, swapped = ((abs(u - v + 1e-6) ** p).sum(1) ** (1 / p) for u, v in ((a, b), (a, c), (b, c)))
        close(F.pairwise_distance(x, y, p), near, 1e-9)
        close(F.triplet_margin_loss(x, y, z, 0.5, p, reduction="none"), np.maximum(0, near - far + 0.5), 1e-9)
        close(
            F.triplet_margin_loss(x, y, z, 0.5, p, swap=True),
            np.maximum(0, near - np.minimum(far, swapped) + 0.5).mean(),
            1e-9,
        )
    assert F.pairwise_distance(x, y, keepdim=True).shape == (4, 1)
    assert gradcheck(lambda x, y, z: F.triplet_margin_loss(x, y, z), (x, y, z))
    manhattan = F.triplet_margin_with_distance_loss(x, y, z, distance_function=lambda u, v: (u - v).abs().sum(-1))
    close(manhattan, np.maximum(0, abs(a - b).sum(1) - abs(a - c).sum(1) + 1).mean())
    with pytest.raises(ValueError, match="greater than 0"):
        F.triplet_margin_loss(x, y, z, margin=0)
    with pytest.raises(RuntimeError, match="anchor 2D, positive 2D, and negative 1D"):
        F.triplet_margin_loss(x, y, z[0])


def test_gaussian():
    generator = rng()
    x, t, v = generator.normal(size=(3, 4)), generator.normal(size=(3, 4)), generator.uniform(0.1, 2, size=(3, 1))
    a, b, c = (flambeau.tensor(each) for each in (x, t, v))
    values = 0.5 * (np.log(v) + (x - t) ** 2 / v)
    close(F.gaussian_nll_loss(a, b, c), values.mean())
    close(F.gaussian_nll_loss(a, b, c[:, 0], full=True, reduction="none"), values + 0.5 * np.log(2 * np.pi))
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(a, b, -c)
    with pytest.raises(ValueError, match="incorrect size"):
        F.gaussian_nll_loss(a, b, c[:2])


# ---------------------------------------------------------------- arguments


def test_old_keywords_warn_and_name_the_new():
    x, t = flambeau.tensor([1.0, 3.0]), flambeau.zeros(2)
    for options, wanted in (
        ({"size_average": False}, [10]), ({"reduce": False}, [1, 9]), ({"size_average": True}, [5]),
        ({"reduce": True, "size_average": False}, [10]),
    ):  # fmt: skip
        with pytest.warns(DeprecationWarning, match="please use reduction="):
            result = F.mse_loss(x, t, **options)
        assert result.reshape(-1).tolist() == wanted
    with pytest.warns(DeprecationWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False)(x, t).item() == 10
    with pytest.raises(ValueError, match="'median' is not a valid value for reduction"):
        F.l1_loss(x, t, reduction="median")


def test_shapes_are_compared():
    x = flambeau.zeros(2, 3)
    with pytest.warns(UserWarning, match=r"target size \(\[3\]\) that is different to the input size \(\[2, 3\]\)"):
        assert F.mse_loss(x, flambeau.ones(3)).item() == 1
    for function in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match="size"):
            function(x, flambeau.ones(3))
    with pytest.raises(RuntimeError, match=r"got input \[2, 3\] and target \[3\]"):
        F.soft_margin_loss(x, flambeau.ones(3))
    with pytest.raises(RuntimeError, match="broadcast"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        F.l1_loss(x, flambeau.ones(2))
    with pytest.raises(TypeError, match="expected target to be a Tensor"):
        F.l1_loss(x, 3)
    with pytest.raises(RuntimeError, match="negative values for beta"):
        F.smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(RuntimeError, match="non-positive values for delta"):
        F.huber_loss(x, x, delta=0)


def test_batchmean():
    generator = rng()
    x, t = generator.normal(size=(3, 4)), generator.uniform(0.1, 1, size=(3, 4))
    got = F.kl_div(flambeau.tensor(x), flambeau.tensor(t), reduction="batchmean")
    close(got, (t * (np.log(t) - x)).sum() / 3)
    assert F.kl_div(flambeau.zeros(2), flambeau.zeros(2), reduction="none").tolist() == [0, 0]


MODULES = [
    (nn.L1Loss(), F.l1_loss, 2), (nn.MSELoss(reduction="sum"), lambda x, t: F.mse_loss(x, t, reduction="sum"), 2),
    (nn.SmoothL1Loss(beta=0.5), lambda x, t: F.smooth_l1_loss(x, t, beta=0.5), 2),
    (nn.HuberLoss(delta=0.5), lambda x, t: F.huber_loss(x, t, delta=0.5), 2),
    (nn.BCEWithLogitsLoss(), F.binary_cross_entropy_with_logits, 2),
    (nn.KLDivLoss(reduction="batchmean"), lambda x, t: F.kl_div(x, t, reduction="batchmean"), 2),
    (nn.PoissonNLLLoss(), F.poisson_nll_loss, 2), (nn.SoftMarginLoss(), F.soft_margin_loss, 2),
    (nn.HingeEmbeddingLoss(0.3), lambda x, t: F.hinge_embedding_loss(x, t, 0.3), 2),
    (nn.MultiLabelSoftMarginLoss(), F.multilabel_soft_margin_loss, 2),
    (nn.MarginRankingLoss(0.2), lambda a, b, t: F.margin_ranking_loss(a, b, t, 0.2), 3),
    (nn.TripletMarginLoss(0.7), lambda a, b, t: F.triplet_margin_loss(a, b, t, 0.7), 3),
    (nn.TripletMarginWithDistanceLoss(), lambda a, b, t: F.triplet_margin_with_distance_loss(a, b, t), 3),
    (nn.GaussianNLLLoss(), lambda a, b, v: F.gaussian_nll_loss(a, b, v), 3),
]  # fmt: skip


@pytest.mark.parametrize(("module", "function", "inputs"), MODULES, ids=[type(m).__name__ for m, *_ in MODULES])
def test_modules_do_what_functions_do(module, function, inputs):
    generator = rng()
    args = [flambeau.tensor(generator.uniform(0.1, 0.9, size=(3, 4)).astype(np.float32)) for _ in range(inputs)]
    assert module(*args).tolist() == function(*args).tolist()


def test_modules_of_classes():
    generator = rng()
    x, t = flambeau.tensor(generator.normal(size=(3, 4))), flambeau.tensor(generator.integers(0, 4, size=3))
    w = flambeau.tensor(generator.uniform(size=4))
    module = nn.CrossEntropyLoss(w, ignore_index=2, label_smoothing=0.1)
    assert module(x, t).item() == F.cross_entropy(x, t, w, ignore_index=2, label_smoothing=0.1).item()
    assert list(module.state_dict()) == ["weight"]
    assert nn.NLLLoss(w, reduction="sum")(x, t).item() == F.nll_loss(x, t, w, reduction="sum").item()
    assert nn.MultiMarginLoss(p=2)(x, t).item() == F.multi_margin_loss(x, t, 2).item()
    assert nn.BCELoss()(x.sigmoid(), x.sigmoid()).item() == F.binary_cross_entropy(x.sigmoid(), x.sigmoid()).item()
    labels = flambeau.tensor([[0, -1, 0, 0]] * 3)
    assert nn.MultiLabelMarginLoss()(x, labels).item() == F.multilabel_margin_loss(x, labels).item()
    sign = flambeau.tensor([1.0, -1.0, 1.0], dtype=flambeau.float64)
    assert nn.CosineEmbeddingLoss()(x, x * 2, sign).item() == F.cosine_embedding_loss(x, x * 2, sign).item()
