"""flambeau: a plug-in tensor framework with PyTorch's interface.

``import flambeau as torch`` runs PyTorch-0.4.0-era code.  The core is pure Python;
kernels come from backends installed beside it (``pip install flambeau-cpu``).
"""

import importlib.util

from . import autograd, ops, random
from .autograd.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .bind import bind, namespace
from .device import device
from .dispatch.pointwise import result_type
from .dtype import (
    bfloat16,
    bool_ as bool,
    can_cast,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    uint8,
)
from .errors import FatalError
from .exchange import from_dlpack, to_dlpack
from .generator import Generator
from .geometry import Size, broadcast_shapes
from .layout import channels_last, contiguous_format, layout, memory_format, preserve_format, sparse_coo, strided
from .legacy import *
from .ops.creation import (
    as_tensor,
    empty,
    empty_like,
    empty_strided,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    scalar_tensor,
    tensor,
    zeros,
    zeros_like,
)
from .ops.random import rand, rand_like, randint, randint_like, randn, randn_like, randperm
from .ops.ranges import arange, eye, linspace, logspace, range
from .ops.sparse import sparse_coo_tensor
from .plugins import CORE_VERSION as __version__, set_default_device
from .printing import get_printoptions, printoptions, set_printoptions
from .random import default as _default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .settings import (
    finfo,
    get_default_dtype,
    get_num_threads,
    iinfo,
    is_storage,
    is_tensor,
    numel,
    set_default_dtype,
    set_flush_denormal,
    set_num_threads,
)
from .tensor import Tensor

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128


#: Parts that are imported when they are first used, so that ``import flambeau`` stays quick.
_PARTS = frozenset(["accelerator", "backends", "cuda", "library", "nn", "optim", "serialization", "sparse", "utils"])
#: Names that such a part provides.
_PROVIDED = {
    "explain": "backends",
    "save": "serialization",
    "load": "serialization",
    "Stream": "streams",
    "Event": "streams",
}


def __getattr__(name: str) -> object:
    if name in _PARTS and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _PROVIDED:
        globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{_PROVIDED[name]}"), name)
        return value
    raise AttributeError(f"module 'flambeau' has no attribute {name!r}")


bind()
autograd.complete()
namespace(globals(), "")
