"""One call for each operator that has kernels, with the arguments that its kernel takes."""

from __future__ import annotations

import flambeau as torch
from flambeau.dispatch.operator import operators
from flambeau.ops.random import _odds_dtype

__all__ = ["arguments"]


def _values(dtype, *shape):
    count = int(torch.Size(shape).numel())
    return (torch.arange(count) % 5 + 1).to(dtype).reshape(shape)


def _index(*shape):
    return torch.arange(int(torch.Size(shape).numel())).reshape(shape) % 2


def _mask(*shape):
    return _index(*shape).bool()


def _wide(scratch):
    """Scratch memory, which has at least single precision."""
    return scratch if scratch.dtype.itemsize >= 4 else scratch.float()


#: Canonical arguments, given v (makes a tensor of the dtype) and the dtype.
CALLS = {
    "where": lambda v, d: (v(2, 3), v(2, 3), _mask(2, 3)),
    "pair_loss": lambda v, d: (v(2, 3), v(2, 3), "mse", "mean", 0.0),
    "pair_loss_backward": lambda v, d: (v(), v(2, 3), v(2, 3), "mse", "mean", 0.0),
    "class_loss": lambda v, d: (v(4, 3), _index(4), None, _wide(v(5)), True, "mean", -100),
    "class_loss_backward": lambda v, d: (v(), v(4, 3), _index(4), None, _wide(v(5)), True, "mean", -100),
    "copy_": lambda v, d: (v(2, 3), v(2, 3)),
    "fill_": lambda v, d: (v(2, 3), v()),
    "clone": lambda v, d: (v(3, 2).t(),),
    "cast": lambda v, d: (v(2, 3), torch.float64),
    "mm": lambda v, d: (v(2, 3), v(3, 4)),
    "bmm": lambda v, d: (v(5, 2, 3), v(5, 3, 4)),
    "mv": lambda v, d: (v(2, 3), v(3)),
    "dot": lambda v, d: (v(3), v(3)),
    "matmul": lambda v, d: (v(2, 3), v(3, 4)),
    "addmm": lambda v, d: (v(2, 4), v(2, 3), v(3, 4), 1, 1),
    "baddbmm": lambda v, d: (v(5, 2, 4), v(5, 2, 3), v(5, 3, 4), 1, 1),
    "conv": lambda v, d: (v(2, 4, 7, 6), v(6, 2, 3, 2), v(6), (2, 1), (1, 0), (1, 2), 2),
    "conv_input": lambda v, d: (v(2, 6, 4, 4), v(6, 2, 3, 2), None, (7, 6), (2, 1), (1, 0), (1, 2), 2),
    "conv_weight": lambda v, d: (v(2, 4, 7, 6), v(2, 6, 4, 4), (3, 2), (2, 1), (1, 0), (1, 2), 2),
    "im2col": lambda v, d: (v(2, 3, 6, 5), (2, 3), (1, 1), (1, 0), (2, 1)),
    "col2im": lambda v, d: (v(2, 18, 12), (6, 5), (2, 3), (1, 1), (1, 0), (2, 1)),
    "uniform_": lambda v, d: (v(4), 0.0, 1.0, 7, 0),
    "normal_": lambda v, d: (v(4), 0.0, 1.0, 7, 0),
    "exponential_": lambda v, d: (v(4), 1.0, 0.0, 7, 0),
    "cauchy_": lambda v, d: (v(4), 0.0, 1.0, 7, 0),
    "geometric_": lambda v, d: (v(4), -1.5, 0.0, 7, 0),
    "integers_": lambda v, d: (v(4), 0, 2, 7, 0),
    "bernoulli_number_": lambda v, d: (v(4), 1 << 31, 0, 7, 0),
    "bernoulli_each_": lambda v, d: (v(4), torch.zeros(4, dtype=_odds_dtype(v().key)), 7, 0),
    "bernoulli": lambda v, d: (v(4, 2).fill_(0), 7, 0),
    "poisson": lambda v, d: (v(4, 2), 7, 0),
    "multinomial": lambda v, d: (v(2, 4), 3, True, 7, 0),
    "permutation_": lambda v, d: (v(4), 7, 0),
    "normal": lambda v, d: (v(3, 4), v(4)),
    "drop": lambda v, d: (v(4, 2), 0.5, 7, 0),
    "embedding": lambda v, d: (v(4, 3), _index(2, 5), -1, False, False),
    "bag_sums": lambda v, d: (v(4, 3), _index(5), torch.tensor([0, 0, 1, 1, 1]), None, 2, False),
    "sum": lambda v, d: (v(2, 3, 4), (0, 2), True, d if d.category >= 2 else torch.int64),
    "prod": lambda v, d: (v(2, 3, 4), (1,), False, d if d.category >= 2 else torch.int64),
    "lp_norm": lambda v, d: (v(2, 3), (1,), False, 2.0),
    "gather": lambda v, d: (v(2, 3), _index(1, 3), 0),
    "scatter_": lambda v, d: (v(2, 3), _index(1, 3), v(1, 3), 0, ""),
    "index_select": lambda v, d: (v(2, 3), _index(5), 1),
    "index_add_": lambda v, d: (v(2, 3), _index(4), v(4, 3), 0),
    "index_copy_": lambda v, d: (v(2, 3), _index(4), v(4, 3), 0),
    "index_fill_": lambda v, d: (v(2, 3), _index(4), v(), 0),
    "take": lambda v, d: (v(2, 3), _index(4, 2)),
    "put_": lambda v, d: (v(2, 3), _index(4), v(4), True),
    "masked_fill_": lambda v, d: (v(2, 3), _mask(2, 3), v()),
    "masked_select": lambda v, d: (v(2, 3), _mask(2, 3)),
    "masked_scatter_": lambda v, d: (v(2, 3), _mask(2, 3), v(6)),
    "nonzero": lambda v, d: (v(2, 3),),
    "index": lambda v, d: (v(2, 3, 4), [_index(5), None, _index(3, 1)]),
    "index_put_": lambda v, d: (v(2, 3), [_index(5)], v(5, 3), True),
    "cat": lambda v, d: ([v(2, 3), v(4, 3)], 0),
    "tril": lambda v, d: (v(3, 4), 0),
    "triu": lambda v, d: (v(3, 4), 1),
    "flip": lambda v, d: (v(3, 4), (1,)),
    "linear": lambda v, d: (v(2, 3), v(4, 3), v(4)),
    "batch_norm_train": lambda v, d: (v(4, 3, 2), v(3), v(3), 1e-5),
    "batch_norm_train_backward": lambda v, d: (v(4, 3, 2), v(4, 3, 2), v(3), v(3), v(3), 1e-5),
    "batch_norm_eval": lambda v, d: (v(4, 3, 2), v(3), v(3), v(3), v(3), 1e-5),
    "row_norm": lambda v, d: (v(4, 6), v(6), v(6), 0, 6, 1e-5),
    "row_norm_backward": lambda v, d: (v(4, 6), v(4, 6), v(6), v(4), v(4), 0, 6),
    "sgd_step_": lambda v, d: (v(4), v(4), v(4), 0.1, 0.9, 0.0, 0.0, False, False),
    "sgd_steps_": lambda v, d: ([v(4)], [v(4)], [v(4)], 0.1, 0.9, 0.0, 0.0, False, False),
    "adam_step_": lambda v, d: (v(4), v(4), v(4), v(4), None, 0.1, 0.9, 0.99, 1e-8, 0.0, False, 1),
    "adam_steps_": lambda v, d: ([v(4)], [v(4)], [v(4)], [v(4)], [None], 0.1, 0.9, 0.99, 1e-8, 0.0, False, 1),
    "sort": lambda v, d: (v(3, 4), 1, True),
    "topk": lambda v, d: (v(3, 4), 2, 1, True),
    "kthvalue": lambda v, d: (v(3, 4), 2, 1, True),
    "unique_of_all": lambda v, d: (v(7), True, True),
    "constant_pad_nd": lambda v, d: (v(2, 3), (1, 2), 1),
    "plane_add": lambda v, d: (v(2, 3, 4), _index(2, 3, 4), (2, 2)),
    "plane_put": lambda v, d: (v(2, 3, 4), _index(2, 3, 4), (2, 2)),
    "plane_get": lambda v, d: (v(2, 3, 4), _index(2, 2, 2), 2),
    "max_pool": lambda v, d: (v(2, 3, 6, 6), (3, 3), (2, 2), (2, 2), (0, 0), (1, 1)),
    "adaptive_max_pool": lambda v, d: (v(2, 3, 6, 6), (2, 4)),
    "avg_pool": lambda v, d: (v(2, 3, 6, 6), (3, 3), (2, 2), (2, 2), (0, 0), True, 0),
    "avg_pool_backward": lambda v, d: (v(2, 3, 3, 3), (6, 6), (2, 2), (2, 2), (0, 0), True, 0),
    "adaptive_avg_pool": lambda v, d: (v(2, 3, 6, 6), (2, 4)),
    "adaptive_avg_pool_backward": lambda v, d: (v(2, 3, 2, 4), (6, 6)),
    "arange_": lambda v, d: (v(4), 0, 1),
    "linspace_": lambda v, d: (v(4), 0.0, 1.0, 3.0, 2),
    "recurrent_layer": lambda v, d: (v(6, 12), v(2, 3), v(2, 3), v(12, 3), None, None, "lstm", (2, 2, 2), False),
    "recurrent_layer_backward": lambda v, d: (
        [v(6, 3), v(2, 3), v(2, 3)], v(6, 12), v(2, 3), v(2, 3), v(12, 3), None, v(90), v(6, 3), "lstm", (2, 2, 2), False,
        (True, True, True, True, False),
    ),
    "recurrence": lambda v, d: (v(3, 4), v(3, 4), 1, False, True),
    "softmax_backward": lambda v, d: (v(3, 4), v(3, 4), 1),
    "log_softmax_backward": lambda v, d: (v(3, 4), v(3, 4), 1),
}  # fmt: skip
CALLS.update(dict.fromkeys(("mean", "any", "all", "amax", "amin"), lambda v, d: (v(2, 3, 4), (1,), True)))
CALLS.update(dict.fromkeys(("var", "std"), lambda v, d: (v(2, 3, 4), (1,), True, 1.0)))
CALLS.update(
    dict.fromkeys(
        ("max_over", "min_over", "argmax", "argmin", "median_over", "nanmedian_over", "mode"),
        lambda v, d: (v(2, 3), 1, False),
    )
)
CALLS.update(
    dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "softmax", "log_softmax"),
        lambda v, d: (v(2, 3), 1),
    )
)


def arguments(name, dtype):
    """Fresh arguments for a kernel of an operator on a dtype."""
    op = operators[name]

    def values(*shape):
        return _values(dtype, *shape)

    if op.kind == "pointwise":
        return tuple(values(2, 3) for _ in op.parameters)
    return CALLS[name](values, dtype)
