"""What primitives are composed of, proven by the kit as if each body were a backend's kernel."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.backend import (
    ArrayMemory,
    Backend,
    Kernel,
    bool_,
    float32,
    float64,
    int32,
    int64,
    intern,
    pointwise,
    returning,
    uint8,
    writing,
)
from flambeau.backends import register
from flambeau.conformance.suite import Suite
from flambeau.device import device
from flambeau.dispatch.operator import operators
from flambeau.ops.composed import OTHERS, POINTWISE

FLOATS = (float32, float64)
NUMBERS = (uint8, int32, int64, *FLOATS)
ALL = (bool_, *NUMBERS)
#: bodies of operators that bool, or whole numbers, do not have
NO_BOOL = [
    "add_scaled", "addcmul", "addmm", "arange_", "argmin", "clip_numbers", "dot", "linear", "matmul", "mv",
    "neg", "relu", "sub", "threshold_backward",
]  # fmt: skip
FLOATING = [
    "addcdiv", "batch_norm_eval", "batch_norm_train", "batch_norm_train_backward", "class_loss", "drop",
    "log_softmax", "log_softmax_backward", "mean", "pair_loss", "reciprocal", "row_norm", "row_norm_backward",
    "rsqrt", "sgd_step_", "sigmoid", "sigmoid_backward", "silu", "softmax", "softmax_backward", "std",
    "tanh_backward", "var",
]  # fmt: skip
NARROWER = {**dict.fromkeys(NO_BOOL, NUMBERS), **dict.fromkeys(FLOATING, FLOATS)}


def total(a, dims, keepdim, dtype):
    return np.sum(a, axis=dims, keepdims=keepdim, dtype=np.float64 if dtype in FLOATS else dtype.numpy)


def peak(a, dims, keepdim):
    return np.max(a, axis=dims, keepdims=keepdim)


def draw(a, low, high, seed, offset):
    return np.random.default_rng([seed % 2**64, offset]).uniform(low, high * (1 - 1e-7), a.shape)


#: the bottom
KERNELS = {
    **{name: pointwise(function, ALL) for name, function in {"add": np.add, "mul": np.multiply}.items()},
    **{name: pointwise(function, ALL, bool_) for name, function in {"eq": np.equal, "lt": np.less}.items()},
    **{name: pointwise(function, FLOATS) for name, function in {"div": np.divide, "exp": np.exp, "log": np.log, "sqrt": np.sqrt}.items()},
    "where": returning(lambda a, b, condition: np.where(condition, a, b), ALL),
    "sum": returning(total, ALL, lambda x, dims, keepdim, dtype: dtype),
    "amax": returning(peak, ALL),
    "mm": returning(np.matmul, NUMBERS),
    "argmax": returning(lambda a, dim, keepdim: np.argmax(a, axis=dim, keepdims=keepdim), ALL, int64),
    "uniform_": writing(draw, FLOATS),
    "copy_": writing(lambda target, source: source.astype(target.dtype), ALL),
}  # fmt: skip


#: declared beside their operators
BESIDE = ["addmm", "class_loss", "clone", "dot", "linear", "matmul", "mv", "pair_loss", "sgd_step_"]
BODIES = [*POINTWISE, *OTHERS, *BESIDE]


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_a_kernel(name):
    bodies = {
        each: Kernel(operators[each].otherwise(intern(device("cpu"))), NARROWER.get(each, ALL)) for each in BODIES
    }
    kernels = {**KERNELS, **bodies}
    bottom = Backend("bottom", "bottom", "1", kernels, ArrayMemory(), capabilities=frozenset({"rng"}))
    with register(bottom):
        suite = Suite("bottom", only=[name])
        found = [suite.run(each) for each in suite.cases()]
    assert sum(each.status == "passed" for each in found) >= 8
    assert [(str(each.case), each.detail) for each in found if each.status == "failed"] == []
