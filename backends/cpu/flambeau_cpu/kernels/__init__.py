"""The kernels by family: each module's KERNELS maps operator names to kernel families."""

from __future__ import annotations

from typing import Any, Final

from . import arithmetic, provisional

#: Every kernel of the plug-in by operator name; later families override provisional ones.
KERNELS: Final[dict[str, Any]] = {
    **provisional.KERNELS,
    **arithmetic.KERNELS,
}
