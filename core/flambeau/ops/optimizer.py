"""Optimiser steps as operators, so that a backend can do one in a single pass over memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from ..dispatch.operator import primitive
from ..tensor import Tensor, touch

__all__ = ["adam_step_", "adam_steps_", "sgd_step_", "sgd_steps_"]


@primitive(
    "param grad buffer? | lr momentum dampening weight_decay nesterov first", mutates=True, method=False, namespaces=()
)
def sgd_step_(
    param: Tensor, grad: Tensor, buffer: Tensor | None, lr: float, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, first: bool,
) -> Tensor:  # fmt: skip
    """Move a parameter against its gradient, with momentum kept in ``buffer`` (which ``first`` fills).

    Sutskever et al., On the importance of initialization and momentum in deep learning, 2013, in PyTorch's form.
    """
    return cast(Tensor, sgd_step_.run(param, grad, buffer, lr, momentum, dampening, weight_decay, nesterov, first))


sgd_step_.nondifferentiable()


@sgd_step_.composite
def _sgd(
    param: Any, grad: Any, buffer: Any, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, first: bool,
) -> None:  # fmt: skip
    param = param.detach()
    if weight_decay:
        grad = grad.add(param, alpha=weight_decay)
    if buffer is not None:
        if first:
            buffer.copy_(grad)
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
        grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
    param.add_(grad, alpha=-lr)


@primitive("params* grads* buffers* | lr momentum dampening weight_decay nesterov first", method=False, namespaces=())
def sgd_steps_(params: list[Tensor], grads: list[Tensor], buffers: list[Tensor | None], *options: Any) -> None:
    """:func:`sgd_step_` on many parameters of one dtype and device; options as there."""
    left = sgd_steps_.run(params, grads, buffers, *options)
    _finish(sgd_step_, left, (params, grads, buffers), options)


sgd_steps_.nondifferentiable()
sgd_steps_.composite(lambda params, *_: range(len(params)))


def _finish(step: Any, left: Sequence[int], lists: Sequence[Sequence[Any]], options: tuple[Any, ...]) -> None:
    """Take the steps that a kernel for many left alone, and note the writes of those that it took."""
    alone = set(left)
    for position, tensors in enumerate(zip(*lists, strict=True)):
        if position in alone:
            step.run(*tensors, *options)
        else:
            touch(tensors[0])


@primitive(
    "param grad mean square most? | lr beta1 beta2 eps weight_decay decoupled step", mutates=True, method=False,
    namespaces=(),
)  # fmt: skip
def adam_step_(
    param: Tensor, grad: Tensor, mean: Tensor, square: Tensor, most: Tensor | None, lr: float, beta1: float,
    beta2: float, eps: float, weight_decay: float, decoupled: bool, step: int,
) -> Tensor:  # fmt: skip
    """One step of Adam (Kingma and Ba, 2015), AMSGrad (Reddi et al., 2018) if ``most`` is given, and AdamW
    (Loshchilov and Hutter, 2019) if the weight decay is ``decoupled``.
    """
    return cast(
        Tensor, adam_step_.run(param, grad, mean, square, most, lr, beta1, beta2, eps, weight_decay, decoupled, step)
    )


adam_step_.nondifferentiable()


@adam_step_.composite
def _adam(
    param: Any, grad: Any, mean: Any, square: Any, most: Any, lr: float, beta1: float, beta2: float, eps: float,
    weight_decay: float, decoupled: bool, step: int,
) -> None:  # fmt: skip
    param = param.detach()
    if decoupled:
        param.mul_(1 - lr * weight_decay)
    elif weight_decay:
        grad = grad.add(param, alpha=weight_decay)
    mean.mul_(beta1).add_(grad, alpha=1 - beta1)
    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if most is not None:
        most.copy_(most.maximum(square))
    scale = (square if most is None else most).sqrt().div_(math.sqrt(1 - beta2**step)).add_(eps)
    param.addcdiv_(mean, scale, value=-lr / (1 - beta1**step))


@primitive(
    "params* grads* means* squares* most* | lr beta1 beta2 eps weight_decay decoupled step", method=False, namespaces=()
)
def adam_steps_(
    params: list[Tensor], grads: list[Tensor], means: list[Tensor], squares: list[Tensor], most: list[Tensor | None],
    *options: Any,
) -> None:  # fmt: skip
    """:func:`adam_step_` on many parameters of one dtype and device; options as there."""
    left = adam_steps_.run(params, grads, means, squares, most, *options)
    _finish(adam_step_, left, (params, grads, means, squares, most), options)


adam_steps_.nondifferentiable()
adam_steps_.composite(lambda params, *_: range(len(params)))
