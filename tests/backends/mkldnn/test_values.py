"""What the oneDNN kernels compute, against NumPy, SciPy and the CPU plug-in in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate

import flambeau as torch
import flambeau.nn.functional as F

pytestmark = pytest.mark.usefixtures("always")
#: of the largest element: sums of a few hundred products in float32, and one rounding to 8 bits
TOLERANCE = {"float32": 2e-6, "bfloat16": 2.0**-7}
RNG = np.random.default_rng(5)


HALF = pytest.mark.skipif(
    torch.bfloat16 not in pytest.importorskip("flambeau_mkldnn.family").DTYPES, reason="this machine has no bfloat16"
)
DTYPES = ["float32", pytest.param("bfloat16", marks=HALF)]


def operands(dtype, *shapes):
    """Tensors that the dtype holds exactly, and the same in float64."""
    made = [torch.tensor(RNG.standard_normal(shape).astype("f")).to(getattr(torch, dtype)) for shape in shapes]
    return made, [each.double() for each in made]


def close(found, wanted, dtype):
    found, wanted = found.detach().double().numpy(), wanted.detach().numpy()
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= TOLERANCE[dtype] * max(np.abs(wanted).max(), 1e-30)


def served(function, *operators):
    """The result of a function, which oneDNN has computed."""
    with torch.backends.trace() as calls:
        result = function()
    for each in operators:
        assert calls.providers()[each] == {"mkldnn": calls.providers()[each].total()}
    return result


def compare(function, dtype, operators, *shapes):
    """Value and gradients of a function, against the CPU plug-in in float64."""
    few, many = operands(dtype, *shapes)
    results = []
    for each in (few, many):
        for tensor in each:
            tensor.requires_grad_()

        def run(each=each):
            result = function(*each)
            # Of one sign, so that its sums do not cancel.
            seed = (
                (torch.arange(result.numel(), dtype=torch.float64).sin() / 2 + 1).reshape(result.shape).to(few[0].dtype)
            )
            return [result, *torch.autograd.grad(result, each, seed.to(result.dtype))]

        results.append(served(run, *operators) if each is few else run())
    for found, wanted in zip(*results, strict=True):
        close(found, wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("geometry", [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_and_their_gradients(dims, geometry, groups, dtype):
    def conv(x, weight, bias):
        return getattr(F, f"conv{dims}d")(x, weight, bias, *geometry, groups)

    sizes = (9, 8, 7)[:dims]
    shapes = (2, 4 * groups, *sizes), (5 * groups, 4, *(3, 2, 3)[:dims]), (5 * groups,)
    compare(conv, dtype, ["conv", "conv_input", "conv_weight"], *shapes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("geometry", [(1, 0, 0), (2, 1, 1), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_and_their_gradients(dims, geometry, groups, dtype):
    def conv(x, weight, bias):
        return getattr(F, f"conv_transpose{dims}d")(x, weight, bias, *geometry, groups)

    shapes = (2, 4 * groups, *(5, 4, 3)[:dims]), (4 * groups, 3, *[3] * dims), (3 * groups,)
    compare(conv, dtype, ["conv_input"], *shapes)


def test_a_convolution_is_the_correlation_that_scipy_computes():
    (x, weight), _ = operands("float32", (1, 3, 12, 11), (2, 3, 4, 3))
    found = served(lambda: F.conv2d(x, weight), "conv").numpy()
    for output in range(2):
        wanted = correlate(x[0].double().numpy(), weight[output].double().numpy(), "valid")[0]
        np.testing.assert_allclose(found[0, output], wanted, atol=1e-5)


def test_an_output_padding_of_a_whole_stride_is_left_to_the_cpu_plug_in():
    (x, weight), (y, other) = operands("float32", (1, 2, 4), (2, 3, 3))
    with torch.backends.trace() as calls:
        found = F.conv_transpose1d(x, weight, stride=2, output_padding=2, dilation=3)
    assert calls.providers()["conv_input"] == {"cpu": 1}
    close(found, F.conv_transpose1d(y, other, stride=2, output_padding=2, dilation=3), "float32")
    text = str(torch.explain("conv_transpose1d", x, weight, stride=2, output_padding=2, dilation=3))
    assert "declines: an output padding of a whole stride" in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 20), (1, 20), (2, 3, 20), (20,)], ids=str)
def test_linear(shape, dtype):
    compare(F.linear, dtype, ["linear"], shape, (9, 20), (9,))
    compare(F.linear, dtype, ["linear"], shape, (9, 20))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_matrices_that_lie_in_any_order(dtype):
    compare(lambda a, b: a.mm(b), dtype, ["mm"], (5, 30), (30, 8))
    compare(lambda a, b: a.t().mm(b.t()), dtype, ["mm"], (30, 5), (8, 30))
    compare(lambda a, b: a[1:, ::2].mm(b[:, 3:]), dtype, ["mm"], (6, 60), (30, 8))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_spreads_as_it_does_in_numpy(value):
    a, b = RNG.standard_normal((4, 6)).astype("f"), RNG.standard_normal((6, 5)).astype("f")
    a[1, 2] = value
    wanted = (a[:, :, None].astype(float) * b).sum(1)
    found = served(lambda: torch.tensor(a).mm(torch.tensor(b)), "mm").numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    image = RNG.standard_normal((1, 2, 6, 6)).astype("f")
    image[0, 0, 0, 0] = value
    y = served(lambda: F.conv2d(torch.tensor(image), torch.ones(1, 2, 3, 3)), "conv").numpy()
    assert not np.isfinite(y[0, 0, 0, 0]) and np.isfinite(y[0, 0, 1:, 1:]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_averages_and_their_gradients(dims, counted, dtype):
    def pool(x):
        return getattr(F, f"avg_pool{dims}d")(x, 3, 2, 1, count_include_pad=counted)

    compare(pool, dtype, ["avg_pool", "avg_pool_backward"], (2, 3, *(9, 7, 5)[:dims]))


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"divisor_override": 3}, "a divisor of one's own"),
        ({"ceil_mode": True}, "windows that end after the padding"),
    ],
    ids=["divisor", "ceil"],
)
def test_averages_that_are_left_to_the_cpu_plug_in(options, reason):
    (x,), (y,) = operands("float32", (1, 2, 8, 8))
    with torch.backends.trace() as calls:
        found = F.avg_pool2d(x, 3, 2, **options)
    assert calls.providers()["avg_pool"] == {"cpu": 1}
    close(found, F.avg_pool2d(y, 3, 2, **options), "float32")
    assert f"declines: {reason}" in str(torch.explain("avg_pool2d", x, 3, 2, **options))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_gradient_of_softmax(dim, name, dtype):
    few, many = operands(dtype, (3, 4, 5))
    seed = RNG.standard_normal((3, 4, 5))
    found = []
    for x in (*few, *many):
        x.requires_grad_()
        result = getattr(F, name)(x, dim)

        def run(x=x, result=result):
            return torch.autograd.grad(result, x, torch.tensor(seed).to(x.dtype))[0]

        found.append(served(run, f"{name}_backward") if x.dtype is few[0].dtype else run())
    difference = np.abs(found[0].double().numpy() - found[1].numpy()).max()
    # In bfloat16 the result that the gradient starts from and the seed are rounded already.
    assert difference <= {"float32": 2e-6, "bfloat16": 0.06}[dtype]


def test_norms():
    compare_norm = [
        (lambda x, w, b: F.layer_norm(x, (6,), w, b), "row_norm", (4, 5, 6), (6,), (6,)),
        (lambda x, w: F.layer_norm(x, (6,), w), "row_norm", (4, 6), (6,)),
        (lambda x, m, w, b: F.batch_norm(x, m, m * m + 1, w, b), "batch_norm_eval", (3, 4, 5), (4,), (4,), (4,)),
        (lambda x, m: F.batch_norm(x, m, m * m + 1), "batch_norm_eval", (3, 4), (4,)),
    ]
    for function, operator, *shapes in compare_norm:
        few, many = operands("float32", *shapes)
        close(served(lambda function=function, few=few: function(*few), operator), function(*many), "float32")


def test_views_give_what_their_copies_give():
    (base, weight), _ = operands("float32", (4, 9, 10, 3), (5, 4, 3, 3))
    views = [base[1:3, 1:5, ::2], base.permute(0, 3, 1, 2)[:, :, 1:, 1:], base[:1, :4, :, :].expand(3, 4, 10, 3)]
    for view in views:
        kernel = weight[:, : view.shape[1]]
        assert torch.equal(
            F.conv2d(view, kernel, padding=1), F.conv2d(view.contiguous(), kernel.contiguous(), padding=1)
        )
        assert torch.equal(F.avg_pool2d(view, 2), F.avg_pool2d(view.contiguous(), 2))


def test_what_is_empty_is_left_to_the_cpu_plug_in():
    weight = torch.ones(2, 3, 3, 3, requires_grad=True)
    with torch.backends.trace() as calls:
        y = F.conv2d(torch.ones(0, 3, 5, 5), weight)
        y.sum().backward()
        assert torch.ones(0, 4).mm(torch.ones(4, 2)).shape == (0, 2)
        assert F.linear(torch.ones(3, 0), torch.ones(2, 0), torch.ones(2)).tolist() == [[1, 1]] * 3
        assert F.avg_pool2d(torch.ones(0, 2, 4, 4), 2).shape == (0, 2, 2, 2)
    assert y.shape == (0, 2, 3, 3) and not weight.grad.any()
    assert all("mkldnn" not in each for each in calls.providers().values())


def test_higher_derivatives_are_those_of_the_cpu_plug_in():
    few, many = operands("float32", (1, 2, 5, 5), (2, 2, 3, 3))

    def second(x, weight):
        x, weight = x.requires_grad_(), weight.requires_grad_()
        (slope,) = torch.autograd.grad(F.conv2d(x, weight).pow(2).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.pow(2).sum(), [x, weight])

    for found, wanted in zip(second(*few), second(*many), strict=True):
        close(found, wanted, "float32")


def test_bad_calls_are_refused_as_without_the_plug_in():
    with pytest.raises(RuntimeError, match=r"expected input .* to have 3 channels, but got 4 channels instead"):
        F.conv2d(torch.ones(1, 4, 5, 5), torch.ones(2, 3, 3, 3))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        F.linear(torch.ones(2, 3), torch.ones(4, 5))
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5))
    assert F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(1)).tolist() == [[4] * 4] * 2
