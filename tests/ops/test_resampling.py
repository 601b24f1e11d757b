"""Interpolation and grid sampling against scipy and closed forms; shuffles; errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

rng = np.random.default_rng(0)


def places(length, size, align, factor=None):
    """Where each output lies in the input."""
    at = np.arange(size)
    if align:
        return at * ((length - 1) / (size - 1) if size > 1 else 0)
    scale = 1 / factor if factor else length / size
    return (at + 0.5) * scale - 0.5


@pytest.mark.parametrize("dims, mode", [(1, "linear"), (2, "bilinear"), (3, "trilinear")])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(7, 3, 5), (2, 9, 1)])
def test_linear(dims, mode, align, size):
    shape, size = (4, 5, 6)[:dims], size[:dims]
    x = rng.standard_normal((2, 3, *shape))
    result = F.interpolate(flambeau.tensor(x), size, mode=mode, align_corners=align).numpy()
    grid = np.meshgrid(*[np.clip(places(n, m, align), 0, n - 1) for n, m in zip(shape, size)], indexing="ij")
    for plane, got in zip(x.reshape(6, *shape), result.reshape(6, *size)):
        np.testing.assert_allclose(got, map_coordinates(plane, grid, order=1, mode="nearest"), atol=1e-12)


def test_nearest_and_area():
    x = rng.standard_normal((2, 3, 6, 4))
    result = F.interpolate(flambeau.tensor(x), (4, 10)).numpy()
    rows, columns = np.floor(np.arange(4) * 6 / 4).astype(int), np.floor(np.arange(10) * 4 / 10).astype(int)
    np.testing.assert_array_equal(result, x[:, :, rows][..., columns])
    doubled = F.interpolate(flambeau.tensor(x), scale_factor=2).numpy()
    np.testing.assert_array_equal(doubled, x.repeat(2, 2).repeat(2, 3))
    area = F.interpolate(flambeau.tensor(x), (3, 2), mode="area").numpy()
    np.testing.assert_allclose(area, x.reshape(2, 3, 3, 2, 2, 2).mean((3, 5)), atol=1e-14)
    exact = F.interpolate(flambeau.tensor(x), (3, 4), mode="nearest-exact").numpy()
    np.testing.assert_array_equal(exact, x[:, :, [1, 3, 5]])


def test_scale_factor_and_its_rounded_size_differ():
    x = np.arange(5.0).reshape(1, 1, 5)
    kept = F.interpolate(flambeau.tensor(x), scale_factor=1.5, mode="linear", align_corners=False).numpy()[0, 0]
    fresh = F.interpolate(
        flambeau.tensor(x), scale_factor=1.5, mode="linear", align_corners=False, recompute_scale_factor=True
    ).numpy()[0, 0]
    np.testing.assert_allclose(kept, np.clip(places(5, 7, False, 1.5), 0, 4), atol=1e-12)
    np.testing.assert_allclose(fresh, np.clip(places(5, 7, False), 0, 4), atol=1e-12)


def test_cubic_reproduces_lines_and_its_kernel():
    x = np.broadcast_to(np.arange(12.0), (1, 1, 12, 12)).copy()
    result = F.interpolate(flambeau.tensor(x), (12, 34), mode="bicubic", align_corners=True).numpy()
    inside = slice(4, -4)  # away from the borders
    np.testing.assert_allclose(result[0, 0, 5, inside], places(12, 34, True)[inside], atol=0.12)
    impulse = np.zeros((1, 1, 9, 9))
    impulse[0, 0, 4, 4] = 1
    got = F.interpolate(flambeau.tensor(impulse), (9, 17), mode="bicubic", align_corners=True).numpy()[0, 0, 4]
    # Keys' kernel with a = -3/4 at distances 1/2 and 3/2.
    np.testing.assert_allclose(got[[7, 9]], 0.59375, atol=1e-12)
    np.testing.assert_allclose(got[[5, 11]], -0.09375, atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_interpolate_gradients(mode):
    x = flambeau.tensor(rng.standard_normal((1, 2, 3, 4)), requires_grad=True)
    assert gradcheck(lambda v: F.interpolate(v, (4, 3), mode=mode), x)
    assert gradgradcheck(lambda v: F.interpolate(v, (4, 3), mode=mode), x)


def test_older_names_warn():
    x = flambeau.tensor(rng.standard_normal((1, 1, 3, 3)))
    with pytest.warns(DeprecationWarning, match="interpolate"):
        nearest = F.upsample_nearest(x, scale_factor=2)
    np.testing.assert_array_equal(nearest.numpy(), F.interpolate(x, scale_factor=2).numpy())
    with pytest.warns(DeprecationWarning, match="align_corners=True"):
        bilinear = F.upsample_bilinear(x, size=5)
    np.testing.assert_array_equal(bilinear.numpy(), F.interpolate(x, 5, mode="bilinear", align_corners=True).numpy())
    with pytest.warns(DeprecationWarning):
        F.upsample(x, 4)


def reflected(at, n, align):
    low, high = (0, n - 1) if align else (-0.5, n - 0.5)
    span = high - low
    turned = np.mod(at - low, 2 * span)
    return np.clip(np.where(turned > span, 2 * span - turned, turned) + low, 0, n - 1)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
def test_grid_sample(dims, padding, align):
    shape = (5, 4, 6)[:dims]
    x, grid = rng.standard_normal((2, 3, *shape)), rng.uniform(-1.6, 1.6, (2, *(3, 2, 4)[:dims], dims))
    for mode, order in (("bilinear", 1), ("nearest", 0)):
        result = F.grid_sample(flambeau.tensor(x), flambeau.tensor(grid), mode, padding, align).numpy()
        for n in range(2):
            at = []
            for dim, length in enumerate(shape):
                g = grid[n, ..., dims - 1 - dim]
                place = (g + 1) / 2 * (length - 1) if align else ((g + 1) * length - 1) / 2
                at.append(
                    {"zeros": place, "border": np.clip(place, 0, length - 1)}.get(
                        padding, reflected(place, length, align)
                    )
                )
            for c in range(3):
                if padding == "zeros":  # zeros around, interpolated with
                    expected = map_coordinates(
                        np.pad(x[n, c], 3), [each + 3 for each in at], order=order, mode="constant"
                    )
                else:
                    expected = map_coordinates(x[n, c], at, order=order, mode="nearest")
                np.testing.assert_allclose(result[n, c], expected, atol=1e-11)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_gradients(mode, padding):
    x = flambeau.tensor(rng.standard_normal((1, 2, 3, 4)), requires_grad=True)
    grid = flambeau.tensor(rng.uniform(-0.9, 0.9, (1, 2, 2, 2)), requires_grad=True)
    assert gradcheck(lambda a, b: F.grid_sample(a, b, mode, padding, False), (x, grid))
    if padding == "zeros" and mode == "bilinear":
        assert gradgradcheck(lambda a, b: F.grid_sample(a, b, mode, padding, False), (x, grid))


@pytest.mark.parametrize("align", [True, False])
def test_affine_grid(align):
    theta = rng.standard_normal((2, 2, 3))
    grid = F.affine_grid(flambeau.tensor(theta), (2, 1, 3, 4), align).numpy()
    ys, xs = (np.linspace(-1, 1, n) * (1 if align else (n - 1) / n) for n in (3, 4))
    points = np.stack([*np.meshgrid(xs, ys), np.ones((3, 4))], -1)
    np.testing.assert_allclose(grid, np.einsum("hwk,nik->nhwi", points, theta), atol=1e-12)
    identity = flambeau.tensor([[[1.0, 0, 0], [0, 1, 0]]])
    x = flambeau.tensor(rng.standard_normal((1, 2, 5, 6)).astype("float32"))
    np.testing.assert_allclose(
        F.grid_sample(x, F.affine_grid(identity, x.shape, align), align_corners=align).numpy(), x.numpy(), atol=1e-5
    )
    assert F.affine_grid(flambeau.zeros(1, 3, 4), (1, 1, 2, 3, 4)).shape == (1, 2, 3, 4, 3)
    assert gradcheck(lambda t: F.affine_grid(t, (2, 1, 2, 3), align), flambeau.tensor(theta, requires_grad=True))


def test_pixel_shuffle():
    x = rng.standard_normal((2, 12, 3, 4))
    result = F.pixel_shuffle(flambeau.tensor(x), 2)
    assert result.shape == (2, 3, 6, 8)
    expected = np.zeros((2, 3, 6, 8))
    for c, i, j in np.ndindex(3, 2, 2):
        expected[:, c, i::2, j::2] = x[:, c * 4 + i * 2 + j]
    np.testing.assert_array_equal(result.numpy(), expected)
    np.testing.assert_array_equal(F.pixel_unshuffle(result, 2).numpy(), x)
    np.testing.assert_array_equal(F.pixel_shuffle(flambeau.tensor(x)[0], 2).numpy(), expected[0])


def z(*shape):
    return flambeau.zeros(*shape)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: F.interpolate(z(1, 1, 3)), ValueError, "either size or scale_factor"),
        (lambda: F.interpolate(z(1, 1, 3), 2, 2.0), ValueError, "only one of size or scale_factor"),
        (lambda: F.interpolate(z(1, 1, 3), 2, mode="bilinear"), NotImplementedError, "3D takes nearest, linear"),
        (lambda: F.interpolate(z(1, 1, 3), 2, mode="cube"), NotImplementedError, "unknown mode 'cube'"),
        (lambda: F.interpolate(z(1, 1, 3), 2, align_corners=True), ValueError, "align_corners option can only"),
        (lambda: F.interpolate(z(1, 1, 3), 0), RuntimeError, "greater than 0"),
        (lambda: F.interpolate(z(1, 1, 3, 3), (2,)), ValueError, "a size of 2 numbers"),
        (lambda: F.grid_sample(z(1, 1, 3, 3), z(1, 2, 2, 3)), RuntimeError, "last dimension|dimension of 2 or 3"),
        (lambda: F.grid_sample(z(1, 1, 3, 3), z(1, 2, 2, 2), "linear"), ValueError, "expected mode to be"),
        (lambda: F.grid_sample(z(1, 1, 3, 3), z(1, 2, 2, 2), padding_mode="wrap"), ValueError, "expected padding_mode"),
        (lambda: F.affine_grid(z(1, 2, 2), (1, 1, 2, 2)), ValueError, "shape \\[1, 2, 3\\]"),
        (lambda: F.pixel_shuffle(z(1, 6, 2, 2), 2), RuntimeError, "not divisible by 4"),
        (lambda: F.pixel_shuffle(z(6, 2), 2), RuntimeError, "at least 3 dimensions"),
        (lambda: F.pixel_unshuffle(z(1, 3, 4), 2), RuntimeError, "divisible by downscale_factor"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_interpolated_as_numbers_and_rounded(mode):
    x = np.random.default_rng(3).integers(0, 256, (2, 3, 5, 4)).astype(np.uint8)
    fine = F.interpolate(flambeau.from_numpy(x.astype(np.float32)), (9, 7), mode=mode, align_corners=True).numpy()
    result = F.interpolate(flambeau.from_numpy(x), (9, 7), mode=mode, align_corners=True)
    assert result.dtype is flambeau.uint8
    np.testing.assert_array_equal(result.numpy(), np.clip(np.floor(fine + 0.5), 0, 255))
    np.testing.assert_array_equal(result.numpy()[:, :, ::8, ::6], x[:, :, ::4, ::3])  # the corners keep their place


def test_other_integers_are_only_taken_whole():
    x = flambeau.arange(4).reshape(1, 1, 2, 2)
    assert F.interpolate(x, (4, 4))[0, 0, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(NotImplementedError, match="mode 'bilinear' is for floating point and uint8, got int64"):
        F.interpolate(x, (4, 4), mode="bilinear")
