"""Convolutions, pooling, normalisation, losses, modules and optimisers.  Each call is refused with an exact message."""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn as nn
import flambeau.nn.functional as F

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # convolution and pooling
    "max_unpool_index": (
        "f(1, 1, 1, 1), z(1, 1, 1, 1)",
        lambda x, k: F.max_unpool2d(x, k + 9, 2),
        RuntimeError,
        "max_unpool: found an invalid max index: 9 (output volumes are of size 2x2).\n"
        "Use the indices that max_pool returned for an input of this size.",
    ),
    "conv_kernel": (
        "f(1, 1, 3, 3), f(1, 1, 4, 4)",
        lambda x, w: F.conv2d(x, w),
        RuntimeError,
        "conv2d: calculated padded input size per channel: [3, 3], kernel size: [4, 4] (dilation [1, 1]). "
        "Kernel size can't be greater than actual input size.",
    ),
    "conv_channels": (
        "f(1, 2, 5, 5), f(1, 3, 2, 2)",
        lambda x, w: F.conv2d(x, w),
        RuntimeError,
        "conv2d: given groups=1, weight of size [1, 3, 2, 2], expected input [1, 2, 5, 5] to have 3 channels,"
        " but got 2 channels instead.",
    ),
    "conv_stride_zero": (
        "f(1, 1, 3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w, stride=0),
        RuntimeError,
        "conv2d: non-positive stride is not supported, got [0, 0].",
    ),
    "conv_padding_negative": (
        "f(1, 1, 3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w, padding=-1),
        RuntimeError,
        "conv2d: negative padding is not supported, got [-1, -1].",
    ),
    "conv_dilation_zero": (
        "f(1, 1, 3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w, dilation=0),
        RuntimeError,
        "conv2d: non-positive dilation is not supported, got [0, 0].",
    ),
    "conv_groups": (
        "f(1, 3, 3, 3), f(2, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w, groups=2),
        RuntimeError,
        "conv2d: given groups=2, weight of size [2, 1, 2, 2], expected input [1, 3, 3, 3] to have 2 channels,"
        " but got 3 channels instead.",
    ),
    "conv_rank": (
        "f(3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w),
        RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [3, 3].",
    ),
    "conv_bias": (
        "f(1, 1, 3, 3), f(2, 1, 2, 2), f(3)",
        lambda x, w, b: F.conv2d(x, w, b),
        RuntimeError,
        "conv2d: given weight of size [2, 1, 2, 2], expected bias to be 1-dimensional with 2 elements, but "
        "got bias of size [3] instead.",
    ),
    "conv_dtype": (
        "f(1, 1, 3, 3), d(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w),
        RuntimeError,
        "conv2d: expected tensors to have the same dtype, but got float32 and float64.\nConvert them with .to(dtype).",
    ),
    "conv_padding_huge": (
        "f(1, 1, 3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv2d(x, w, padding=2**62),
        RuntimeError,
        "A tensor of shape [1, 1, 9223372036854775810, 9223372036854775810] and strides "
        "[85070591730234615902737140005361156100, 8507059173023461... cannot be addressed:\n"
        "sizes, strides and the number of elements stay below 2**63.",
    ),
    "conv_transpose_output_padding": (
        "f(1, 1, 3, 3), f(1, 1, 2, 2)",
        lambda x, w: F.conv_transpose2d(x, w, output_padding=2),
        RuntimeError,
        "conv_transpose2d: output padding must be smaller than either stride or dilation, but got "
        "output_padding [2, 2], stride [1, 1], dilation [1, 1].",
    ),
    "max_pool_kernel": (
        "f(1, 1, 3, 3)",
        lambda x: F.max_pool2d(x, 4),
        RuntimeError,
        "max_pool2d: given input size [1, 1, 3, 3], calculated output size: [0, 0]. Output size is too small.",
    ),
    "max_pool_stride": (
        "f(1, 1, 3, 3)",
        lambda x: F.max_pool2d(x, 2, stride=0),
        RuntimeError,
        "max_pool2d: stride should be greater than zero, but got [0, 0].",
    ),
    "max_pool_padding": (
        "f(1, 1, 3, 3)",
        lambda x: F.max_pool2d(x, 2, padding=2),
        RuntimeError,
        "max_pool2d: pad should be at most half of effective kernel size, but got pad=[2, 2], kernel_size=[2,"
        " 2] and dilation=[1, 1].",
    ),
    "avg_pool_negative": (
        "f(1, 1, 3, 3)",
        lambda x: F.avg_pool2d(x, -2),
        RuntimeError,
        "avg_pool2d: kernel size should be greater than zero, but got [-2, -2].",
    ),
    "pad_odd": (
        "f(2, 3)",
        lambda x: F.pad(x, (1, 2, 3)),
        RuntimeError,
        "pad: padding length must be divisible by 2 and at most twice the input's dimensions (2), got 3: [1, 2, 3].",
    ),
    "pad_too_many": (
        "f(3)",
        lambda x: F.pad(x, (1, 1, 1, 1)),
        RuntimeError,
        "pad: padding length must be divisible by 2 and at most twice the input's dimensions (1), got 4: [1, 1, 1, 1].",
    ),
    "pad_negative": (
        "f(3)",
        lambda x: F.pad(x, (-2, -2)),
        RuntimeError,
        "constant_pad_nd: the input size 3, plus negative padding -2 and -2 resulted in a negative output "
        "size, which is invalid. Check dimension 0 of your input.",
    ),
    "pad_reflect": (
        "f(1, 1, 3)",
        lambda x: F.pad(x, (3, 0), mode="reflect"),
        RuntimeError,
        "pad: padding size should be less than the corresponding input dimension, but got: padding (3, 0) at "
        "dimension 2 of input [1, 1, 3].",
    ),
    "pad_mode": (
        "f(1, 1, 3)",
        lambda x: F.pad(x, (1, 0), mode="mirror"),
        NotImplementedError,
        "pad: unrecognised padding mode 'mirror'; it is 'constant', 'reflect', 'replicate', 'circular'.",
    ),
    "interpolate_both": (
        "f(1, 1, 3)",
        lambda x: F.interpolate(x, size=2, scale_factor=2),
        ValueError,
        "interpolate: only one of size or scale_factor should be defined.",
    ),
    "interpolate_mode": (
        "f(1, 1, 3)",
        lambda x: F.interpolate(x, size=2, mode="bilinear"),
        NotImplementedError,
        "interpolate: input Error: 3D input (shape [1, 1, 3]) is not supported by mode 'bilinear'.\n"
        "3D takes nearest, linear, area; 4D nearest, bilinear, bicubic, area; 5D nearest, trilinear, area.",
    ),
    "pixel_shuffle_channels": (
        "f(1, 3, 2, 2)",
        lambda x: F.pixel_shuffle(x, 2),
        RuntimeError,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=3 is not divisible by 4.",
    ),
    "unfold_kernel": (
        "f(1, 1, 3, 3)",
        lambda x: F.unfold(x, 4),
        RuntimeError,
        "unfold: given an input of spatial size [3, 3], kernel_size=[4, 4], dilation=[1, 1], padding=[0, 0], "
        "calculated shape of the array of sliding blocks as [0, 0], which is too small (non-positive).",
    ),
    "fold_sizes": (
        "f(1, 4, 5)",
        lambda x: F.fold(x, 3, 2),
        RuntimeError,
        "fold: given output_size=[3, 3], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1], "
        "expected size of input's dimension 2 to match the calculated number of sliding blocks 2 * 2 = 4, but"
        " got 5.",
    ),
    "batch_norm_mean": (
        "f(2, 3), f(2), f(2)",
        lambda x, m, v: F.batch_norm(x, m, v, training=True),
        RuntimeError,
        "batch_norm(): running_mean should contain 3 elements not 2 (shape [2], input [2, 3]).",
    ),
    "batch_norm_one": (
        "f(1, 3)",
        lambda x: F.batch_norm(x, None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 3]).",
    ),
    "layer_norm_shape": (
        "f(2, 3)",
        lambda x: F.layer_norm(x, (2,)),
        RuntimeError,
        "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size [2, 3].",
    ),
    "instance_norm_mean": (
        "f(2, 3, 4), f(2), f(3)",
        lambda x, m, v: F.instance_norm(x, m, v),
        RuntimeError,
        "instance_norm(): expected running_mean of shape [3], got [2].",
    ),
    "group_norm_groups": (
        "f(2, 3)",
        lambda x: F.group_norm(x, 2),
        RuntimeError,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3] "
        "and num_groups=2.",
    ),
    "reduction_name": (
        "f(3), f(3)",
        lambda x, t: F.mse_loss(x, t, reduction="average"),
        ValueError,
        "'average' is not a valid value for reduction: expected one of ('none', 'mean', 'sum').",
    ),
    "glu_odd": (
        "f(3)",
        lambda x: F.glu(x),
        RuntimeError,
        "Halving dimension must be even, but dimension -1 is size 3",
    ),
    # modules and optimisers
    "linear_sizes": (
        "f(2, 3)",
        lambda x: nn.Linear(4, 5)(x),
        RuntimeError,
        "linear: input and weight shapes cannot be multiplied, expected (*, in) and (out, in), got [2, 3] and [5, 4].",
    ),
    "load_state_dict_missing": (
        "",
        lambda: nn.Linear(2, 3).load_state_dict({"weight": torch.zeros(3, 2)}),
        RuntimeError,
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". ',
    ),
    "load_state_dict_shape": (
        "",
        lambda: nn.Linear(2, 3).load_state_dict({"weight": torch.zeros(2, 2), "bias": torch.zeros(3)}),
        RuntimeError,
        "Error(s) in loading state_dict for Linear:\n"
        "\tsize mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the shape "
        "in current model is torch.Size([3, 2]).",
    ),
    "parameter_assignment": (
        "",
        lambda: setattr(nn.Linear(1, 1), "weight", torch.ones(1, 1)),
        TypeError,
        "cannot assign a Tensor as parameter 'weight': expected a flambeau.nn.Parameter or None.\n"
        "Delete the parameter first (del module.weight) to use the name for something else.",
    ),
    "conv_module_groups": (
        "",
        lambda: nn.Conv2d(3, 4, 2, groups=2),
        ValueError,
        "in_channels must be divisible by groups, got 3 and 2",
    ),
    "lstm_input": (
        "f(2, 1, 3)",
        lambda x: nn.LSTM(4, 5)(x),
        RuntimeError,
        "input.size(-1) must be equal to input_size. Expected 4, got 3",
    ),
    "sgd_rate": (
        "g(3)",
        lambda a: torch.optim.SGD([a], lr=-1),
        ValueError,
        "Invalid learning rate: -1.\nIt must be at least 0.0.",
    ),
    "sgd_momentum": (
        "g(3)",
        lambda a: torch.optim.SGD([a], lr=1, momentum=-1),
        ValueError,
        "Invalid momentum value: -1.\nIt must be at least 0.0.",
    ),
    "sgd_nesterov": (
        "g(3)",
        lambda a: torch.optim.SGD([a], lr=1, nesterov=True),
        ValueError,
        "Nesterov momentum requires a momentum and zero dampening, got 0 and 0.",
    ),
    "adam_betas": (
        "g(3)",
        lambda a: torch.optim.Adam([a], betas=(1.5, 0.9)),
        ValueError,
        "Invalid beta parameter at index 0: 1.5.\nIt must be in [0.0, 1.0).",
    ),
    "adam_eps": (
        "g(3)",
        lambda a: torch.optim.Adam([a], eps=-1),
        ValueError,
        "Invalid epsilon value: -1.\nIt must be at least 0.0.",
    ),
    "optimiser_nothing": (
        "",
        lambda: torch.optim.SGD([], lr=1),
        ValueError,
        "optimizer got an empty parameter list",
    ),
    "optimiser_computed": (
        "g(3)",
        lambda a: torch.optim.SGD([a * 2], lr=1),
        ValueError,
        "can't optimize a non-leaf Tensor (shape [3]).\nPass x.detach().requires_grad_().",
    ),
    "optimiser_number": (
        "",
        lambda: torch.optim.SGD([1.0], lr=1),
        TypeError,
        "optimizer can only optimize Tensors, but one of the params is float",
    ),
    # data
    "loader_batch_size": (
        "",
        lambda: torch.utils.data.DataLoader([1], batch_size=0),
        ValueError,
        "batch_size should be a positive integer value, but got batch_size=0",
    ),
    "loader_workers": (
        "",
        lambda: torch.utils.data.DataLoader([1], num_workers=-1),
        ValueError,
        "num_workers option should be non-negative, got -1; use 0 to disable workers.",
    ),
    "dataset_sizes": (
        "f(2), f(3)",
        lambda a, b: torch.utils.data.TensorDataset(a, b),
        ValueError,
        "Size mismatch between tensors: TensorDataset expects tensors of one first size, got shapes [[2], [3]].",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)
