"""What is proven of an operator: one category for each way in which kernels go wrong."""

from __future__ import annotations

from . import calls, gradients, memory, values, writing
from .category import CATEGORIES, Category
from .devices import DEVICE, DEVICE_CATEGORIES
from .layouts import LAYOUT_CATEGORIES

__all__ = [
    "CATEGORIES", "DEVICE", "DEVICE_CATEGORIES", "LAYOUT_CATEGORIES", "Category", "calls", "gradients", "memory", "values",
    "writing",
]  # fmt: skip
