"""Recurrent networks against step-by-step NumPy, and packed sequences."""

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, state, w_ih, w_hh, b_ih, b_hh):
    """One step of one cell; the state is (h,) or (h, c)."""
    a, b = x @ w_ih.T + b_ih, state[0] @ w_hh.T + b_hh
    if kind == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        n = np.tanh(an + sigmoid(ar + br) * bn)
        z = sigmoid(az + bz)
        return ((1 - z) * n + z * state[0],)
    return (np.maximum(a + b, 0) if kind == "relu" else np.tanh(a + b),)


def run(kind, module, x, states):
    """All layers and directions over one sequence (T, N, I); returns outputs and last states."""
    lasts = [[] for _ in states]
    for layer in range(module.num_layers):
        sides = []
        for direction in range(2 if module.bidirectional else 1):
            suffix = f"_l{layer}" + "_reverse" * direction
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [
                getattr(module, name + suffix).detach().numpy() if hasattr(module, name + suffix) else 0.0
                for name in names
            ]
            state = tuple(each[len(lasts[0])] for each in states)
            outputs = []
            for row in x[::-1] if direction else x:
                state = step(kind, row, state, *weights)
                outputs.append(state[0])
            sides.append(np.stack(outputs[::-1] if direction else outputs))
            for kept, each in zip(lasts, state, strict=True):
                kept.append(each)
        x = np.concatenate(sides, -1)
    return x, [np.stack(each) for each in lasts]


def make(kind, *args, **options):
    if kind in ("tanh", "relu"):
        return nn.RNN(*args, nonlinearity=kind, **options).double()
    return getattr(nn, kind)(*args, **options).double()


def close(got, wanted, tolerance=1e-10):
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=tolerance, atol=tolerance)


