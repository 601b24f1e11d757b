#pragma once

#include <torch/torch.h>

at::Tensor running_sum(at::Tensor x);
at::Tensor trace_of(at::Tensor x);
