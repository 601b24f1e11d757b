"""How the tables of this folder are checked."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import flambeau as torch

#: What operands are written with: MAKER(sizes) counts 1, 2, 3, ... in one dtype; the last ones take values.
MAKERS = {
    "f": lambda *shape: torch.tensor(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape), dtype=torch.float32),
    "d": lambda *shape: MAKERS["f"](*shape).double(),
    "n": lambda *shape: MAKERS["f"](*shape).long(),
    "u": lambda *shape: MAKERS["f"](*shape).to(torch.uint8),
    "c": lambda *shape: MAKERS["f"](*shape).to(torch.complex64),
    "g": lambda *shape: MAKERS["f"](*shape).requires_grad_(),
    "b": lambda *shape: torch.zeros(*shape, dtype=torch.bool),
    "z": lambda *shape: torch.zeros(*shape, dtype=torch.int64),
    "x": lambda *shape: torch.ones(()).expand(shape),  # one element of memory for all
    "v": lambda *values: torch.tensor(values),
}


#: What messages say about the machine and the installation.
VARYING = {
    r"[\d,]+ are in use": "N are in use",
    r"plug-ins provide: [\w, -]+\.": "plug-ins provide: DEVICES.",
    r"\bcpu \d[.\w]*": "cpu VERSION",
}


def state(operand):
    """Everything about a tensor that a refused call must leave as it is."""
    detached = operand.detach()
    return (
        operand.shape, operand.stride(), operand.storage_offset(), operand.dtype, operand.data_ptr(), operand._version,
        operand.requires_grad, operand.is_leaf, operand.grad, detached.contiguous().numpy().tobytes(),
    )  # fmt: skip


@pytest.fixture
def refuses():
    """Check that a call on fresh operands raises exactly this, changes nothing, and that good calls go on to work."""

    def check(operands, call, kind, message):
        made = eval(f"[{operands}]", MAKERS)
        before = [state(each) for each in made]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(kind) as caught:
                call(*made)
        text = str(caught.value)
        for pattern, name in VARYING.items():
            text = re.sub(pattern, name, text)
        assert text == message
        assert len(message.splitlines()) <= 3
        assert [state(each) for each in made] == before
        x = torch.ones(2, 2, requires_grad=True)
        (x @ x).sum().backward()
        assert x.grad.tolist() == [[4, 4], [4, 4]]

    return check
