// Everything that an extension needs: tensors, operators, checks, and binding to Python.
#pragma once

#include "factories.h"
#ifdef FLAMBEAU_PYBIND11
#include "pybind11.h"
#else
#include "bind.h"
#endif

#include "declare.h"

namespace torch {
using namespace at;
namespace autograd {
using at::Tensor;
using Variable = at::Tensor;
}  // namespace autograd
}  // namespace torch

namespace c10 {
using namespace at;
}  // namespace c10
