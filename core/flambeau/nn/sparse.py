"""Tables of vectors that are looked up by number."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError
from ..ops.creation import empty
from ..tensor import Tensor
from . import functional as F, init
from .module import Module
from .parameter import Parameter
from .sizes import shown

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool, sparse: bool, _weight: Tensor | None, _freeze: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings, got {padding_idx} for {num_embeddings} embeddings."
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype), not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(
                    f"Shape of weight does not match num_embeddings and embedding_dim: {list(_weight.shape)} against "
                    f"{[num_embeddings, embedding_dim]}."
                )
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Draw new vectors from a standard normal distribution; that of ``padding_idx`` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # type: ignore[index]

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Any:
        """A module over existing vectors.

        Args:
            embeddings: (num_embeddings, embedding_dim).
            freeze: do not learn.
            options: as for the class.

        Raises:
            ValueError: ``embeddings`` is no matrix.
        """
        if embeddings.geometry.ndim != 2:
            raise ArgumentError(
                f"Embeddings parameter is expected to be 2-dimensional, got shape {list(embeddings.shape)}."
            )
        rows, columns = embeddings.shape
        return cls(rows, columns, _weight=embeddings, _freeze=freeze, **options)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}" + "".join(
            f", {each}"
            for each in [
                shown(self, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False)
            ]
            if each
        )


class Embedding(_Table):
    """Looks vectors up: integers (...) give (..., embedding_dim).

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: their size.
        padding_idx: a number whose vector is zero to begin with and gets no gradient; may count from the end.
        max_norm: vectors with a larger norm are scaled down, in place, when looked up.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a number occurs in the batch.
        sparse: let the weight's gradient be a sparse tensor.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight, _freeze,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )


class EmbeddingBag(_Table):
    """Looks vectors up and combines those of each bag.

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse: as for :class:`Embedding`.
        mode: ``'sum'``, ``'mean'`` or ``'max'``.
        include_last_offset: the last offset is the size of the input.
        padding_idx: a number that counts for nothing.

    Input (B, N): B bags of N numbers; or (N) with ``offsets`` (B) where each bag begins.  Output (B, embedding_dim).
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, _freeze: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight, _freeze,
            device, dtype,
        )  # fmt: skip
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return super().extra_repr() + f", mode={self.mode!r}"