KINDS = ["LSTM", "GRU", "tanh", "relu"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_layers(kind, bidirectional, layers, bias):
    generator = np.random.default_rng(1)
    module = make(kind, 3, 5, layers, bidirectional=bidirectional, bias=bias)
    count = layers * (2 if bidirectional else 1)
    x = generator.normal(size=(6, 4, 3))
    states = [generator.normal(size=(count, 4, 5)) for _ in range(2 if kind == "LSTM" else 1)]
    given = [flambeau.tensor(each) for each in states]
    output, last = module(flambeau.tensor(x), tuple(given) if kind == "LSTM" else given[0])
    wanted, lasts = run(kind, module, x, states)
    close(output, wanted)
    for got, each in zip(last if kind == "LSTM" else [last], lasts, strict=True):
        close(got, each)
    zeros = [np.zeros_like(each) for each in states]
    close(module(flambeau.tensor(x))[0], run(kind, module, x, zeros)[0])
    close(module(flambeau.tensor(x[:, 0]))[0], run(kind, module, x[:, :1], [each[:, :1] for each in zeros])[0][:, 0])
    module.batch_first = True
    output, last = module(flambeau.tensor(x.transpose(1, 0, 2).copy()), tuple(given) if kind == "LSTM" else given[0])
    close(output, wanted.transpose(1, 0, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed(kind, bidirectional):
    generator = np.random.default_rng(2)
    module = make(kind, 3, 4, 2, bidirectional=bidirectional)
    lengths = [2, 5, 3, 5]
    x = generator.normal(size=(5, 4, 3))
    states = [generator.normal(size=(4 if bidirectional else 2, 4, 4)) for _ in range(2 if kind == "LSTM" else 1)]
    given = [flambeau.tensor(each) for each in states]
    packed = pack_padded_sequence(flambeau.tensor(x), lengths, enforce_sorted=False)
    output, last = module(packed, tuple(given) if kind == "LSTM" else given[0])
    padded, sizes = pad_packed_sequence(output)
    assert sizes.tolist() == lengths
    last = last if kind == "LSTM" else [last]
    for number, length in enumerate(lengths):
        own = [each[:, number : number + 1] for each in states]
        wanted, lasts = run(kind, module, x[:length, number : number + 1], own)
        close(padded[:length, number], wanted[:, 0])
        assert not padded[length:, number].detach().numpy().any()
        for got, each in zip(last, lasts, strict=True):
            close(got[:, number], each[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[3, 3], [3, 2, 1]])
def test_gradients(kind, lengths):
    flambeau.manual_seed(3)
    generator = np.random.default_rng(3)
    module = make(kind, 2, 3, bidirectional=True)
    x = flambeau.tensor(generator.normal(size=(3, len(lengths), 2)), requires_grad=True)
    h = flambeau.tensor(generator.normal(size=(2, len(lengths), 3)), requires_grad=True)
    names, weights = zip(*module.named_parameters(), strict=True)

    def function(x, h, *weights):
        module.__dict__.update(zip(names, weights, strict=False))
        state = (h, h * 0.5) if kind == "LSTM" else h
        output, last = module(pack_padded_sequence(x, lengths), state)
        return (output.data, *last) if kind == "LSTM" else (output.data, last)

    assert gradcheck(function, (x, h, *weights))
    assert gradgradcheck(function, (x, h, *weights[:2]))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "tanh", "relu"])
def test_cells(kind):
    generator = np.random.default_rng(4)
    if kind in ("tanh", "relu"):
        cell = nn.RNNCell(3, 5, nonlinearity=kind).double()
    else:
        cell = getattr(nn, kind + "Cell")(3, 5).double()
    x = generator.normal(size=(4, 3))
    states = tuple(generator.normal(size=(4, 5)) for _ in range(2 if kind == "LSTM" else 1))
    weights = [getattr(cell, name).detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    given = tuple(flambeau.tensor(each) for each in states)
    got = cell(flambeau.tensor(x), given if kind == "LSTM" else given[0])
    for each, wanted in zip(got if kind == "LSTM" else [got], step(kind, x, states, *weights), strict=True):
        close(each, wanted)
    alone = cell(flambeau.tensor(x[0]))
    zeros = tuple(np.zeros(5) for _ in states)
    close(alone[0] if kind == "LSTM" else alone, step(kind, x[0], zeros, *weights)[0])
    a = flambeau.tensor(x, requires_grad=True)
    names, parameters = zip(*cell.named_parameters(), strict=True)

    def function(x, *weights):
        cell.__dict__.update(zip(names, weights, strict=True))
        return cell(x)

    assert gradcheck(function, (a, *parameters))
    with pytest.raises(RuntimeError, match="inconsistent input_size: got 2 expected 3"):
        cell(flambeau.zeros(4, 2))
    with pytest.raises(RuntimeError, match="Expected hidden of size"):
        wrong = flambeau.zeros(3, 5, dtype=flambeau.float64)
        cell(a, (wrong, wrong) if kind == "LSTM" else wrong)


def test_half_and_float32_agree_with_float64():
    generator = np.random.default_rng(5)
    module = make("GRU", 3, 70)
    x = generator.normal(size=(4, 2, 3))
    wanted = module(flambeau.tensor(x))[0].detach().numpy()
    close(module.float()(flambeau.tensor(x.astype(np.float32)))[0], wanted, 1e-5)
    close(module.half()(flambeau.tensor(x.astype(np.float16)))[0], wanted, 2e-2)


def test_dropout_between_layers_only():
    flambeau.manual_seed(0)
    module = nn.LSTM(3, 4, 2, dropout=1.0)
    x = flambeau.randn(5, 2, 3)
    dropped = module(x)[0]
    second = nn.LSTM(4, 4)
    second.load_state_dict(
        {name.replace("_l1", "_l0"): value for name, value in module.state_dict().items() if "_l1" in name}
    )
    close(dropped, second(flambeau.zeros(5, 2, 4))[0].detach().numpy(), 1e-6)
    module.eval()
    assert not np.allclose(module(x)[0].detach().numpy(), dropped.detach().numpy())


def test_names_repr_and_errors():
    module = nn.LSTM(3, 4, 2, bidirectional=True)
    assert [name for name, _ in module.named_parameters()][:8] == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
        "bias_ih_l0_reverse", "bias_hh_l0_reverse",
    ]  # fmt: skip
    assert module.weight_ih_l1.shape == (16, 8) and module.mode == "LSTM" and len(module.all_weights) == 4
    assert repr(module) == "LSTM(3, 4, num_layers=2, bidirectional=True)"
    assert nn.RNN(1, 2, 1, "relu").mode == "RNN_RELU"
    with pytest.raises(RuntimeError, match=r"Expected 3, got 5"):
        module(flambeau.zeros(2, 1, 5))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size \(4, 1, 4\), got \[1, 1, 4\]"):
        module(flambeau.zeros(2, 1, 3), (flambeau.zeros(1, 1, 4), flambeau.zeros(4, 1, 4)))
    with pytest.raises(
        TypeError, match=r"LSTM: expected hx to be a pair \(h_0, c_0\), got a tensor of shape \[4, 1, 4\]"
    ):
        module(flambeau.zeros(2, 1, 3), flambeau.zeros(4, 1, 4))
    with pytest.raises(
        TypeError, match=r"LSTMCell: expected hx to be a pair \(h_0, c_0\), got a tensor of shape \[1, 4\]"
    ):
        nn.LSTMCell(3, 4)(flambeau.zeros(1, 3), flambeau.zeros(1, 4))
    with pytest.raises(ValueError, match="Expected input to be 2D or 3D, got 1D"):
        module(flambeau.zeros(3))
    with pytest.raises(RuntimeError, match="larger than 0"):
        module(flambeau.zeros(0, 1, 3))
    with pytest.raises(ValueError, match="number in range"):
        nn.LSTM(3, 4, 2, dropout=2.0)
    with pytest.raises(ValueError, match="greater than zero"):
        nn.LSTM(3, 0)
    with pytest.raises(ValueError, match="Unknown nonlinearity 'sin'"):
        nn.RNN(3, 4, nonlinearity="sin")
    with pytest.warns(UserWarning, match="does nothing with num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)


# ---------------------------------------------------------------- packing


def test_pack_and_unpack():
    sequences = [flambeau.tensor([1.0, 2, 3]), flambeau.tensor([4.0]), flambeau.tensor([5.0, 6])]
    padded = pad_sequence(sequences, batch_first=True, padding_value=-1)
    assert padded.tolist() == [[1, 2, 3], [4, -1, -1], [5, 6, -1]]
    assert pad_sequence(sequences, padding_side="left").t().tolist() == [[1, 2, 3], [0, 0, 4], [0, 5, 6]]
    packed = pack_padded_sequence(padded, flambeau.tensor([3, 1, 2]), batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 6, 3] and packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [0, 2, 1] and packed.unsorted_indices.tolist() == [0, 2, 1]
    again, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert again.tolist() == [[1, 2, 3, -1], [4, -1, -1, -1], [5, 6, -1, -1]] and lengths.tolist() == [3, 1, 2]
    assert pack_sequence(sequences, enforce_sorted=False).data.tolist() == packed.data.tolist()
    assert [each.tolist() for each in unpad_sequence(again, lengths, batch_first=True)] == [[1, 2, 3], [4], [5, 6]]
    assert packed.double().data.dtype is flambeau.float64 and packed.to("cpu") is packed


def test_packing_differentiates():
    x = flambeau.tensor(np.random.default_rng(6).normal(size=(3, 3, 2)), requires_grad=True)

    def function(x):
        return pad_packed_sequence(pack_padded_sequence(x, [2, 3, 1], enforce_sorted=False), total_length=4)[0]

    assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))


