"""Devices, autograd, and memory and files from elsewhere.  Each call is refused with an exact message."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch

#: name: operands (see conftest.py), call, exception, message
REFUSED = {
    # devices
    "unknown_device": (
        "",
        lambda: torch.zeros(2, device="quantum"),
        RuntimeError,
        "No installed plug-in provides the device 'quantum'. Installed plug-ins provide: DEVICES.\n"
        "Install the one that does, for example: pip install flambeau-quantum",
    ),
    "device_spelling": (
        "",
        lambda: torch.device("cpu:x"),
        RuntimeError,
        "Expected a device such as 'cpu' or 'cuda:1', got 'cpu:x' with index None.",
    ),
    "device_index": (
        "",
        lambda: torch.zeros(2, device="cpu:1"),
        RuntimeError,
        "There is one CPU device, got cpu:1.\nWrite 'cpu'.",
    ),
    "to_unknown_device": (
        "f(2)",
        lambda a: a.to("quantum"),
        RuntimeError,
        "No installed plug-in provides the device 'quantum'. Installed plug-ins provide: DEVICES.\n"
        "Install the one that does, for example: pip install flambeau-quantum",
    ),
    # autograd
    "backward_of_many": (
        "g(3)",
        lambda a: (a * 2).backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs, got shape [3].\n"
        "Pass the gradient, or reduce the output first, for example with sum().",
    ),
    "backward_without_history": (
        "f(3)",
        lambda a: a.sum().backward(),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "backward_gradient_shape": (
        "g(3)",
        lambda a: (a * 2).backward(torch.ones(2)),
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of [2] and output[0] has a shape of [3].",
    ),
    "leaf_in_place": (
        "g(3)",
        lambda a: a.add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation (add, shape [3]).\n"
        "Use the out-of-place form, or wrap the update in flambeau.no_grad().",
    ),
    "leaf_view_in_place": (
        "g(3)",
        lambda a: a[0].fill_(1),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation (fill_, shape []).\n"
        "Use the out-of-place form, or wrap the update in flambeau.no_grad().",
    ),
    "leaf_copy": (
        "g(3), f(3)",
        lambda a, b: a.copy_(b),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation (copy_, shape [3]).\n"
        "Use the out-of-place form, or wrap the update in flambeau.no_grad().",
    ),
    "leaf_setitem": (
        "g(3)",
        lambda a: a.__setitem__(0, 1.0),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation (fill_, shape []).\n"
        "Use the out-of-place form, or wrap the update in flambeau.no_grad().",
    ),
    "requires_grad_int": (
        "n(3)",
        lambda a: a.requires_grad_(),
        RuntimeError,
        "only Tensors of floating point and complex dtype can require gradients, got int64.\n"
        "Convert it first, for example with .float().",
    ),
    "requires_grad_computed": (
        "g(3)",
        lambda a: (a * 2).requires_grad_(False),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in"
        " a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
    ),
    "numpy_of_tracked": (
        "g(3)",
        lambda a: a.numpy(),
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    "expanded_in_place": (
        "x(3)",
        lambda a: a.add_(1),
        RuntimeError,
        "unsupported operation: add would write to a tensor of shape [3] and strides (0,), more than one "
        "element of which refers to a single memory location.\n"
        "Please clone() the tensor before performing the operation.",
    ),
    "expanded_fill": (
        "x(3)",
        lambda a: a.fill_(1),
        RuntimeError,
        "unsupported operation: fill_ would write to a tensor of shape [3] and strides (0,), more than one "
        "element of which refers to a single memory location.\n"
        "Please clone() the tensor before performing the operation.",
    ),
    "expanded_copy": (
        "x(3), f(3)",
        lambda a, b: a.copy_(b),
        RuntimeError,
        "unsupported operation: copy_ would write to a tensor of shape [3] and strides (0,), more than one "
        "element of which refers to a single memory location.\n"
        "Please clone() the tensor before performing the operation.",
    ),
    "unfolded_in_place": (
        "f(4)",
        lambda a: a.unfold(0, 3, 1).mul_(2),
        RuntimeError,
        "unsupported operation: mul would write to a tensor of shape [2, 3] and strides (1, 1), more than one"
        " element of which refers to a single memory location.\n"
        "Please clone() the tensor before performing the operation.",
    ),
    "deepcopy_of_computed": (
        "g(3)",
        lambda a: copy.deepcopy(a * 2),
        RuntimeError,
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
        "moment, got one made by MulBackward0.\n"
        "Copy x.detach() instead.",
    ),
    "autograd_grad_unused": (
        "g(3), g(3)",
        lambda a, b: torch.autograd.grad((a * 2).sum(), [b]),
        RuntimeError,
        "One of the differentiated Tensors appears to not have been used in the graph: inputs[0], shape [3].\n"
        "Set allow_unused=True if this is the desired behavior.",
    ),
    "hook_without_grad": (
        "f(3)",
        lambda a: a.register_hook(print),
        RuntimeError,
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    # exchange
    "from_numpy_list": (
        "",
        lambda: torch.from_numpy([1, 2]),
        TypeError,
        "expected np.ndarray (got list)",
    ),
    "from_numpy_negative_strides": (
        "",
        lambda: torch.from_numpy(np.arange(4)[::-1]),
        ValueError,
        "from_numpy: strides must be non-negative multiples of the element size (8), got (-8,).\nPass array.copy().",
    ),
    "from_numpy_byte_order": (
        "",
        lambda: torch.from_numpy(np.arange(4, dtype=">i4")),
        TypeError,
        "can't convert np.ndarray of type >i4. The only supported types are: bool, uint8, int8, int16, int32,"
        " int64, float16, float32, float64, complex64, complex128.",
    ),
    "from_numpy_object": (
        "",
        lambda: torch.from_numpy(np.array([object()])),
        TypeError,
        "can't convert np.ndarray of type object. The only supported types are: bool, uint8, int8, int16, "
        "int32, int64, float16, float32, float64, complex64, complex128.",
    ),
    "from_numpy_text": (
        "",
        lambda: torch.from_numpy(np.array(["a"])),
        TypeError,
        "can't convert np.ndarray of type <U1. The only supported types are: bool, uint8, int8, int16, int32,"
        " int64, float16, float32, float64, complex64, complex128.",
    ),
    "from_numpy_misaligned": (
        "",
        lambda: torch.from_numpy(np.zeros(9, np.uint8)[1:].view(np.float64)),
        ValueError,
        "from_numpy: the array's elements are not aligned in memory.\nPass array.copy().",
    ),
    "from_numpy_strides_between": (
        "",
        lambda: torch.from_numpy(np.zeros(4, [("a", "f4"), ("b", "u1")])["a"]),
        ValueError,
        "from_numpy: the array's elements are not aligned in memory.\nPass array.copy().",
    ),
    "tensor_of_objects": (
        "",
        lambda: torch.tensor([{}]),
        TypeError,
        "tensor() expects numbers, nested lists of them, arrays or tensors, got dict {}.",
    ),
    "tensor_of_none": (
        "",
        lambda: torch.tensor(None),
        TypeError,
        "tensor() expects numbers, nested lists of them, arrays or tensors, got NoneType None.",
    ),
    "tensor_too_large": (
        "",
        lambda: torch.tensor(2**64),
        RuntimeError,
        "value cannot be converted to int64 without overflow: Python int too large to convert to C long.",
    ),
    "from_dlpack_other": (
        "",
        lambda: torch.from_dlpack(3),
        TypeError,
        "from_dlpack() expects an object with __dlpack__ or a DLPack capsule, got int.",
    ),
    "load_garbage": (
        "",
        lambda: torch.load(io.BytesIO(b"garbage")),
        RuntimeError,
        "the file object is no file that flambeau.save wrote, or it is truncated or corrupt: File is not a "
        "zip file.\n"
        "Save it again, or convert it with the program that wrote it.",
    ),
    "load_nothing": (
        "",
        lambda: torch.load(io.BytesIO()),
        RuntimeError,
        "the file object is no file that flambeau.save wrote, or it is truncated or corrupt: File is not a "
        "zip file.\n"
        "Save it again, or convert it with the program that wrote it.",
    ),
    "load_pickle": (
        "",
        lambda: torch.load(io.BytesIO(pickle.dumps([1]))),
        RuntimeError,
        "the file object is no file that flambeau.save wrote, or it is truncated or corrupt: File is not a "
        "zip file.\n"
        "Save it again, or convert it with the program that wrote it.",
    ),
}


@pytest.mark.parametrize(("operands", "call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(refuses, operands, call, kind, message):
    refuses(operands, call, kind, message)


def message_of(kind, call, *args, **kwargs):
    with pytest.raises(kind) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def test_backward_twice():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert message_of(RuntimeError, y.backward) == (
        "Trying to backward through the graph a second time (MulBackward0): saved tensors have been freed.\n"
        "Pass retain_graph=True to the first backward() or grad() call."
    )
    assert x.grad.tolist() == [4, 8]
    (x * x).sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_a_saved_tensor_was_written():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    factor = torch.tensor([3.0, 4.0])
    y = (x * factor).sum()
    factor.add_(1)
    assert message_of(RuntimeError, y.backward) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "float32 tensor of shape [2], saved by mul, is at version 1.\n"
        "Use the out-of-place form of the operator that changed it, or change a clone()."
    )
    assert x.grad is None and factor.tolist() == [4, 5]
    (x * factor).sum().backward()
    assert x.grad.tolist() == [4, 5]


def test_a_failing_function_leaves_the_graph_and_grad_mode_alone():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("on purpose")

    x = torch.tensor([1.0], requires_grad=True)
    assert message_of(ValueError, Fails.apply(x).sum().backward) == "on purpose"
    assert x.grad is None and torch.is_grad_enabled()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3]


def test_a_capsule_is_used_once():
    x = torch.arange(3.0)
    capsule = torch.to_dlpack(x)
    assert torch.from_dlpack(capsule).tolist() == [0, 1, 2]
    assert message_of(RuntimeError, torch.from_dlpack, capsule) == (
        "from_dlpack: this is no unused DLPack capsule; each is used once.\nMake another one with to_dlpack()."
    )
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("cut", [0, 1, 10, 0.5, -1])
def test_a_truncated_file(cut, tmp_path):
    path = tmp_path / "model"
    torch.save({"weight": torch.ones(100)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(cut * len(whole)) if isinstance(cut, float) else cut])
    text = message_of(RuntimeError, torch.load, path)
    assert text.startswith(f"{path} is no file that flambeau.save wrote, or it is truncated or corrupt: ")
    assert len(text.splitlines()) == 2
    path.write_bytes(whole)
    assert torch.load(path)["weight"].tolist() == [1] * 100


def test_a_pickled_tensor_that_was_damaged():
    whole = pickle.dumps(torch.ones(100))
    for cut in range(0, len(whole), 7):
        with pytest.raises((pickle.UnpicklingError, EOFError, RuntimeError)):
            pickle.loads(whole[:cut])
    assert pickle.loads(whole).tolist() == [1] * 100


def test_read_only_arrays_are_copied_with_a_warning():
    array = np.arange(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The array is read-only, so the tensor got a copy"):
        x = torch.from_numpy(array)
    assert x.add_(1).tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]
    assert torch.as_tensor(array).add_(1).tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]


def test_writes_into_a_view_that_is_a_leaf_are_refused():
    base = torch.zeros(2, 2)
    leaf = base[0].requires_grad_()
    assert message_of(RuntimeError, leaf.mul_, 2).startswith("a leaf Variable that requires grad is being used")
    with torch.no_grad():
        leaf.add_(1)
    assert base.tolist() == [[1, 1], [0, 0]] and leaf.is_leaf


def test_a_resized_view_is_no_view_any_more():
    base = torch.zeros(4)
    part = base[:2]
    part.resize_(8).fill_(1)
    assert base.tolist() == [0, 0, 0, 0] and part.tolist() == [1] * 8
    x = torch.ones(8, requires_grad=True)
    part.mul_(x)
    part.sum().backward()
    assert x.grad.tolist() == [1] * 8 and not base.requires_grad
