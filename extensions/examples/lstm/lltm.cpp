// A recurrent cell like an LSTM without a forget gate, with a backward written out.
#include <torch/torch.h>

#include <vector>

namespace {

at::Tensor d_sigmoid(at::Tensor s) { return (1 - s) * s; }
at::Tensor d_tanh(at::Tensor t) { return 1 - t * t; }
// elu with alpha = 1, from its argument
at::Tensor d_elu(at::Tensor z) {
  at::Tensor positive = (z > 0).type_as(z);
  return positive + (1 - positive) * z.exp();
}

}  // namespace

// {new h, new c, and what backward needs: candidate, input gate, output gate, x with h, gates before activation}
std::vector<at::Tensor> lltm_forward(at::Tensor input, at::Tensor weights, at::Tensor bias, at::Tensor old_h,
                                     at::Tensor old_c) {
  at::Tensor x = at::cat({old_h, input}, 1);
  at::Tensor gates = at::addmm(bias, x, weights.transpose(0, 1));
  std::vector<at::Tensor> parts = gates.chunk(3, 1);
  at::Tensor input_gate = at::sigmoid(parts[0]), output_gate = at::sigmoid(parts[1]);
  at::Tensor candidate = at::elu(parts[2], 1.0);
  at::Tensor new_c = old_c + candidate * input_gate;
  at::Tensor new_h = at::tanh(new_c) * output_gate;
  return {new_h, new_c, input_gate, output_gate, candidate, x, gates};
}

std::vector<at::Tensor> lltm_backward(at::Tensor grad_h, at::Tensor grad_c, at::Tensor new_c, at::Tensor input_gate,
                                      at::Tensor output_gate, at::Tensor candidate, at::Tensor x, at::Tensor gates,
                                      at::Tensor weights) {
  at::Tensor tanh_c = at::tanh(new_c);
  at::Tensor d_c = d_tanh(tanh_c) * output_gate * grad_h + grad_c;
  std::vector<at::Tensor> parts = gates.chunk(3, 1);
  at::Tensor d_gates = at::cat({d_c * candidate * d_sigmoid(input_gate), tanh_c * grad_h * d_sigmoid(output_gate),
                                d_c * input_gate * d_elu(parts[2])}, 1);
  at::Tensor d_x = d_gates.mm(weights);
  const int64_t size = grad_h.size(1);
  return {d_x.slice(1, size, d_x.size(1)), d_gates.t().mm(x), d_gates.sum(0), d_x.slice(1, 0, size), d_c};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &lltm_forward, "the cell");
  m.def("backward", &lltm_backward, "gradients of its inputs");
}
