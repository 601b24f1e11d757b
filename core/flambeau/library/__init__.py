"""Operators of one's own, as good as the built-in ones: dispatched, differentiable, explained and checked.

>>> import flambeau as torch
>>> from flambeau import Tensor
>>> from flambeau.library import custom_op
>>> @custom_op("doc::scaled_sin", mutates_args=())
... def scaled_sin(x: Tensor, scale: float = 1.0) -> Tensor:
...     return torch.from_numpy(numpy.sin(x.numpy()) * numpy.float32(scale))
>>> scaled_sin.gradient(x=lambda grad, x, scale: grad * x.cos() * scale)
>>> import numpy
>>> x = torch.zeros(2, requires_grad=True)
>>> scaled_sin(x, 3.0).sum().backward()
>>> x.grad
tensor([3., 3.])
"""

from .check import opcheck
from .compiled import compiled_op
from .custom import CustomOp, custom_op

__all__ = ["CustomOp", "compiled_op", "custom_op", "opcheck"]
