"""Every layer constructed and run, its values against NumPy and SciPy."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import signal, special

import flambeau
from flambeau import nn
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F


def rng():
    return np.random.default_rng(3)


def close(got, wanted, tolerance=1e-9):
    assert tuple(got.shape) == np.shape(wanted)
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


def tensor(x):
    return flambeau.tensor(np.asarray(x))


# ---------------------------------------------------------------- activations

NORMAL = math.sqrt(2 / math.pi)
SIGMOID = special.expit
ELU = lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))  # noqa: E731

ACTIVATIONS = [
    (nn.ReLU(), lambda x: np.maximum(x, 0)), (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (nn.ELU(0.7), lambda x: ELU(x, 0.7)),
    (nn.CELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0) / 0.7))),
    (nn.SELU(), lambda x: 1.0507009873554804934193349852946 * ELU(x, 1.6732632423543772848170429916717)),
    (nn.SiLU(), lambda x: x * SIGMOID(x)), (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (nn.GELU(), lambda x: x * special.ndtr(x)),
    (nn.GELU("tanh"), lambda x: 0.5 * x * (1 + np.tanh(NORMAL * (x + 0.044715 * x**3)))),
    (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    (nn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (nn.Hardtanh(-0.5, 1.5), lambda x: np.clip(x, -0.5, 1.5)),
    (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    (nn.Threshold(0.3, -2.0), lambda x: np.where(x > 0.3, x, -2.0)), (nn.Sigmoid(), SIGMOID), (nn.Tanh(), np.tanh),
    (nn.LogSigmoid(), lambda x: np.log(SIGMOID(x))), (nn.Softplus(2.0), lambda x: np.log1p(np.exp(2 * x)) / 2),
    (nn.Softplus(2.0, 1.0), lambda x: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2)),
    (nn.Hardshrink(0.4), lambda x: np.where(abs(x) > 0.4, x, 0)),
    (nn.Softshrink(0.4), lambda x: np.sign(x) * np.maximum(abs(x) - 0.4, 0)),
    (nn.Softsign(), lambda x: x / (1 + abs(x))), (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.GLU(1), lambda x: x[:, :2] * SIGMOID(x[:, 2:])), (nn.Softmax(1), lambda x: special.softmax(x, 1)),
    (nn.LogSoftmax(-1), lambda x: special.log_softmax(x, -1)), (nn.Softmin(1), lambda x: special.softmax(-x, 1)),
    (nn.PReLU().double(), lambda x: np.where(x > 0, x, 0.25 * x)),
    (nn.RReLU(0.1, 0.3).eval(), lambda x: np.where(x > 0, x, 0.2 * x)), (nn.Identity(1, a=2), lambda x: x),
]  # fmt: skip


@pytest.mark.parametrize(("module", "wanted"), ACTIVATIONS, ids=[repr(each[0]) for each in ACTIVATIONS])
def test_activations(module, wanted):
    x = rng().normal(size=(3, 4, 5)) * 2
    close(module(tensor(x)), wanted(x))


def test_activations_in_place():
    x = rng().normal(size=(3, 4))
    for module in (
        nn.ReLU(True), nn.ReLU6(True), nn.ELU(1.0, True), nn.LeakyReLU(0.1, True), nn.Threshold(0.1, 0.2, True),
        nn.Hardtanh(inplace=True), nn.SELU(True), nn.CELU(inplace=True),
    ):  # fmt: skip
        a = tensor(x)
        wanted = type(module)(*[v for k, v in vars(module).items() if k not in ("_members", "training", "inplace")])(
            tensor(x)
        )
        assert module(a) is a and "inplace=True" in repr(module)
        close(a, wanted.numpy())


def test_functions_in_place():
    x = rng().normal(size=(3, 4)) * 2
    for function, wanted in (
        (F.relu_, np.maximum(x, 0)), (F.hardtanh_, np.clip(x, -1, 1)), (F.celu_, ELU(x, 1.0)), (F.elu_, ELU(x, 1.0)),
        (F.rrelu_, np.where(x > 0, x, x * 11 / 48)), (F.leaky_relu_, np.where(x > 0, x, x * 0.01)),
    ):  # fmt: skip
        a = tensor(x)
        assert function(a) is a
        close(a, wanted)


def test_activation_checks_and_randomness():
    close(nn.Softmax2d()(tensor(np.zeros((2, 4, 1, 3)))), np.full((2, 4, 1, 3), 0.25))
    with pytest.raises(ValueError, match="expected input to be 3D or 4D, got 2D"):
        nn.Softmax2d()(flambeau.zeros(2, 2))
    with pytest.raises(ValueError, match="max_val must be larger"):
        nn.Hardtanh(1, 0)
    x = -np.ones(1000)
    slopes = -nn.RReLU(0.1, 0.3)(tensor(x)).numpy()
    assert 0.1 <= slopes.min() < slopes.max() < 0.3


# ---------------------------------------------------------------- affine and convolution


def convolve(x, w, stride, padding, dilation, groups):
    """Correlation by SciPy, channel by channel."""
    dims = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    spread = np.zeros(w.shape[:2] + tuple(d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)))
    spread[(..., *(slice(None, None, d) for d in dilation))] = w
    ins, outs = w.shape[1], w.shape[0] // groups
    rows = []
    for image in x:
        channels = []
        for o in range(w.shape[0]):
            first = o // outs * ins
            full = sum(signal.correlate(image[first + i], spread[o, i], "valid", "direct") for i in range(ins))
            channels.append(full[tuple(slice(None, None, s) for s in stride)])
        rows.append(np.stack(channels))
    assert dims == len(stride)
    return np.stack(rows)


def test_linear_and_bilinear():
    x, y = rng().normal(size=(2, 3, 4)), rng().normal(size=(2, 3, 5))
    module = nn.Linear(4, 6).double()
    w, b = (each.detach().numpy() for each in module.parameters())
    assert abs(w).max() <= 0.5 and abs(b).max() <= 0.5
    close(module(tensor(x)), x @ w.T + b)
    assert (
        nn.Linear(4, 6, bias=False).bias is None
        and nn.Linear(2, 3, dtype=flambeau.float64).weight.dtype is flambeau.float64
    )
    module = nn.Bilinear(4, 5, 2).double()
    w, b = (each.detach().numpy() for each in module.parameters())
    close(module(tensor(x), tensor(y)), np.einsum("abi,kij,abj->abk", x, w, y) + b)
    with pytest.raises(RuntimeError):
        module(tensor(x), tensor(x))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(dims, groups):
    x = rng().normal(size=(2, 4, 7, 6, 5)[: 2 + dims])
    kind = getattr(nn, f"Conv{dims}d")
    for stride, padding, dilation in ((1, 0, 1), (2, 1, 2)):
        module = kind(4, 6, 2, stride, padding, dilation, groups).double()
        w, b = (each.detach().numpy() for each in module.parameters())
        wanted = convolve(x, w, (stride,) * dims, (padding,) * dims, (dilation,) * dims, groups)
        wanted = wanted + b.reshape(-1, *[1] * dims)
        close(module(tensor(x)), wanted)
        close(module(tensor(x[0])), wanted[0])
    same = kind(4, 4, 3, padding="same", bias=False).double()
    close(same(tensor(x)), convolve(x, same.weight.detach().numpy(), (1,) * dims, (1,) * dims, (1,) * dims, 1))
    wrapped = kind(4, 4, 3, padding=1, padding_mode="circular", bias=False).double()
    around = np.pad(x, [(0, 0), (0, 0)] + [(1, 1)] * dims, mode="wrap")
    close(
        wrapped(tensor(x)), convolve(around, wrapped.weight.detach().numpy(), (1,) * dims, (0,) * dims, (1,) * dims, 1)
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_are_adjoint(dims):
    forward = getattr(nn, f"Conv{dims}d")(4, 6, 3, 2, 1, groups=2, bias=False).double()
    back = getattr(nn, f"ConvTranspose{dims}d")(6, 4, 3, 2, 1, output_padding=1, groups=2, bias=False).double()
    back.weight.data.copy_(forward.weight.data)
    x = tensor(rng().normal(size=(2, 4) + (6,) * dims))
    y = tensor(rng().normal(size=(2, 6) + (3,) * dims))
    returned = back(y)
    assert returned.shape == x.shape and back(y, output_size=(5,) * dims).shape == (2, 4) + (5,) * dims
    np.testing.assert_allclose((forward(x) * y).sum().item(), (x * returned).sum().item(), rtol=1e-10)
    with pytest.raises(ValueError, match="must be from 5 to 6"):
        back(y, output_size=(9,) * dims)


def test_convolution_arguments():
    assert repr(nn.Conv2d(2, 4, 3, padding=1, groups=2, bias=False)) == (
        "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2, bias=False)"
    )
    for arguments, text in (
        ({"groups": 3}, "in_channels must be divisible by groups, got 4 and 3"), ({"groups": 0}, "positive integer"),
        ({"padding_mode": "mirror"}, "padding_mode must be one of"), ({"padding": "half"}, "Invalid padding string"),
        ({"padding": "same", "stride": 2}, "not supported for strided"),
        ({"stride": (1, 2, 3)}, "stride: expected one value or 2, got 3"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            nn.Conv2d(4, 6, 3, **arguments)


# ---------------------------------------------------------------- pooling


def windows(x, size, stride):
    """The windows over the last dimensions: (..., windows, elements)."""
    dims = len(size)
    view = np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(-dims, 0)))
    view = view[(..., *(slice(None, None, s) for s in stride), *(slice(None),) * dims)]
    return view.reshape(*view.shape[:-dims], -1)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pools(dims):
    x = rng().normal(size=(2, 3, 6, 7, 5)[: 2 + dims])
    a, size, stride = tensor(x), (3, 2, 2)[:dims], (2, 1, 2)[:dims]
    parts = windows(x, size, stride)
    close(getattr(nn, f"MaxPool{dims}d")(size, stride)(a), parts.max(-1))
    close(getattr(nn, f"AvgPool{dims}d")(size, stride)(a), parts.mean(-1))
    close(getattr(nn, f"LPPool{dims}d")(3.0, size, stride)(tensor(abs(x))), (abs(parts) ** 3).sum(-1) ** (1 / 3))
    values, places = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(a)
    back = getattr(nn, f"MaxUnpool{dims}d")(2)(values, places, output_size=a.shape)
    flat = np.zeros((2, 3, x[0, 0].size))
    np.put_along_axis(flat, places.numpy().reshape(2, 3, -1), values.numpy().reshape(2, 3, -1), 2)
    close(back, flat.reshape(x.shape))
    target = (2, None, 3)[:dims]
    edges = [
        [(i * n // o, -((i + 1) * n // -o)) for i in range(o)] for n,
        o in zip(x.shape[2:], [t or s for t, s in zip(target, x.shape[2:])])
    ]  # fmt: skip
    shape = (2, 3, *map(len, edges))
    for name, fold in (("Avg", np.mean), ("Max", np.max)):
        wanted = [
            fold(x[(..., *(slice(*e) for e in box))], tuple(range(2, 2 + dims))) for box in itertools.product(*edges)
        ]
        close(getattr(nn, f"Adaptive{name}Pool{dims}d")(target)(a), np.stack(wanted, -1).reshape(shape))


def test_fractional_pooling():
    x = rng().normal(size=(2, 3, 9, 8))
    module = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)
    values, places = module(tensor(x))
    assert values.shape == (2, 3, 4, 4)
    np.testing.assert_array_equal(
        np.take_along_axis(x.reshape(2, 3, -1), places.numpy().reshape(2, 3, -1), 2), values.numpy().reshape(2, 3, -1)
    )
    assert nn.FractionalMaxPool2d(2, output_size=(3, 4))(tensor(x)).shape == (2, 3, 3, 4)
    with pytest.raises(ValueError, match="exactly one of"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)


# ---------------------------------------------------------------- normalisation


def normalised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_batch_norm(dims):
    x = rng().normal(2, 3, size=(4, 3, 5, 2, 2)[: 2 + dims])
    axes = (0, *range(2, 2 + dims))
    module = getattr(nn, f"BatchNorm{dims}d")(3).double()
    with flambeau.no_grad():
        module.weight.copy_(tensor([1.0, 2.0, 3.0]))
        module.bias.copy_(tensor([0.0, 1.0, 2.0]))
    w, b = (each.detach().numpy().reshape(-1, *[1] * dims) for each in (module.weight, module.bias))
    close(module(tensor(x)), normalised(x, axes) * w + b)
    close(module.running_mean, 0.1 * x.mean(axes))
    close(module.running_var, 0.9 + 0.1 * x.var(axes, ddof=1))
    assert module.num_batches_tracked.item() == 1
    mean, var = (each.numpy().reshape(-1, *[1] * dims) for each in (module.running_mean, module.running_var))
    close(module.eval()(tensor(x)), (x - mean) / np.sqrt(var + 1e-5) * w + b)
    plain = getattr(nn, f"BatchNorm{dims}d")(3, affine=False, track_running_stats=False)
    close(plain.eval()(tensor(x)), normalised(x, axes))
    averaging = getattr(nn, f"BatchNorm{dims}d")(3, momentum=None).double()
    averaging(tensor(x))
    averaging(tensor(x * 3))
    close(averaging.running_mean, 2 * x.mean(axes))
    averaging.reset_running_stats()
    assert averaging.num_batches_tracked.item() == 0 and averaging.running_var.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"got 6D input"):
        module(flambeau.zeros(1, 3, 1, 1, 1, 1))


def test_batch_norm_reads_states_without_a_count():
    module = nn.BatchNorm1d(2)
    state = dict(module.state_dict())
    del state["num_batches_tracked"]
    assert nn.BatchNorm1d(2).load_state_dict(state).missing_keys == []


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_instance_norm(dims):
    x = rng().normal(2, 3, size=(2, 3, 5, 4, 3)[: 2 + dims])
    axes = tuple(range(2, 2 + dims))
    kind = getattr(nn, f"InstanceNorm{dims}d")
    close(kind(3)(tensor(x)), normalised(x, axes))
    close(kind(3)(tensor(x[0])), normalised(x, axes)[0])
    module = kind(3, affine=True, track_running_stats=True).double()
    module(tensor(x))
    close(module.running_mean, 0.1 * x.mean(axes).mean(0))
    with pytest.raises(ValueError, match="expected"):
        module(flambeau.zeros(3))


def test_layer_group_and_response_norm():
    x = rng().normal(1, 2, size=(2, 6, 4, 3))
    close(nn.LayerNorm([4, 3]).double()(tensor(x)), normalised(x, (2, 3)))
    close(nn.LayerNorm(3, elementwise_affine=False)(tensor(x)), normalised(x, (3,)))
    groups = normalised(x.reshape(2, 3, 2, 4, 3), (2, 3, 4)).reshape(x.shape)
    close(nn.GroupNorm(3, 6).double()(tensor(x)), groups)
    squares = np.pad(x * x, [(0, 0), (1, 1), (0, 0), (0, 0)])
    mean = sum(squares[:, i : i + 6] for i in range(3)) / 3
    wanted = x / (2 + 0.5 * mean) ** 0.75
    close(nn.LocalResponseNorm(3, 0.5, 0.75, 2.0)(tensor(x)), wanted)
    close(nn.CrossMapLRN2d(3, 0.5, 0.75, 2.0)(tensor(x)), wanted)
    with pytest.raises(ValueError, match="divisible by num_groups"):
        nn.GroupNorm(4, 6)
    with pytest.raises(ValueError, match="Expected input to be 4D, got 3D"):
        nn.CrossMapLRN2d(3)(tensor(x[0]))


# ---------------------------------------------------------------- dropout, embedding, padding, resizing


@pytest.mark.parametrize(
    "kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout]
)
def test_dropout(kind):
    flambeau.manual_seed(0)
    shape = {nn.Dropout1d: (50, 40, 3), nn.Dropout2d: (50, 40, 3, 2)}.get(kind, (50, 40, 3, 2, 2))
    module, x = kind(0.3), flambeau.ones(*shape)
    y = module(x).numpy()
    if "Alpha" not in kind.__name__:
        assert set(np.unique(y).round(4)) == {0, np.float32(1 / 0.7).round(4)}
        assert abs((y == 0).mean() - 0.3) < 0.04
    rows = y.reshape(50 * 40, -1)
    whole = (rows == rows[:, :1]).all()
    assert whole == (kind not in (nn.Dropout, nn.AlphaDropout))
    assert module.eval()(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1\.5"):
        kind(1.5)


def test_embedding():
    flambeau.manual_seed(0)
    module = nn.Embedding(5, 3, padding_idx=-1)
    assert module.padding_idx == 4 and module.weight[4].tolist() == [0, 0, 0]
    index = flambeau.tensor([[1, 4], [0, 1]])
    close(module(index), module.weight.detach().numpy()[[[1, 4], [0, 1]]])
    module(index).sum().backward()
    assert module.weight.grad[:, 0].tolist() == [1, 2, 0, 0, 0]
    given = flambeau.tensor([[3.0, 4.0], [0.3, 0.4]])
    frozen = nn.Embedding.from_pretrained(given)
    assert not frozen.weight.requires_grad and frozen(flambeau.tensor([1])).tolist() == given[1:].tolist()
    bounded = nn.Embedding.from_pretrained(given.clone(), max_norm=1.0)
    np.testing.assert_allclose(bounded(flambeau.tensor([0, 1])).numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
    assert repr(nn.Embedding(5, 3, padding_idx=1, sparse=True)) == "Embedding(5, 3, padding_idx=1, sparse=True)"
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(5, 3, padding_idx=5)
    with pytest.raises(ValueError, match="2-dimensional"):
        nn.Embedding.from_pretrained(flambeau.zeros(3))
    with pytest.raises(IndexError):
        module(flambeau.tensor([5]))


@pytest.mark.parametrize(("mode", "fold"), [("sum", np.sum), ("mean", np.mean), ("max", np.max)])
def test_embedding_bag(mode, fold):
    table = rng().normal(size=(6, 3))
    module = nn.EmbeddingBag.from_pretrained(tensor(table), mode=mode)
    index = np.array([[1, 2, 2], [0, 5, 1]])
    close(module(tensor(index)), fold(table[index], 1))
    flat = flambeau.tensor([1, 2, 4, 0, 3])
    close(module(flat, flambeau.tensor([0, 3])), np.stack([fold(table[[1, 2, 4]], 0), fold(table[[0, 3]], 0)]))


MODES = {"Constant": "constant", "Zero": "constant", "Reflection": "reflect", "Replication": "edge", "Circular": "wrap"}


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding(name, dims):
    x = rng().normal(size=(2, 3, 4, 5, 3)[: 2 + dims])
    sides = (1, 2, 2, 0, 1, 1)[: 2 * dims]
    module = getattr(nn, f"{name}Pad{dims}d")(sides, *[1.5] * (name == "Constant"))
    widths = [(0, 0), (0, 0), *[tuple(sides[2 * i : 2 * i + 2]) for i in reversed(range(dims))]]
    options = {"constant_values": 1.5 * (name == "Constant")} if MODES[name] == "constant" else {}
    close(module(tensor(x)), np.pad(x, widths, MODES[name], **options))
    with pytest.raises(ValueError, match="padding: expected one value"):
        getattr(nn, f"{name}Pad{dims}d")((1,) * 7, *[1.5] * (name == "Constant"))


def test_resizing_and_shuffling():
    x = rng().normal(size=(2, 8, 3, 4))
    shuffled = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 8)
    close(nn.PixelShuffle(2)(tensor(x)), shuffled)
    close(nn.PixelUnshuffle(2)(tensor(shuffled)), x)
    close(nn.Upsample(scale_factor=2)(tensor(x)), x.repeat(2, 2).repeat(2, 3))
    close(nn.UpsamplingNearest2d((6, 8))(tensor(x)), x.repeat(2, 2).repeat(2, 3))
    line = tensor([[[0.0, 3.0]]])
    close(nn.Upsample(4, mode="linear", align_corners=True)(line), [[[0, 1, 2, 3]]])
    close(nn.Upsample(4, mode="linear", align_corners=False)(line), [[[0, 0.75, 2.25, 3]]])
    close(nn.UpsamplingBilinear2d(scale_factor=2)(tensor([[[[0.0, 3.0], [0.0, 3.0]]]])), [[[[0, 1, 2, 3]] * 4]])
    columns = nn.Unfold(2)(tensor(x))
    close(columns, windows(x, (2, 2), (1, 1)).reshape(2, 8, 6, 4).transpose(0, 1, 3, 2).reshape(2, 32, 6))
    counts = nn.Fold((3, 4), 2)(nn.Unfold(2)(tensor(np.ones((1, 1, 3, 4)))))
    close(counts, [[[[1, 2, 2, 1], [2, 4, 4, 2], [1, 2, 2, 1]]]])
    assert nn.Flatten()(tensor(x)).shape == (2, 96) and nn.Unflatten(1, (2, 4))(tensor(x)).shape == (2, 2, 4, 3, 4)


def test_distances():
    a, b = rng().normal(size=(3, 4)), rng().normal(size=(3, 4)) + 1
    close(
        nn.PairwiseDistance(2, keepdim=True)(tensor(a), tensor(b)), np.linalg.norm(a - b + 1e-6, axis=1, keepdims=True)
    )
    cos = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(nn.CosineSimilarity()(tensor(a), tensor(b)), cos)


def test_every_module_shows_itself_and_keeps_its_state():
    built = {
        "Linear": (2, 3), "Bilinear": (2, 3, 4),
        "DataParallel": (nn.Identity(),), "Embedding": (5, 2), "EmbeddingBag": (5, 2), "LayerNorm": (3,),
        "GroupNorm": (1, 2),
        "LocalResponseNorm": (2,), "CrossMapLRN2d": (2,), "PixelShuffle": (2,), "PixelUnshuffle": (2,), "Unfold": (2,),
        "Fold": (4, 2), "Unflatten": (1, (1, 2)), "Threshold": (0.1, 0.2), "LPPool1d": (2, 2),
        "LPPool2d": (2, 2), "LPPool3d": (2, 2),
    }  # fmt: skip
    for name, kind in vars(nn).items():
        if (
            not isinstance(kind, type)
            or not issubclass(kind, nn.Module)
            or name in ("Module", "RNNBase", "RNNCellBase")
        ):
            continue
        arguments = built.get(name)
        if arguments is None:
            if name.startswith(("Conv", "Fractional")):
                arguments = (2, 4) if name.startswith("Frac") else (2, 4, 3)
            elif name.startswith("Constant"):
                arguments = (1, 2.0)
            elif "Pool" in name or "Pad" in name or "pool" in name or "Norm" in name:
                arguments = (2,)
            elif name.startswith(("RNN", "LSTM", "GRU")):
                arguments = (2, 3)
            else:
                arguments = ()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module = kind(*arguments)
        assert repr(module).startswith(name), name
        other = kind(*arguments)
        assert repr(other.load_state_dict(module.state_dict())) == "<All keys matched successfully>"
        assert str(module.double()).startswith(name) and list(map(len, [module.state_dict()])) == [
            len(other.state_dict())
        ]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_differentiates(mode):
    table = tensor(rng().normal(size=(5, 70))[:, :3].copy()).requires_grad_()
    index, starts = flambeau.tensor([1, 2, 4, 0, 3, 2]), flambeau.tensor([0, 3, 3])
    factors = tensor(rng().normal(size=6)).requires_grad_()

    def function(table, factors):
        weights = factors if mode == "sum" else None
        return F.embedding_bag(index, table, starts, mode=mode, per_sample_weights=weights, padding_idx=4)

    assert function(table, factors)[1].tolist() == [0, 0, 0]  # an empty bag
    assert gradcheck(function, (table, factors)) and gradgradcheck(function, (table, factors))
    with pytest.raises(IndexError, match="out of"):
        F.embedding_bag(flambeau.tensor([[9]]), table, mode=mode)
