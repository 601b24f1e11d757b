"""What conformance knows of each family of operators: inputs to feed it, and what is wrong to feed it.

A family's module holds generators of inputs, one for an operator or for several alike.  A generator takes
a :class:`Draw` and yields the arguments of one call: the canonical arguments of a primitive's kernel, or the public
arguments of a composite.  A leading word says what the call is about (``"empty"``, ``"ties"``, ``"NaN"``); without one it
is an ordinary call, which is also run on views, checked for gradients, and so on.
A trailing dict holds keyword arguments.

Where a declaration has no reference beside it, the module gives the definition too.  For an operator that writes
into its first argument that is the argument's new value.
"""

from __future__ import annotations

from ..samples import DEFINITIONS, DRAWS, FAULTS, SAMPLES
from . import composites, drawing, indexing, layers, linalg, moving, order, pointwise, reduction, sparse, windows

__all__ = [
    "DEFINITIONS", "DRAWS", "FAULTS", "SAMPLES", "composites", "drawing", "indexing", "layers", "linalg", "moving", "order", "pointwise",
    "reduction", "sparse", "windows",
]  # fmt: skip
