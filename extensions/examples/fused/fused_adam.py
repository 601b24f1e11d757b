"""An optimiser whose step is one call of C++."""

from pathlib import Path

import flambeau as torch
from flambeau.utils.cpp_extension import load

#: A root that need not set errno is computed for many numbers at once.
FLAGS = ["-O3", "-march=native", "-fno-math-errno"]


class FusedAdam(torch.optim.Optimizer):
    """Adam (Kingma and Ba, 2015) on contiguous parameters of the host.

    Args:
        params: parameters, or groups of them.
        lr, betas, eps: as of :class:`flambeau.optim.Adam`.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
        self.compiled = load("adam_step", [Path(__file__).with_name("fused_adam.cpp")], extra_cflags=FLAGS)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [each for each in group["params"] if each.grad is not None]
            for each in params:
                if not self.state[each]:
                    self.state[each].update(step=0, mean=torch.zeros_like(each), square=torch.zeros_like(each))
                self.state[each]["step"] += 1
            if params:
                states = [self.state[each] for each in params]
                self.compiled.adam_step(
                    params, [each.grad for each in params], [each["mean"] for each in states],
                    [each["square"] for each in states], group["lr"], *group["betas"], group["eps"], states[0]["step"],
                )  # fmt: skip
