"""Operators that are made of others: called as users call them, in float32 unless integers are their business."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..operands import Draw, Operand
from ..samples import samples

Calls = list[tuple[Any, ...]]
Maker = Callable[[Draw], Calls]


def _signs(d: Draw, *shape: int) -> Operand:
    """1 and -1 at random."""
    return d.of(np.where(d.mask(*shape).values, 1, -1))


_MOVING: Final[dict[str, Maker]] = {
    "reshape": lambda d: [(d(3, 4), 2, 6), (d(3, 4), (-1,))],
    "view_as": lambda d: [(d(3, 4), d(4, 3))],
    "reshape_as": lambda d: [(d(3, 4), d(2, 6))],
    "flatten": lambda d: [(d(2, 3, 4),), (d(2, 3, 4), 1)],
    "unflatten": lambda d: [(d(2, 6), 1, (2, 3))],
    "expand_as": lambda d: [(d(1, 4), d(3, 4))],
    "broadcast_to": lambda d: [(d(1, 4), (3, 4))],
    "sum_to_size": lambda d: [(d(3, 4), 1, 4), (d(2, 3, 4), 3, 1)],
    "swapaxes": lambda d: [(d(2, 3, 4), 0, 2)],
    "movedim": lambda d: [(d(2, 3, 4), 0, 2)],
    "detach_": lambda d: [(d(3),)],
    "fill": lambda d: [(d(3, 4), 2)],
    "zero_": lambda d: [(d(3, 4),)],
    "contiguous": lambda d: [(d(3, 4),)],
    "narrow": lambda d: [(d(3, 5), 1, 1, 3)],
    "stack": lambda d: [([d(3, 4), d(3, 4)],), ([d(3, 4), d(3, 4)], 2)],
    "hstack": lambda d: [([d(3, 4), d(3, 2)],), ([d(3), d(2)],)],
    "vstack": lambda d: [([d(3, 4), d(1, 4)],), ([d(3), d(3)],)],
    "diag_embed": lambda d: [(d(2, 3),), (d(3), 1)],
    "diag": lambda d: [(d(4),), (d(3, 4),), (d(3), -1)],
    "diagflat": lambda d: [(d(2, 2),)],
    "fliplr": lambda d: [(d(3, 4),)],
    "flipud": lambda d: [(d(3, 4),)],
    "roll": lambda d: [(d(3, 4), 1), (d(3, 4), (1, -2), (0, 1))],
    "repeat": lambda d: [(d(3, 4), 2, 1), (d(3), 2, 2)],
    "tile": lambda d: [(d(3, 4), 2), (d(3), 2, 2)],
    "broadcast_tensors": lambda d: [(d(3, 1), d(4))],
    "meshgrid": lambda d: [(d(3), d(4), {"indexing": "ij"}), (d(3), d(4), {"indexing": "xy"})],
    "split": lambda d: [(d(7, 3), 3), (d(7, 3), [2, 1], 1)],
    "chunk": lambda d: [(d(7, 3), 3)],
    "tensor_split": lambda d: [(d(7, 3), 3), (d(7, 3), (2, 5))],
    "select_scatter": lambda d: [(d(3, 4), d(4), 0, 1)],
    "slice_scatter": lambda d: [(d(5, 4), d(2, 4), 0, 1, 5, 2)],
    "diagonal_scatter": lambda d: [(d(3, 4), d(3))],
    "pad": lambda d: [
        (d(2, 3, 5), (1, 2)),
        (d(2, 3, 5), (1, 2), "reflect"),
        (d(2, 3, 5), (1, 2), "replicate"),
        (d(2, 3, 5), (1, 2), "circular"),
    ],
    "pixel_shuffle": lambda d: [(d(2, 8, 3, 2), 2)],
    "pixel_unshuffle": lambda d: [(d(2, 3, 4, 6), 2)],
}  # fmt: skip

_INDEXING: Final[dict[str, Maker]] = {
    "scatter": lambda d: [
        (d(3, 5), 1, d.places([[0, 4], [1, 2]]), d(2, 2)),
        (d(3, 5), 1, d.places([[0, 4], [1, 2]]), 2),
    ],
    "scatter_add": lambda d: [(d(3, 5), 1, d.places([[0, 0], [1, 2]]), d(2, 2))],
    "scatter_add_": lambda d: [(d(3, 5), 1, d.places([[0, 0], [1, 2]]), d(2, 2))],
    "index_add": lambda d: [
        (d(3, 5), 0, d.places([2, 2]), d(2, 5)),
        (d(3, 5), 0, d.places([2, 0]), d(2, 5), {"alpha": 2}),
    ],
    "index_copy": lambda d: [(d(3, 5), 0, d.places([2, 0]), d(2, 5))],
    "index_fill": lambda d: [(d(3, 5), 0, d.places([2, 0]), 1)],
    "put": lambda d: [(d(3, 5), d.places([2, 7]), d(2)), (d(3, 5), d.places([2, 2]), d(2), True)],
    "masked_fill": lambda d: [(d(3, 5), d.mask(3, 5), 2), (d(3, 5), d.mask(5), 2)],
    "masked_scatter": lambda d: [(d(3, 5), d.mask(3, 5), d(15))],
    "index_put": lambda d: [(d(3, 5), [d.places([2, 0]), d.places([1, 4])], d(2))],
    "one_hot": lambda d: [(d.places([0, 3, 1]),), (d.places([[0, 3]]), 5)],
    "embedding_bag": lambda d: [
        (d.places([[0, 3], [1, 1]]), d(4, 3)),
        (d.places([0, 3, 1]), d(4, 3), d.places([0, 2]), {"mode": "sum", "per_sample_weights": d(3)}),
        (d.places([0, 3, 1]), d(4, 3), d.places([0, 2]), {"mode": "max"}),
    ],
}  # fmt: skip

_NUMBERS: Final[dict[str, Maker]] = {
    "xlogy": lambda d: [(d(3, 4), d(3, 4, low=0.5))],
    "square": lambda d: [(d(3, 4),)],
    "isclose": lambda d: [(d.of([1, 2, 3]), d.of([1, 2 + 1e-6, 4]))],
    "allclose": lambda d: [(d.of([1, 2]), d.of([1, 2])), (d.of([1, 2]), d.of([1, 3]))],
    "equal": lambda d: [(d.of([1, 2]), d.of([1, 2])), (d.of([1, 2]), d.of([1, 3]))],
    "count_nonzero": lambda d: [(d.of([[0, 1, 2], [0, 0, 3]]),), (d.of([[0, 1, 2], [0, 0, 3]]), 1)],
    "var_mean": lambda d: [(d(3, 5),), (d(3, 5), 1)],
    "std_mean": lambda d: [(d(3, 5),), (d(3, 5), 1)],
    "norm": lambda d: [(d(3, 5),), (d(3, 5), 1, 1), (d(3, 5), 3, 0, True)],
    "dist": lambda d: [(d(3, 5), d(3, 5)), (d(3, 5), d(3, 5), 1)],
    "logsumexp": lambda d: [(d(3, 5), 1), (d(3, 5), (0, 1), True)],
    "max": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), 1), (d(3, 5), d(3, 5))],
    "min": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), 1), (d(3, 5), d(3, 5))],
    "aminmax": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), {"dim": 1})],
    "argsort": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), 0, True)],
    "msort": lambda d: [(d.distinct(3, 5),)],
    "median": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), 1)],
    "nanmedian": lambda d: [(d.distinct(3, 5),), (d.distinct(3, 5), 1)],
    "unique": lambda d: [(d.of([3, 1, 3, 2]), True, True, True), (d.of([[1, 2], [1, 2], [0, 2]]), {"dim": 0})],
    "histc": lambda d: [(d(20), 5, -3, 3)],
    "softmin": lambda d: [(d(3, 5), 1)],
    "cross": lambda d: [(d(4, 3), d(4, 3), 1)],
    "trace": lambda d: [(d(3, 4),)],
    "outer": lambda d: [(d(3), d(4))],
    "ger": lambda d: [(d(3), d(4))],
    "addmv": lambda d: [(d(3), d(3, 4), d(4)), (d(3), d(3, 4), d(4), {"beta": 2, "alpha": 3})],
    "addbmm": lambda d: [(d(3, 5), d(2, 3, 4), d(2, 4, 5))],
    "addr": lambda d: [(d(3, 4), d(3), d(4))],
    "einsum": lambda d: [("ij,jk->ik", d(3, 4), d(4, 5)), ("bij,bjk->bi", d(2, 3, 4), d(2, 4, 5)), ("ii->i", d(3, 3))],
    "tensordot": lambda d: [(d(3, 4, 5), d(4, 5, 2)), (d(3, 4), d(3, 5), ([0], [0]))],
    "bilinear": lambda d: [(d(2, 3), d(2, 4), d(5, 3, 4), d(5))],
    "renorm": lambda d: [(d(3, 5), 2, 0, 1.5)],
    "normalize": lambda d: [(d(3, 5),), (d(3, 5), 1.0, 0)],
    "cosine_similarity": lambda d: [(d(3, 5), d(3, 5))],
    "pairwise_distance": lambda d: [(d(3, 5), d(3, 5)), (d(3, 5), d(3, 5), 1.0, 1e-6, True)],
}  # fmt: skip

_LOSSES: Final[dict[str, Maker]] = {
    "l1_loss": lambda d: [(d(3, 5), d(3, 5)), (d(3, 5), d(3, 5), {"reduction": "none"})],
    "mse_loss": lambda d: [(d(3, 5), d(3, 5)), (d(3, 5), d(3, 5), {"reduction": "sum"})],
    "smooth_l1_loss": lambda d: [(d(3, 5), d(3, 5), {"beta": 0.75})],
    "huber_loss": lambda d: [(d(3, 5), d(3, 5), "mean", 0.75)],
    "binary_cross_entropy": lambda d: [(d(3, 5, low=0.1, high=0.9), d(3, 5, low=0.1, high=0.9))],
    "binary_cross_entropy_with_logits": lambda d: [
        (d(3, 5), d(3, 5, low=0.1, high=0.9)),
        (d(3, 5), d(3, 5, low=0.1, high=0.9), {"pos_weight": d(5, low=1)}),
    ],
    "nll_loss": lambda d: [
        (d(4, 5), d.places([0, 4, 2, 1])),
        (d(4, 5), d.places([0, 4, 2, 1]), d(5, low=0.5), {"reduction": "sum"}),
    ],
    "cross_entropy": lambda d: [
        (d(4, 5), d.places([0, 4, 2, 1])),
        (d(4, 5), d.places([0, 4, -100, 1]), {"label_smoothing": 0.25}),
        (d(4, 5), d(4, 5, low=0.1)),
    ],
    "kl_div": lambda d: [(d(3, 5), d(3, 5, low=0.1)), (d(3, 5), d(3, 5), {"log_target": True, "reduction": "sum"})],
    "poisson_nll_loss": lambda d: [(d(3, 5), d(3, 5, low=0.5)), (d(3, 5, low=0.5), d(3, 5, low=1.5), False, True)],
    "gaussian_nll_loss": lambda d: [(d(3, 5), d(3, 5), d(3, 5, low=0.5))],
    "hinge_embedding_loss": lambda d: [(d(3, 5), _signs(d, 3, 5))],
    "soft_margin_loss": lambda d: [(d(3, 5), _signs(d, 3, 5))],
    "margin_ranking_loss": lambda d: [(d(5), d(5), _signs(d, 5), 0.5)],
    "multi_margin_loss": lambda d: [
        (d(4, 5), d.places([0, 4, 2, 1])),
        (d(4, 5), d.places([0, 4, 2, 1]), 2, 0.5, d(5, low=0.5)),
    ],
    "multilabel_margin_loss": lambda d: [(d(2, 4), d.places([[3, 0, -1, 1], [2, -1, 0, 0]]))],
    "multilabel_soft_margin_loss": lambda d: [(d(3, 5), d.of(d.mask(3, 5).values))],
    "cosine_embedding_loss": lambda d: [(d(3, 5), d(3, 5), _signs(d, 3), 0.25)],
    "triplet_margin_loss": lambda d: [(d(3, 5), d(3, 5), d(3, 5)), (d(3, 5), d(3, 5), d(3, 5), {"swap": True})],
    "triplet_margin_with_distance_loss": lambda d: [(d(3, 5), d(3, 5), d(3, 5))],
}  # fmt: skip

_LAYERS: Final[dict[str, Maker]] = {
    "batch_norm": lambda d: [(d(4, 3, 5), d(3), d(3, low=0.5), d(3), d(3), training) for training in (False, True)],
    "instance_norm": lambda d: [(d(2, 3, 5), None, None, d(3), d(3))],
    "layer_norm": lambda d: [(d(3, 5), (5,), d(5), d(5)), (d(2, 3, 5), (3, 5))],
    "group_norm": lambda d: [(d(2, 4, 5), 2, d(4), d(4))],
    "local_response_norm": lambda d: [(d(2, 5, 4), 3, 0.5)],
    "dropout": lambda d: [(d(3, 5), 0.5, False), (d(3, 5), 1.0)],
    "dropout1d": lambda d: [(d(2, 3, 5), 0.5, False), (d(2, 3, 5), 1.0)],
    "dropout2d": lambda d: [(d(2, 3, 4, 4), 0.5, False)],
    "dropout3d": lambda d: [(d(2, 3, 2, 2, 2), 0.5, False)],
    "alpha_dropout": lambda d: [(d(3, 5), 0.5, False), (d(3, 5), 1.0, True)],
    "feature_alpha_dropout": lambda d: [(d(3, 5), 0.5, False)],
    "conv1d": lambda d: [(d(2, 4, 7), d(6, 2, 3), d(6), 2, 1, 1, 2), (d(2, 4, 7), d(6, 4, 3), None, 1, "same")],
    "conv2d": lambda d: [(d(2, 3, 6, 5), d(4, 3, 3, 2), d(4), (1, 2), 1)],
    "conv3d": lambda d: [(d(1, 2, 4, 4, 4), d(3, 2, 2, 2, 2), d(3))],
    "conv_transpose1d": lambda d: [(d(2, 4, 5), d(4, 3, 3), d(3), 2, 1, 1)],
    "conv_transpose2d": lambda d: [(d(2, 4, 3, 4), d(4, 3, 3, 2), d(3), 2)],
    "conv_transpose3d": lambda d: [(d(1, 2, 2, 3, 2), d(2, 3, 2, 2, 2), d(3))],
    "convolution": lambda d: [(d(2, 3, 6), d(4, 3, 3), d(4), (1,), (1,), (1,), False, (0,), 1)],
    "conv_tbc": lambda d: [(d(6, 2, 3), d(3, 3, 4), d(4), 1)],
    "nn.functional.unfold": lambda d: [(d(2, 3, 5, 6), (2, 3))],
    "fold": lambda d: [(d(2, 12, 20), (5, 6), (2, 2))],
    "affine_grid": lambda d: [(d(2, 2, 3), (2, 3, 4, 5), False)],
    "grid_sample": lambda d: [(d(2, 3, 4, 5), d(2, 3, 4, 2, low=-0.9, high=0.9), mode, "zeros", False) for mode in ("bilinear", "nearest")],
    "interpolate": lambda d: [
        (d(2, 3, 4), 7),
        (d(2, 3, 4), 7, None, "linear", False),
        (d(2, 3, 4, 5), None, 2, "bilinear", True),
        (d(2, 3, 4, 5), (3, 3), None, "area"),
    ],
    "upsample": lambda d: [(d(2, 3, 4), None, 2)],
    "upsample_nearest": lambda d: [(d(2, 3, 4, 5), None, 2)],
    "upsample_bilinear": lambda d: [(d(2, 3, 4, 5), (7, 6))],
}  # fmt: skip

#: For each number of dimensions: the size of a plane.
_PLANES: Final = {1: (7,), 2: (6, 7), 3: (4, 5, 4)}


def _some_places(d: Draw, plane: tuple[int, ...], wanted: tuple[int, ...]) -> Operand:
    """Different places in a plane, as maxima come from."""
    places = d.rng.permutation(math.prod(plane))[: math.prod(wanted)]
    return d.places(places.reshape(1, 1, *wanted))


def _pools(dims: int) -> dict[str, Maker]:
    plane = _PLANES[dims]
    halves = tuple(each // 2 for each in plane)
    return {
        f"max_pool{dims}d": lambda d: [(d.distinct(2, 3, *plane), 2), (d.distinct(2, 3, *plane), 3, 2, 1, 1, True)],
        f"max_pool{dims}d_with_indices": lambda d: [(d.distinct(2, 3, *plane), 2)],
        f"avg_pool{dims}d": lambda d: [(d(2, 3, *plane), 2), (d(2, 3, *plane), 3, 2, 1, True, False)],
        f"adaptive_avg_pool{dims}d": lambda d: [(d(2, 3, *plane), 3)],
        f"adaptive_max_pool{dims}d": lambda d: [(d.distinct(2, 3, *plane), 3, True)],
        f"lp_pool{dims}d": lambda d: [(d(2, 3, *plane, low=0.5), 2, 2)],
        f"max_unpool{dims}d": lambda d: [(d(1, 1, *halves), _some_places(d, plane, halves), 2, None, 0, plane)],
    }  # fmt: skip


_FRACTIONAL: Final[dict[str, Maker]] = {
    f"fractional_max_pool{dims}d": lambda d, dims=dims: [  # type: ignore[misc]
        (d.distinct(2, 3, *_PLANES[dims]), 2, 2, {"_random_samples": d(2, 3, dims, low=0.1, high=0.9)})
    ]
    for dims in (2, 3)
}

for _table in (_MOVING, _INDEXING, _NUMBERS, _LOSSES, _LAYERS, *map(_pools, (1, 2, 3)), _FRACTIONAL):
    for _name, _make in _table.items():
        samples(_name)(_make)
