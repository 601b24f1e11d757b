"""Indices, targets and rows that do not exist; nothing is written before all are checked.  Each call is refused with an exact message."""

from __future__ import annotations

import pytest

import flambeau.nn.functional as F

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # indices
    "index_too_large": (
        "f(3)",
        lambda a: a[3],
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "index_too_small": (
        "f(3)",
        lambda a: a[-4],
        IndexError,
        "index -4 is out of bounds for dimension 0 with size 3",
    ),
    "index_int64_min": (
        "f(3)",
        lambda a: a[-(2**63)],
        IndexError,
        "index -9223372036854775808 is out of bounds for dimension 0 with size 3",
    ),
    "index_huge": (
        "f(3)",
        lambda a: a[2**64],
        IndexError,
        "index 18446744073709551616 is out of bounds for dimension 0 with size 3",
    ),
    "index_too_many": (
        "f(3)",
        lambda a: a[0, 0],
        IndexError,
        "too many indices for tensor of dimension 1: 2 for shape [3].",
    ),
    "index_scalar": (
        "f()",
        lambda a: a[0],
        IndexError,
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
        "convert a 0-dim tensor to a number",
    ),
    "index_float": (
        "f(3)",
        lambda a: a[1.0],
        IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)",
    ),
    "index_text": (
        "f(3)",
        lambda a: a["x"],
        IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got str)",
    ),
    "index_float_tensor": (
        "f(3), f(2)",
        lambda a, k: a[k],
        IndexError,
        "tensors used as indices must be long, int, byte or bool tensors, got float32.",
    ),
    "index_bool_shape": (
        "f(3), b(2)",
        lambda a, k: a[k],
        IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at index 0",
    ),
    "index_bool_shape_2": (
        "f(2, 3), b(2, 2)",
        lambda a, k: a[k],
        IndexError,
        "The shape of the mask [2, 2] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
    ),
    "index_tensor_last": (
        "f(3), v(0, 1, 3)",
        lambda a, k: a[k],
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "index_tensor_min": (
        "f(3), v(0, -2**63)",
        lambda a, k: a[k],
        IndexError,
        "index -9223372036854775808 is out of bounds for dimension 0 with size 3",
    ),
    "index_tensor_max": (
        "f(3), v(0, 2**63 - 1)",
        lambda a, k: a[k],
        IndexError,
        "index 9223372036854775807 is out of bounds for dimension 0 with size 3",
    ),
    "index_step_negative": (
        "f(3)",
        lambda a: a[::-1],
        ValueError,
        "step must be greater than zero, got -1.\nUse flip() to reverse a dimension.",
    ),
    "index_step_zero": (
        "f(3)",
        lambda a: a[::0],
        ValueError,
        "step must be greater than zero, got 0.\nUse flip() to reverse a dimension.",
    ),
    "index_broadcast": (
        "f(3, 3), v(0, 1), v(0, 1, 2)",
        lambda a, j, k: a[j, k],
        IndexError,
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    "setitem_last": (
        "f(3), v(0, 1, 3), f(3)",
        lambda a, k, v: a.__setitem__(k, v),
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "setitem_broadcast": (
        "f(3), v(0, 1), f(3)",
        lambda a, k, v: a.__setitem__(k, v),
        RuntimeError,
        "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
    ),
    "index_put_last": (
        "f(3), v(0, 1, -4), f(3)",
        lambda a, k, v: a.index_put_((k,), v),
        IndexError,
        "index -4 is out of bounds for dimension 0 with size 3",
    ),
    "index_select_last": (
        "f(3), v(0, 3)",
        lambda a, k: a.index_select(0, k),
        IndexError,
        "index out of range in self: 3 for 3 slices of dimension 0",
    ),
    "index_add_last": (
        "f(3), v(0, 1, 3), f(3)",
        lambda a, k, v: a.index_add_(0, k, v),
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "index_copy_last": (
        "f(3), v(0, 1, -1), f(3)",
        lambda a, k, v: a.index_copy_(0, k, v),
        IndexError,
        "index_copy_(): index -1 is out of bounds for dimension 0 with size 3",
    ),
    "index_fill_last": (
        "f(3), v(0, 3)",
        lambda a, k: a.index_fill_(0, k, 9),
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "gather_last": (
        "f(3), v(0, 1, 3)",
        lambda a, k: a.gather(0, k),
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "gather_negative": (
        "f(3), v(0, -1)",
        lambda a, k: a.gather(0, k),
        RuntimeError,
        "index -1 is out of bounds for dimension 0 with size 3",
    ),
    "gather_rank": (
        "f(3, 3), v(0, 1)",
        lambda a, k: a.gather(0, k),
        RuntimeError,
        "gather(): Index tensor must have the same number of dimensions as self tensor, got [2] and [3, 3].",
    ),
    "gather_float": (
        "f(3), f(3)",
        lambda a, k: a.gather(0, k),
        RuntimeError,
        "gather(): Expected dtype int32/int64 for index, got float32.\nConvert it with index.long().",
    ),
    "scatter_last": (
        "f(3), v(0, 1, 3), f(3)",
        lambda a, k, v: a.scatter_(0, k, v),
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "scatter_add_last": (
        "f(3), v(0, 1, -1), f(3)",
        lambda a, k, v: a.scatter_add_(0, k, v),
        RuntimeError,
        "index -1 is out of bounds for dimension 0 with size 3",
    ),
    "scatter_source": (
        "f(3), v(0, 1, 2), f(2)",
        lambda a, k, v: a.scatter_(0, k, v),
        RuntimeError,
        "scatter(): Expected index [3] to be no larger than self [3] apart from dimension 0 and to be no "
        "larger size than src [2]",
    ),
    "take_last": (
        "f(2, 3), v(0, 6)",
        lambda a, k: a.take(k),
        IndexError,
        "out of range: tried to access index 6 on a tensor of 6 elements.",
    ),
    "put_last": (
        "f(2, 3), v(0, -7), f(2)",
        lambda a, k, v: a.put_(k, v),
        IndexError,
        "out of range: tried to access index -7 on a tensor of 6 elements.",
    ),
    "masked_select_float": (
        "f(3), f(3)",
        lambda a, m: a.masked_select(m),
        RuntimeError,
        "masked_select: expected BoolTensor for mask, got float32.\nWrite mask.bool().",
    ),
    "masked_fill_shape": (
        "f(3), b(2)",
        lambda a, m: a.masked_fill_(m, 0),
        RuntimeError,
        "Expected shapes that broadcast together, got [3] and [2]: the size of tensor a (3) must match the "
        "size of tensor b (2) at non-singleton dimension 0.",
    ),
    "masked_scatter_short": (
        "f(3), b(3), f(1)",
        lambda a, m, v: a.masked_scatter_(~m, v),
        RuntimeError,
        "masked_scatter_: Number of elements of source < number of ones in mask: 1 < 3",
    ),
    "embedding_row": (
        "v(0, 4), f(4, 2)",
        lambda k, w: F.embedding(k, w),
        IndexError,
        "index out of range in self: 4 for 4 rows",
    ),
    "embedding_negative": (
        "v(0, -1), f(4, 2)",
        lambda k, w: F.embedding(k, w),
        IndexError,
        "index out of range in self: -1 for 4 rows",
    ),
    "embedding_float": (
        "f(2), f(4, 2)",
        lambda k, w: F.embedding(k, w),
        RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
        "got float32 instead in embedding().\n"
        "Convert it with .long().",
    ),
    "embedding_bag_falls": (
        "v(0, 1, 2), f(4, 2), v(0, 3, 1)",
        lambda k, w, o: F.embedding_bag(k, w, o),
        RuntimeError,
        "offsets must not fall, got 3 and then 1 at position 2.",
    ),
    "embedding_bag_row": (
        "v(0, 1, 4), f(4, 2), v(0, 2)",
        lambda k, w, o: F.embedding_bag(k, w, o),
        IndexError,
        "index 4 is out of bounds: expected a row number from 0 to 3.",
    ),
    "nll_target": (
        "f(2, 3), v(0, 3)",
        lambda x, t: F.nll_loss(x, t),
        IndexError,
        "Target 3 is out of bounds: expected a class number from 0 to 2, or the ignored -100.",
    ),
    "cross_entropy_target": (
        "f(2, 3), v(0, -1)",
        lambda x, t: F.cross_entropy(x, t),
        IndexError,
        "Target -1 is out of bounds: expected a class number from 0 to 2, or the ignored -100.",
    ),
    "nll_sizes": (
        "f(2, 3), v(0, 1, 2)",
        lambda x, t: F.nll_loss(x, t),
        ValueError,
        "nll_loss: expected a target of shape [2] for input [2, 3], got [3].\n"
        "The target has the input's shape without the classes (dimension 1).",
    ),
    "nll_weight": (
        "f(2, 3), v(0, 1), f(2)",
        lambda x, t, w: F.nll_loss(x, t, w),
        RuntimeError,
        "nll_loss: weight tensor should be defined either for all 3 classes or no classes, with the input's "
        "dtype float32; got float32[2].",
    ),
    "one_hot_class": (
        "v(0, 5)",
        lambda t: F.one_hot(t, 3),
        RuntimeError,
        "Class values must be smaller than num_classes (3), got 5.",
    ),
    "multi_margin_target": (
        "f(2, 3), v(0, 3)",
        lambda x, t: F.multi_margin_loss(x, t),
        RuntimeError,
        "index 3 is out of bounds for dimension 1 with size 3",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)
