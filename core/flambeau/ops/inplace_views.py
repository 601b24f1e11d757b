"""In-place forms of operators whose result is a view: the tensor itself gets the new shape and strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..autograd.grad_mode import mode
from ..autograd.node import Leaf, tracked
from ..dispatch.operator import offer
from ..errors import AutogradError
from ..tensor import VIEW, Tensor, touch
from .strides import as_strided
from .views import squeeze, t, transpose, unsqueeze

__all__: list[str] = []


def _become(self: Tensor, viewed: Tensor, name: str) -> Tensor:
    """Let a tensor be a view of itself; those who saved it notice, as its old shape is gone."""
    if mode.enabled and tracked(self):
        if type(self.node) is Leaf:
            raise AutogradError(
                f"a leaf Variable that requires grad is being used in an in-place operation ({name}, shape {list(self.shape)}).\n"
                f"Use {name.removesuffix('_')}(), or torch.no_grad()."
            )
        if self.base is not None:
            raise AutogradError(f"{name}() of a view that has history.\nUse {name.removesuffix('_')}().")
    node = self.node
    self.geometry, self.memory, self.shared = viewed.geometry, viewed.memory, viewed.shared
    if viewed.offset != self.offset:
        self.offset = viewed.offset
    if node is not None and node is not VIEW and mode.enabled:
        self.node, self.output = viewed.node, viewed.output
    touch(self)
    return self


_FORMS: Final[dict[str, Any]] = {
    "as_strided_": as_strided, "squeeze_": squeeze, "t_": t, "transpose_": transpose, "unsqueeze_": unsqueeze,
}  # fmt: skip


def _form(name: str, out_of_place: Callable[..., Any]) -> None:
    def inplace(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _become(self, out_of_place(self, *args, **kwargs), name)

    inplace.__name__ = inplace.__qualname__ = name
    inplace.__doc__ = f"In-place form of :func:`{name.removesuffix('_')}`: the memory stays as it is."
    offer(namespaces=())(inplace)


for _name, _function in _FORMS.items():
    _form(_name, _function)
