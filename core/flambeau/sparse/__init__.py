"""Sparse tensors: ``flambeau.sparse``.

What works on them is declared in ``flambeau.ops.sparse``; the typed names of old are those of :mod:`flambeau.legacy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..bind import namespace
from ..legacy import sparse_types

namespace(globals(), "sparse")
globals().update(sparse_types())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
