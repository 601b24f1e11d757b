"""Sizes that are negative, too large or leave the memory there is.  Each call is refused with an exact message."""

from __future__ import annotations

import pytest

import flambeau as torch

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # sizes
    "zeros_negative": (
        "",
        lambda: torch.zeros(2, -3),
        RuntimeError,
        "Trying to create tensor with negative dimension -3: [2, -3].",
    ),
    "zeros_float": (
        "",
        lambda: torch.zeros(2.0),
        TypeError,
        "size: expected ints, got float 2.0.",
    ),
    "zeros_beyond_int64": (
        "",
        lambda: torch.zeros(2**64),
        RuntimeError,
        "A tensor of shape [18446744073709551616] and strides [1] cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "zeros_product_beyond_int64": (
        "",
        lambda: torch.zeros(2**32, 2**32),
        RuntimeError,
        "A tensor of shape [4294967296, 4294967296] and strides [4294967296, 1] cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "zeros_bytes_beyond_int64": (
        "",
        lambda: torch.zeros(2**62),
        MemoryError,
        "The host cannot address 4,611,686,018,427,387,904 elements of 4 bytes.",
    ),
    "zeros_more_than_there_is": (
        "",
        lambda: torch.zeros(2**55),
        MemoryError,
        "The host could not allocate 144,115,188,075,855,872 bytes; N are in use by tensors.\n"
        "Use smaller batches or free tensors first.",
    ),
    "expand_beyond_int64": (
        "f(1)",
        lambda a: a.expand(2**40, 2**40),
        RuntimeError,
        "A tensor of shape [1099511627776, 1099511627776] and strides [0, 0] cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "repeat_beyond_int64": (
        "f(3)",
        lambda a: a.repeat(2**62),
        RuntimeError,
        "A tensor of shape [4611686018427387904, 3] and strides [0, 1] cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "resize_negative": (
        "f(3)",
        lambda a: a.resize_(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [-1].",
    ),
    "resize_more_than_there_is": (
        "f(3)",
        lambda a: a.resize_(2**55),
        MemoryError,
        "The host could not allocate 144,115,188,075,855,872 bytes; N are in use by tensors.\n"
        "Use smaller batches or free tensors first.",
    ),
    "as_strided_beyond": (
        "f(6)",
        lambda a: a.as_strided((2, 3), (4, 1)),
        RuntimeError,
        "setStorage: sizes [2, 3], strides [4, 1], storage offset 0 require a storage of 7 elements, out of "
        "bounds for storage of 6.",
    ),
    "as_strided_offset": (
        "f(6)",
        lambda a: a.as_strided((2,), (1,), 5),
        RuntimeError,
        "setStorage: sizes [2], strides [1], storage offset 5 require a storage of 7 elements, out of bounds "
        "for storage of 6.",
    ),
    "as_strided_offset_negative": (
        "f(6)",
        lambda a: a.as_strided((2,), (1,), -1),
        RuntimeError,
        "setStorage: sizes [2], strides [1], storage offset -1 require a storage of 1 elements, out of bounds"
        " for storage of 6.",
    ),
    "as_strided_stride_negative": (
        "f(6)",
        lambda a: a.as_strided((2,), (-1,), 3),
        RuntimeError,
        "as_strided: Negative strides are not supported at the moment, got strides: [-1].",
    ),
    "as_strided_size_negative": (
        "f(6)",
        lambda a: a.as_strided((-2,), (1,)),
        RuntimeError,
        "Trying to create tensor with negative dimension: [-2].",
    ),
    "as_strided_lengths": (
        "f(6)",
        lambda a: a.as_strided((2, 3), (1,)),
        RuntimeError,
        "mismatch in length of strides and shape: [2, 3] and [1].",
    ),
    "as_strided_overflow": (
        "f(6)",
        lambda a: a.as_strided((3,), (2**62,)),
        RuntimeError,
        "setStorage: sizes [3], strides [4611686018427387904], storage offset 0 require a storage of "
        "9223372036854775809 elements, out of bounds for storage of 6.",
    ),
    "as_strided_view": (
        "f(6)",
        lambda a: a[4:].as_strided((3,), (1,)),
        RuntimeError,
        "setStorage: sizes [3], strides [1], storage offset 4 require a storage of 7 elements, out of bounds "
        "for storage of 6.",
    ),
    "empty_strided_negative": (
        "",
        lambda: torch.empty_strided((3,), (-1,)),
        RuntimeError,
        "empty_strided: sizes and strides are not negative, got [3] and [-1].",
    ),
    "set_beyond": (
        "f(3), f(6)",
        lambda a, b: a.set_(b, 4, (3,)),
        RuntimeError,
        "setStorage: sizes [3], strides [1], storage offset 4 require a storage of 7 elements, out of bounds "
        "for storage of 6.",
    ),
    "arange_zero": (
        "",
        lambda: torch.arange(0, 5, 0),
        RuntimeError,
        "step must be nonzero",
    ),
    "arange_sign": (
        "",
        lambda: torch.arange(0, 5, -1),
        RuntimeError,
        "upper bound and lower bound inconsistent with step sign in arange(0, 5, -1)",
    ),
    "arange_nan": (
        "",
        lambda: torch.arange(0, float("nan")),
        RuntimeError,
        "unsupported range: 0 -> nan",
    ),
    "arange_infinite": (
        "",
        lambda: torch.arange(0, float("inf")),
        RuntimeError,
        "unsupported range: 0 -> inf",
    ),
    "arange_huge": (
        "",
        lambda: torch.arange(0, 1e300),
        RuntimeError,
        "A tensor of shape [10000000000000000525047602552044202487044685811081591549... and strides [1] "
        "cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "linspace_steps": (
        "",
        lambda: torch.linspace(0, 1, -1),
        RuntimeError,
        "number of steps must be non-negative, got -1",
    ),
    "eye_negative": (
        "",
        lambda: torch.eye(-1),
        RuntimeError,
        "n must be greater or equal to 0, got -1",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)
