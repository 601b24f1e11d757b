"""Random numbers: the same for the same seed and offset."""

import numpy as np

from flambeau.backend import int32, int64, writing

from .dtypes import ALL, FLOATS


def _source(seed, offset):
    return np.random.default_rng([seed % 2**64, offset])


def _uniform(x, low, high, seed, offset):
    numbers = _source(seed, offset).uniform(low, high, x.shape)
    return np.minimum(numbers, np.nextafter(x.dtype.type(high), x.dtype.type(low)))  # rounding may reach ``high``


def _bernoulli(x, odds, unused, seed, offset):
    return _source(seed, offset).integers(0, 2**32, x.shape) < odds  # in parts of 2**32


KERNELS = {
    "uniform_": writing(_uniform, FLOATS),
    "normal_": writing(lambda x, mean, std, seed, offset: _source(seed, offset).normal(mean, std, x.shape), FLOATS),
    "exponential_": writing(
        lambda x, rate, _, seed, offset: _source(seed, offset).exponential(1 / rate, x.shape), FLOATS
    ),
    "integers_": writing(
        lambda x, low, span, seed, offset: low + _source(seed, offset).integers(0, span, x.shape), ALL
    ),
    "bernoulli_number_": writing(_bernoulli, ALL),
    "permutation_": writing(lambda x, seed, offset: _source(seed, offset).permutation(x.size), (int32, int64, *FLOATS)),
}
