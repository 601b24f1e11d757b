"""Shapes and dimensions that do not fit.  Each call is refused with an exact message."""

from __future__ import annotations

import pytest

import flambeau as torch

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # shapes
    "add_sizes": (
        "f(2, 3), f(2)",
        lambda a, b: a + b,
        RuntimeError,
        "Expected shapes that broadcast together, got [2, 3] and [2]: the size of tensor a (3) must match the"
        " size of tensor b (2) at non-singleton dimension 1.",
    ),
    "add_inplace_grows": (
        "f(3), f(2, 3)",
        lambda a, b: a.add_(b),
        RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3] in add_().\nUse the out-of-place form add().",
    ),
    "matmul_inner": (
        "f(2, 3), f(2, 3)",
        lambda a, b: a @ b,
        RuntimeError,
        "matmul: mat1 and mat2 shapes cannot be multiplied, got [2, 3] and [2, 3]: size 3 of the first must "
        "match size 2 of the second.",
    ),
    "matmul_scalar": (
        "f(2, 3), f()",
        lambda a, b: a @ b,
        RuntimeError,
        "matmul: both arguments need to be at least 1D, but they are 2D and 0D.",
    ),
    "mm_ranks": (
        "f(2, 3), f(3)",
        lambda a, b: a.mm(b),
        RuntimeError,
        "mm: mat1 and mat2 shapes cannot be multiplied, expected (n, m) and (m, p), got [2, 3] and [3].",
    ),
    "bmm_batches": (
        "f(2, 3, 4), f(3, 4, 5)",
        lambda a, b: a.bmm(b),
        RuntimeError,
        "bmm: expected batch1 (b, n, m) and batch2 (b, m, p) to be 3-D tensors of fitting sizes, got [2, 3, "
        "4] and [3, 4, 5].",
    ),
    "dot_sizes": (
        "f(3), f(4)",
        lambda a, b: a.dot(b),
        RuntimeError,
        "dot: expected both vectors to have the same size: inconsistent tensor size, got [3] and [4].",
    ),
    "addmm_bias": (
        "f(5), f(2, 3), f(3, 4)",
        lambda a, b, c: torch.addmm(a, b, c),
        RuntimeError,
        "Expected shapes that broadcast together, got [5] and [2, 4]: the size of tensor a (5) must match the"
        " size of tensor b (4) at non-singleton dimension 1.",
    ),
    "view_size": (
        "f(2, 3)",
        lambda a: a.view(4, 2),
        RuntimeError,
        "shape '[4, 2]' is invalid for input of size 6.",
    ),
    "view_two_unknown": (
        "f(2, 3)",
        lambda a: a.view(-1, -1),
        RuntimeError,
        "only one dimension can be inferred, got shape [-1, -1].",
    ),
    "view_strides": (
        "f(2, 3)",
        lambda a: a.t().view(6),
        RuntimeError,
        "view size [6] is not compatible with input tensor's size [3, 2] and stride (1, 3) (at least one "
        "dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    "reshape_size": (
        "f(2, 3)",
        lambda a: a.reshape(5),
        RuntimeError,
        "shape '[5]' is invalid for input of size 6.",
    ),
    "expand_impossible": (
        "f(2, 3)",
        lambda a: a.expand(4, 3),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0. "
        "Target sizes: [4, 3]. Tensor sizes: [2, 3].",
    ),
    "expand_fewer": (
        "f(2, 3)",
        lambda a: a.expand(3),
        RuntimeError,
        "expand: the number of sizes provided (1: [3]) must be greater or equal to the number of dimensions "
        "in the tensor (2: [2, 3]).",
    ),
    "repeat_fewer": (
        "f(2, 3)",
        lambda a: a.repeat(2),
        RuntimeError,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got [2] "
        "for shape [2, 3].",
    ),
    "repeat_negative": (
        "f(3)",
        lambda a: a.repeat(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: repeats [-1].",
    ),
    "cat_ranks": (
        "f(2, 3), f(3)",
        lambda a, b: torch.cat([a, b]),
        RuntimeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    "cat_sizes": (
        "f(2, 3), f(2, 4)",
        lambda a, b: torch.cat([a, b]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected [2, 3] but got [2, 4] for tensor number "
        "1 in the list.",
    ),
    "cat_nothing": (
        "",
        lambda: torch.cat([]),
        ValueError,
        "cat(): expected a non-empty list of Tensors",
    ),
    "cat_of_one_tensor": (
        "f(2, 3)",
        lambda a: torch.cat(a),
        TypeError,
        "cat() expects a list or tuple of Tensors, got Tensor.",
    ),
    "cat_of_a_dict": (
        "",
        lambda: torch.cat({}),
        TypeError,
        "cat() expects a list or tuple of Tensors, got dict.",
    ),
    "cat_scalars": (
        "f(), f()",
        lambda a, b: torch.cat([a, b]),
        RuntimeError,
        "zero-dimensional tensor (at position 0) cannot be concatenated.\nUse stack().",
    ),
    "stack_sizes": (
        "f(2), f(3)",
        lambda a, b: torch.stack([a, b]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    "split_negative": (
        "f(4)",
        lambda a: a.split(-1),
        RuntimeError,
        "split expects split_size be non-negative and positive for a non-empty dimension, but got split_size=-1",
    ),
    "split_sum": (
        "f(4)",
        lambda a: a.split([1, 2]),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 0), but "
        "got split_sizes=[1, 2]",
    ),
    "chunk_zero": (
        "f(4)",
        lambda a: a.chunk(0),
        RuntimeError,
        "chunk expects `chunks` to be greater than 0, got: 0",
    ),
    "unfold_too_long": (
        "f(4)",
        lambda a: a.unfold(0, 5, 1),
        RuntimeError,
        "maximum size for tensor at dimension 0 is 4 but size is 5",
    ),
    "unfold_step": (
        "f(4)",
        lambda a: a.unfold(0, 2, 0),
        RuntimeError,
        "step is 0 but must be > 0",
    ),
    "narrow_beyond": (
        "f(4)",
        lambda a: a.narrow(0, 2, 3),
        RuntimeError,
        "start (2) + length (3) exceeds dimension size (4).",
    ),
    "narrow_negative": (
        "f(4)",
        lambda a: a.narrow(0, 0, -1),
        RuntimeError,
        "narrow(): length must be non-negative, got -1.",
    ),
    "copy_sizes": (
        "f(2), f(3)",
        lambda a, b: a.copy_(b),
        RuntimeError,
        "Expected shapes that broadcast together, got [2] and [3]: the size of tensor a (2) must match the "
        "size of tensor b (3) at non-singleton dimension 0.",
    ),
    "set_view_sizes": (
        "f(2, 3), f(2)",
        lambda a, b: a.__setitem__(0, b),
        RuntimeError,
        "Expected shapes that broadcast together, got [3] and [2]: the size of tensor a (3) must match the "
        "size of tensor b (2) at non-singleton dimension 0.",
    ),
    "where_sizes": (
        "b(3), f(2), f(3)",
        lambda c, a, b: torch.where(c, a, b),
        RuntimeError,
        "Expected shapes that broadcast together, got [2] and [3] and [3]: the size of tensor a (2) must "
        "match the size of tensor b (3) at non-singleton dimension 0.",
    ),
    "item_of_many": (
        "f(2)",
        lambda a: a.item(),
        RuntimeError,
        "a Tensor with 2 elements cannot be converted to Scalar (shape [2]).\nIndex it first, or use tolist().",
    ),
    "bool_of_many": (
        "f(2)",
        lambda a: bool(a),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous (shape [2]).\nUse any() or all().",
    ),
    "ragged": (
        "",
        lambda: torch.tensor([[1, 2], [3]]),
        ValueError,
        "expected sequences of equal length at every depth, got [[1, 2], [3]].",
    ),
    "einsum_output": (
        "f(2, 3)",
        lambda a: torch.einsum("ij->ik", a),
        RuntimeError,
        "einsum(): output subscript k does not appear in the equation for any input operand: 'ij->ik'.",
    ),
    "einsum_operands": (
        "f(2, 3)",
        lambda a: torch.einsum("ij,jk->ik", a),
        RuntimeError,
        "einsum(): 'ij,jk->ik' has subscripts for 2 operands, but 1 were provided.",
    ),
    "einsum_ranks": (
        "f(2, 3)",
        lambda a: torch.einsum("ijk->i", a),
        RuntimeError,
        "einsum(): the number of subscripts in 'ijk' (3) does not match the number of dimensions (2) of the "
        "operand of shape [2, 3] in 'ijk->i'.",
    ),
    "einsum_sizes": (
        "f(2, 3), f(2, 3)",
        lambda a, b: torch.einsum("ij,jk->ik", a, b),
        RuntimeError,
        "einsum(): operands do not broadcast in 'ij,jk->ik': subscript j has sizes 3 and 2 in shapes [2, 3] "
        "and [2, 3].",
    ),
    "einsum_symbols": (
        "f(2, 3)",
        lambda a: torch.einsum("i1->i", a),
        RuntimeError,
        "einsum(): invalid subscript 'i1' in 'i1->i' (at 1): subscripts are letters and at most one ellipsis '...'.",
    ),
    # dimensions
    "sum_dim": (
        "f(2, 3)",
        lambda a: a.sum(2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2).",
    ),
    "sum_dim_twice": (
        "f(2, 3)",
        lambda a: a.sum((0, 0)),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims [0, 0].",
    ),
    "sum_dim_twice_negative": (
        "f(2, 3)",
        lambda a: a.sum((1, -1)),
        RuntimeError,
        "dim 1 appears multiple times in the list of dims [1, -1].",
    ),
    "cumsum_dim": (
        "f(2, 3)",
        lambda a: a.cumsum(-3),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got -3).",
    ),
    "softmax_dim": (
        "f(2, 3)",
        lambda a: a.softmax(5),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 5).",
    ),
    "transpose_dim": (
        "f(2, 3)",
        lambda a: a.transpose(0, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2).",
    ),
    "permute_count": (
        "f(2, 3)",
        lambda a: a.permute(0),
        RuntimeError,
        "permute: number of dimensions in the tensor input does not match the length of the desired ordering "
        "of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
    ),
    "permute_twice": (
        "f(2, 3)",
        lambda a: a.permute(0, 0),
        RuntimeError,
        "permute(): duplicate dims are not allowed, got [0, 0].",
    ),
    "permute_dim": (
        "f(2, 3)",
        lambda a: a.permute(0, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2).",
    ),
    "squeeze_dim": (
        "f(2, 3)",
        lambda a: a.squeeze(2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2).",
    ),
    "unsqueeze_dim": (
        "f(2, 3)",
        lambda a: a.unsqueeze(4),
        IndexError,
        "Dimension out of range (expected to be in range of [-3, 2], but got 4).",
    ),
    "flip_twice": (
        "f(2, 3)",
        lambda a: a.flip(0, -2),
        RuntimeError,
        "dim [0, 0] appears multiple times in the list of dims",
    ),
    "select_dim": (
        "f(2, 3)",
        lambda a: a.select(2, 0),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2).",
    ),
    "t_of_three": (
        "f(2, 3, 4)",
        lambda a: a.t(),
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D: [2, 3, 4].",
    ),
    "diagonal_same": (
        "f(2, 3)",
        lambda a: a.diagonal(0, 1, -1),
        RuntimeError,
        "diagonal dimensions cannot be identical 1, -1 (tensor of shape [2, 3])",
    ),
    "dim_float": (
        "f(2, 3)",
        lambda a: a.sum(1.0),
        TypeError,
        "dim: expected an int or a sequence of ints, got float 1.0.",
    ),
    "dim_int64_min": (
        "f(2, 3)",
        lambda a: a.sum(-(2**63)),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got -9223372036854775808).",
    ),
    "dim_huge": (
        "f(2, 3)",
        lambda a: a.sum(2**64),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 18446744073709551616).",
    ),
    # reductions of nothing
    "max_empty": (
        "f(0)",
        lambda a: a.max(),
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0, got shape [0].\n"
        "Specify the reduction dim with the 'dim' argument.",
    ),
    "max_empty_dim": (
        "f(3, 0)",
        lambda a: a.max(1),
        IndexError,
        "max(): Expected reduction dim 1 to have non-zero size, got shape [3, 0].",
    ),
    "argmin_empty": (
        "f(0)",
        lambda a: a.argmin(),
        IndexError,
        "argmin(): Expected reduction dim 0 to have non-zero size, got shape [0].",
    ),
    "median_empty": (
        "f(0)",
        lambda a: a.kthvalue(1),
        IndexError,
        "kthvalue(): Expected reduction dim 0 to have non-zero size, got shape [0].",
    ),
    "topk_too_many": (
        "f(3)",
        lambda a: a.topk(4),
        RuntimeError,
        "topk(): selected index k out of range: expected 0 to 3 (dimension 0), got 4.",
    ),
    "topk_negative": (
        "f(3)",
        lambda a: a.topk(-1),
        RuntimeError,
        "topk(): selected index k out of range: expected 0 to 3 (dimension 0), got -1.",
    ),
    "kthvalue_zero": (
        "f(3)",
        lambda a: a.kthvalue(0),
        RuntimeError,
        "kthvalue(): selected number k out of range for dimension 0: expected 1 to 3, got 0.",
    ),
    "histc_range": (
        "f(3)",
        lambda a: a.histc(4, 2, 1),
        RuntimeError,
        "histc(): max must be larger than min, got min=2.0 and max=1.0.",
    ),
    "histc_bins": (
        "f(3)",
        lambda a: a.histc(0),
        RuntimeError,
        "histc(): bins must be > 0, but got 0.",
    ),
    "histc_nan": (
        "f(3)",
        lambda a: a.histc(4, float("nan"), 1),
        RuntimeError,
        "histc(): range of [nan, 1.0] is not finite.",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)
