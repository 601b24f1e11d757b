#pragma once

#define CHECK_CONTIGUOUS(x) AT_ASSERT(x.is_contiguous(), #x " must be contiguous")
#define CHECK_FLOATING(x) AT_ASSERT(at::isFloatingType(x.type().scalarType()), #x " must be floating point")
#define CHECK_INPUT(x)  \
  CHECK_CONTIGUOUS(x);  \
  CHECK_FLOATING(x)

void bind_multiplier(py::module& m);
