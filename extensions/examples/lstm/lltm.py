"""A recurrent cell like an LSTM without a forget gate: in Python, and with forward and backward in C++ or CUDA C++."""

from pathlib import Path

import flambeau as torch
from flambeau.utils.cpp_extension import load

HERE = Path(__file__).parent


def cell(input, weights, bias, old_h, old_c):
    """The cell in Python: what the compiled ones are compared with; returns the new h and c."""
    gates = torch.nn.functional.linear(torch.cat([old_h, input], 1), weights, bias)
    input_gate, output_gate, candidate = gates.chunk(3, 1)
    new_c = old_c + torch.nn.functional.elu(candidate) * input_gate.sigmoid()
    return new_c.tanh() * output_gate.sigmoid(), new_c


def compiled(source="lltm.cpp"):
    """The cell with the forward and backward of a source file: ``lltm.cpp`` or ``lltm_cuda.cu``."""
    module = load(f"{Path(source).stem}_functions", [HERE / source])

    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_c):
            new_h, new_c, *kept = module.forward(input, weights, bias, old_h, old_c)
            ctx.save_for_backward(new_c, *kept, weights)
            return new_h, new_c

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_h, grad_c):
            return tuple(module.backward(grad_h, grad_c, *ctx.saved_tensors))

    return Cell.apply
