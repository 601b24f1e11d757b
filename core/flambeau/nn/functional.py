"""The operators of neural networks as functions: ``flambeau.nn.functional``.

Everything here is declared in ``flambeau.ops``; this module only gathers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..bind import namespace

namespace(globals(), "nn.functional")

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
