"""The element types that the kernels serve."""

from flambeau.backend import bool_, float32, float64, int8, int16, int32, int64, uint8

FLOATS = (float32, float64)
INTEGERS = (uint8, int8, int16, int32, int64)
NUMBERS = (*INTEGERS, *FLOATS)
ALL = (bool_, *NUMBERS)
