"""Matrix products."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..dispatch.operator import primitive
from ..errors import ShapeError
from ..tensor import Tensor

__all__ = ["mm"]


@primitive("self mat2 |")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices: (n, m) and (m, p) give (n, p).

    Raises:
        RuntimeError: one is no matrix, or the inner sizes differ.
    """
    a, b = self.geometry.shape, mat2.geometry.shape
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise ShapeError(f"mm: mat1 and mat2 shapes cannot be multiplied, got {list(a)} and {list(b)}.")
    return cast(Tensor, mm.run(self, mat2))


mm.gradient(self=lambda grad, mat2: grad.mm(mat2.t()), mat2=lambda grad, self: self.t().mm(grad))
mm.reference(np.matmul)