def test_packing_errors():
    x = flambeau.zeros(3, 2, 1)
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        pack_padded_sequence(x, [2, 3])
    with pytest.raises(RuntimeError, match="greater than 0, but found an element in 'lengths' that is 0"):
        pack_padded_sequence(x, [2, 0])
    with pytest.raises(RuntimeError, match="got 1 \\(batch_size=2\\)"):
        pack_padded_sequence(x, [2])
    with pytest.raises(RuntimeError, match="at most the input's 3 steps, got 4"):
        pack_padded_sequence(x, [4, 1])
    with pytest.raises(ValueError, match="total_length=1 and max sequence length being 3"):
        pad_packed_sequence(pack_padded_sequence(x, [3, 1]), total_length=1)
    with pytest.raises(RuntimeError, match="empty list"):
        pad_sequence([])
    with pytest.raises(RuntimeError, match="trailing dimensions"):
        pad_sequence([flambeau.zeros(2, 1), flambeau.zeros(2, 3)])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch(kind):
    module = make(kind, 3, 4)
    x = flambeau.zeros(5, 0, 3, dtype=flambeau.float64, requires_grad=True)
    y = module(x)[0]
    y.sum().backward()
    assert y.shape == (5, 0, 4) and x.grad.shape == x.shape and not module.weight_hh_l0.grad.numpy().any()
