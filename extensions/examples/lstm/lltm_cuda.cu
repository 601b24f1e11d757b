// The pointwise part of the cell of lltm.cpp as CUDA kernels; the matrix products stay operators.
#include <torch/extension.h>

#include <vector>

namespace {

template <typename T>
__device__ T sigmoid(T z) {
  return T(1) / (T(1) + exp(-z));
}
template <typename T>
__device__ T elu(T z) {
  return z > T(0) ? z : exp(z) - T(1);
}

template <typename T>
__global__ void forward(const T* gates, const T* old_c, T* new_h, T* new_c, T* input_gate, T* output_gate, T* candidate,
                        int64_t size, int64_t count) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const T* row = gates + at / size * 3 * size + at % size;
  input_gate[at] = sigmoid(row[0]);
  output_gate[at] = sigmoid(row[size]);
  candidate[at] = elu(row[2 * size]);
  new_c[at] = old_c[at] + candidate[at] * input_gate[at];
  new_h[at] = tanh(new_c[at]) * output_gate[at];
}

template <typename T>
__global__ void backward(const T* grad_h, const T* grad_c, const T* new_c, const T* input_gate, const T* output_gate,
                         const T* candidate, const T* gates, T* d_gates, T* d_old_c, int64_t size, int64_t count) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const T t = tanh(new_c[at]), i = input_gate[at], o = output_gate[at];
  const int64_t place = at / size * 3 * size + at % size;
  const T z = gates[place + 2 * size];
  const T d_c = (T(1) - t * t) * o * grad_h[at] + grad_c[at];
  d_gates[place] = d_c * candidate[at] * (T(1) - i) * i;
  d_gates[place + size] = t * grad_h[at] * (T(1) - o) * o;
  d_gates[place + 2 * size] = d_c * i * (z > T(0) ? T(1) : exp(z));
  d_old_c[at] = d_c;
}

const int kThreads = 256;
int blocks(int64_t count) { return int((count + kThreads - 1) / kThreads); }

}  // namespace

std::vector<at::Tensor> lltm_forward(at::Tensor input, at::Tensor weights, at::Tensor bias, at::Tensor old_h,
                                     at::Tensor old_c) {
  AT_CHECK(input.is_cuda(), "lltm: expected tensors on a CUDA device, got ", input.type());
  at::Tensor x = at::cat({old_h, input}, 1);
  at::Tensor gates = at::addmm(bias, x, weights.transpose(0, 1)).contiguous(), c = old_c.contiguous();
  at::Tensor new_h = at::zeros_like(c), new_c = at::zeros_like(c), input_gate = at::zeros_like(c);
  at::Tensor output_gate = at::zeros_like(c), candidate = at::zeros_like(c);
  const int64_t count = c.numel(), size = c.size(1);
  AT_DISPATCH_FLOATING_TYPES(gates.type(), "lltm_forward", [&] {
    forward<scalar_t><<<blocks(count), kThreads>>>(
        gates.data<scalar_t>(), c.data<scalar_t>(), new_h.data<scalar_t>(), new_c.data<scalar_t>(),
        input_gate.data<scalar_t>(), output_gate.data<scalar_t>(), candidate.data<scalar_t>(), size, count);
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return {new_h, new_c, input_gate, output_gate, candidate, x, gates};
}

std::vector<at::Tensor> lltm_backward(at::Tensor grad_h, at::Tensor grad_c, at::Tensor new_c, at::Tensor input_gate,
                                      at::Tensor output_gate, at::Tensor candidate, at::Tensor x, at::Tensor gates,
                                      at::Tensor weights) {
  at::Tensor h = grad_h.contiguous(), c = grad_c.contiguous();
  at::Tensor d_gates = at::zeros_like(gates), d_old_c = at::zeros_like(new_c);
  const int64_t count = new_c.numel(), size = new_c.size(1);
  AT_DISPATCH_FLOATING_TYPES(gates.type(), "lltm_backward", [&] {
    backward<scalar_t><<<blocks(count), kThreads>>>(
        h.data<scalar_t>(), c.data<scalar_t>(), new_c.data<scalar_t>(), input_gate.data<scalar_t>(),
        output_gate.data<scalar_t>(), candidate.data<scalar_t>(), gates.data<scalar_t>(), d_gates.data<scalar_t>(),
        d_old_c.data<scalar_t>(), size, count);
  });
  AT_CUDA_CHECK(cudaGetLastError());
  at::Tensor d_x = d_gates.mm(weights);
  return {d_x.slice(1, size, d_x.size(1)), d_gates.t().mm(x), d_gates.sum(0), d_x.slice(1, 0, size), d_old_c};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &lltm_forward, "the cell");
  m.def("backward", &lltm_backward, "gradients of its inputs");
}
