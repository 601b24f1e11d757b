"""Recurrent networks: RNN, LSTM, GRU, and their single steps.

Source of LSTM: Hochreiter and Schmidhuber, "Long short-term memory", 1997; of GRU: Cho et al., "Learning phrase
representations using RNN encoder-decoder for statistical machine translation",
2014 (with the reset gate after the product).
"""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

from ..errors import ArgumentError, ArgumentTypeError, ShapeError, shown as describe
from ..ops.creation import empty
from ..ops.recurrent import GATES, recurrent
from ..ops.views import declared
from ..tensor import Tensor
from . import functional as F, init
from .module import Module
from .parameter import Parameter
from .sizes import shown
from .utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]


def _pair_of_states(name: str, hx: Any) -> tuple[Any, Any]:
    if hx is None:
        return None, None
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        came = f"a tensor of shape {list(hx.shape)}" if isinstance(hx, Tensor) else describe(hx, 60)
        raise ArgumentTypeError(f"{name}: expected hx to be a pair (h_0, c_0), got {came}.")
    return hx[0], hx[1]


class RNNBase(Module):
    """What the recurrent layers have in common.

    Args:
        input_size: size of the input's last dimension.
        hidden_size: size of the state.
        num_layers: layers that feed each other.
        bias: whether to add biases.
        batch_first: sequences come as (N, T, input_size) instead of (T, N, input_size).
        dropout: probability of zeros in what one layer passes to the next, in training.
        bidirectional: run also from the end to the beginning, and put the two results side by side.

    Parameters ``weight_ih_l0`` (G * hidden_size, input), ``weight_hh_l0`` (G * hidden_size, hidden_size),
    ``bias_ih_l0``, ``bias_hh_l0``, then ``..._l0_reverse``, ``..._l1``, ...; all begin uniform within
    ``1 / sqrt(hidden_size)``.
    """

    kind: ClassVar[str] = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ArgumentError(
                f"dropout should be a number in range [0, 1], the probability of a zero, got {dropout!r}."
            )
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError(
                f"hidden_size and num_layers must be greater than zero, got {hidden_size} and {num_layers}."
            )
        if dropout and num_layers == 1:
            warnings.warn(
                f"dropout applies between layers; dropout={dropout} does nothing with num_layers=1.",
                UserWarning,
                stacklevel=3,
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        rows = GATES[self.kind] * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * self._directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    @property
    def mode(self) -> str:
        """``'LSTM'``, ``'GRU'``, ``'RNN_TANH'`` or ``'RNN_RELU'``."""
        return self.kind.upper() if self.kind in ("lstm", "gru") else f"RNN_{self.kind.upper()}"

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / math.sqrt(self.hidden_size)
        for each in self.parameters(recurse=False):
            init.uniform_(each, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing; kernels take the parameters where they are."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"][: 4 if self.bias else 2]
        return [
            [getattr(self, name + suffix) for name in names]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _initial(self, name: str, given: Any, x: Any, batch: int, batched: bool, order: Any) -> Any:
        """The initial states of all layers and directions, (layers * directions, batch, hidden_size)."""
        count, width = self.num_layers * self._directions, self.hidden_size
        if given is None:
            return x.new_zeros((count, batch, width))
        if not batched and given.geometry.ndim == 2:
            given = given.unsqueeze(1)
        if tuple(given.shape) != (count, batch, width):
            raise ShapeError(f"Expected {name} size {(count, batch, width)}, got {list(given.shape)}")
        return given if order is None else given.index_select(1, order)

    def _split_states(self, hx: Any) -> tuple[Any, Any]:
        return hx, None

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run over sequences.

        Args:
            input: (T, N, input_size), (N, T, input_size) if ``batch_first``, (T, input_size) or a PackedSequence.
            hx: initial state (layers * directions, N, hidden_size), zeros if not given; a pair with the cell for LSTM.

        Returns:
            the last layer's states of all steps (directions side by side), and the last states of all layers.

        Raises:
            RuntimeError: sizes do not fit.
            ValueError: the input has the wrong number of dimensions.
        """
        packed = isinstance(input, PackedSequence)
        order = back = None
        batched = True
        if packed:
            rows, order, back = input.data, input.sorted_indices, input.unsorted_indices
            sizes = tuple(input.batch_sizes.tolist())
            steps, batch = len(sizes), sizes[0]
        else:
            if input.geometry.ndim not in (2, 3):
                raise ArgumentError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.geometry.ndim}D instead"
                )
            batched = input.geometry.ndim == 3
            if not batched:
                input = input.unsqueeze(1)
            elif self.batch_first:
                input = input.transpose(0, 1)
            steps, batch = input.shape[:2]
            sizes = (batch,) * steps
            rows = input.reshape(steps * batch, input.shape[2])
        if rows.shape[1] != self.input_size:
            raise ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {rows.shape[1]}"
            )
        if not steps:
            raise ShapeError("Expected sequence length to be larger than 0 in RNN")
        h0, c0 = self._split_states(hx)
        h0 = self._initial("hidden[0]" if self.kind == "lstm" else "hidden", h0, rows, batch, batched, order)
        c0 = self._initial("hidden[1]", c0, rows, batch, batched, order) if self.kind == "lstm" else None
        rows, lasts = self._layers(rows, h0, c0, sizes)
        states = [declared("stack")(each) for each in lasts]
        if back is not None:
            states = [each.index_select(1, back) for each in states]
        if packed:
            result: Any = PackedSequence(rows, input.batch_sizes, order, back)
        else:
            result = rows.view(steps, batch, rows.shape[1])
            if not batched:
                result, states = result.squeeze(1), [each.squeeze(1) for each in states]
            elif self.batch_first:
                result = result.transpose(0, 1)
        return result, tuple(states) if self.kind == "lstm" else states[0]

    def _layers(self, rows: Any, h0: Any, c0: Any, sizes: tuple[int, ...]) -> tuple[Any, list[list[Any]]]:
        """All layers and directions; sequences lie step by step."""
        held = self.__dict__
        lasts: list[list[Any]] = [[], []] if c0 is not None else [[]]
        number = 0
        for layer in range(self.num_layers):
            results = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                bias = recurrent_bias = None
                if self.bias:
                    bias, recurrent_bias = held["bias_ih" + suffix], held["bias_hh" + suffix]
                    if self.kind != "gru":
                        bias, recurrent_bias = bias + recurrent_bias, None
                gates = F.linear(rows, held["weight_ih" + suffix], bias)
                output, *last = recurrent(
                    gates, h0[number], None if c0 is None else c0[number], held["weight_hh" + suffix], recurrent_bias,
                    self.kind, sizes, bool(direction),
                )  # fmt: skip
                results.append(output)
                for each, kept in zip(last, lasts, strict=True):
                    kept.append(each)
                number += 1
            rows = results[0] if len(results) == 1 else declared("cat")(results, 1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                rows = F.dropout(rows, self.dropout, True)
        return rows, lasts

    def extra_repr(self) -> str:
        rest = shown(self, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)
        return f"{self.input_size}, {self.hidden_size}" + (f", {rest}" if rest else "")


class RNN(RNNBase):
    __doc__ = (RNNBase.__doc__ or "").replace(
        "What the recurrent layers have in common.",
        "``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or ReLU with ``nonlinearity='relu'``.",
    )

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if len(args) > 3:  # the fourth positional argument is the nonlinearity
            nonlinearity, args = args[3], args[:3] + args[4:]
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        self.kind = nonlinearity  # type: ignore[misc]
        self.nonlinearity = nonlinearity
        super().__init__(*args, **kwargs)


class LSTM(RNNBase):
    __doc__ = (RNNBase.__doc__ or "").replace(
        "What the recurrent layers have in common.",
        "Gates i, f, g, o; ``c = sigmoid(f) c + sigmoid(i) tanh(g)``, ``h = sigmoid(o) tanh(c)``.",
    )
    kind = "lstm"

    def _split_states(self, hx: Any) -> tuple[Any, Any]:
        return _pair_of_states("LSTM", hx)


class GRU(RNNBase):
    __doc__ = (RNNBase.__doc__ or "").replace(
        "What the recurrent layers have in common.",
        "Gates r, z, n; ``n = tanh(n_ih + sigmoid(r) n_hh)``, ``h = (1 - sigmoid(z)) n + sigmoid(z) h``.",
    )
    kind = "gru"


class RNNCellBase(Module):
    """What the single steps have in common.

    Args:
        input_size, hidden_size: sizes of the last dimensions of input and state.
        bias: whether to add biases.
    """

    kind: ClassVar[str] = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = GATES[self.kind] * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias_ih", Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for each in self.parameters(recurse=False):
            init.uniform_(each, -bound, bound)

    def _step(self, input: Any, hx: Any, cx: Any) -> tuple[Any, ...]:
        single = input.geometry.ndim == 1
        if input.geometry.ndim not in (1, 2):
            raise ArgumentError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.geometry.ndim}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise ShapeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}")
        x = input.unsqueeze(0) if single else input
        states = []
        for each in (hx, cx) if self.kind == "lstm" else (hx,):
            if each is None:
                each = x.new_zeros((x.shape[0], self.hidden_size))
            elif single:
                each = each.unsqueeze(0)
            if tuple(each.shape) != (x.shape[0], self.hidden_size):
                raise ShapeError(
                    f"Expected hidden of size {(x.shape[0], self.hidden_size)} for input {list(input.shape)}, "
                    f"got {list(each.shape)}."
                )
            states.append(each)
        bias, recurrent_bias = self.bias_ih, self.bias_hh
        if self.kind != "gru" and bias is not None:
            bias, recurrent_bias = bias + recurrent_bias, None
        gates = F.linear(x, self.weight_ih, bias)
        cell = states[1] if self.kind == "lstm" else None
        results = recurrent(gates, states[0], cell, self.weight_hh, recurrent_bias, self.kind, (x.shape[0],))[1:]
        return tuple(each.squeeze(0) for each in results) if single else tuple(results)

    def extra_repr(self) -> str:
        rest = shown(self, bias=True)
        return f"{self.input_size}, {self.hidden_size}" + (f", {rest}" if rest else "")


class RNNCell(RNNCellBase):
    """One step of :class:`RNN`: input (N, input_size) and state (N, hidden_size) to the next state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        self.kind = nonlinearity  # type: ignore[misc]
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, hx, None)[0]


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`: input (N, input_size) and (h, c), each (N, hidden_size), to the next (h, c)."""

    kind = "lstm"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, *_pair_of_states("LSTMCell", hx))


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`: input (N, input_size) and state (N, hidden_size) to the next state."""

    kind = "gru"

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(input, hx, None)[0]
