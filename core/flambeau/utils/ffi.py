"""C functions of one's own, called through cffi; the distribution flambeau-extensions provides them."""

import sys

from .elsewhere import provided

sys.modules[__name__] = provided("flambeau_extensions.ffi", "flambeau-extensions")
