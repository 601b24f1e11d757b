"""The device ``skeleton``: 15 kernels on NumPy arrays, of which a perceptron's training is composed.

Make it yours from the bottom up: memory, then one kernel after the other, each proven by
``pytest --pyargs flambeau.conformance --device=skeleton``.  ``python -m flambeau primitives`` lists what can be
served and the arguments of each kernel; ``python -m flambeau matrix --device skeleton`` shows how far you are.
"""

from typing import Any

import numpy as np

from flambeau.backend import (
    ArrayMemory,
    Backend,
    bool_,
    dtype,
    float32,
    float64,
    hookimpl,
    int32,
    int64,
    pointwise,
    returning,
    uint8,
    writing,
)

FLOATS = (float32, float64)
NUMBERS = (uint8, int32, int64, *FLOATS)
ALL = (bool_, *NUMBERS)


class Memory(ArrayMemory):
    """Where tensors live: flat arrays.

    ``flambeau.backend.Memory`` says what the core asks of a memory.  With one of your own, kernels take tensors: a
    ``flambeau.backend.Kernel`` reads ``x.memory`` (a handle that only you look into), ``x.geometry`` and ``x.key``.
    """


def total(x: Any, dims: tuple[int, ...], keepdim: bool, wanted: dtype) -> Any:
    """The sum; of numbers with a point in double precision, as many small terms get lost in single."""
    return np.sum(x, axis=dims, keepdims=keepdim, dtype=np.float64 if wanted in FLOATS else wanted.numpy)


def largest(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The largest element; NaN if there is one."""
    return np.max(x, axis=dims, keepdims=keepdim)


def place_of_largest(x: Any, dim: int | None, keepdim: bool) -> Any:
    """Where the first of the largest elements is."""
    return np.argmax(x, axis=dim, keepdims=keepdim)


def uniform(x: Any, low: float, high: float, seed: int, offset: int) -> Any:
    """Random numbers in [low, high); the same for the same seed and offset."""
    numbers = np.random.default_rng([seed % 2**64, offset]).uniform(low, high, x.shape)
    return np.minimum(numbers, np.nextafter(x.dtype.type(high), x.dtype.type(low)))  # rounding may reach ``high``


KERNELS = {
    # one result for each element, of arrays that broadcast
    "add": pointwise(np.add, ALL),
    "mul": pointwise(np.multiply, ALL),
    "div": pointwise(np.divide, FLOATS),
    "exp": pointwise(np.exp, FLOATS),
    "log": pointwise(np.log, FLOATS),
    "sqrt": pointwise(np.sqrt, FLOATS),
    "eq": pointwise(np.equal, ALL, result=bool_),
    "lt": pointwise(np.less, ALL, result=bool_),
    # new tensors of any shape
    "where": returning(lambda x, other, condition: np.where(condition, x, other), ALL),
    "mm": returning(np.matmul, NUMBERS),
    "sum": returning(total, ALL, result=lambda x, dims, keepdim, wanted: wanted),
    "amax": returning(largest, ALL),
    "argmax": returning(place_of_largest, ALL, result=int64),
    # values of the first argument
    "copy_": writing(lambda x, source: source.astype(x.dtype), ALL),
    "uniform_": writing(uniform, FLOATS),
}


@hookimpl
def flambeau_backends() -> list[Backend]:
    """What the plug-in brings; called when the device is first used."""
    return [
        Backend(
            name="skeleton",
            device="skeleton",
            version="0.1.0",
            memory=Memory(),
            kernels=KERNELS,
            capabilities=frozenset({"rng"}),  # because of uniform_
        )
    ]
