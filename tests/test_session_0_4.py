"""A working day of 0.4: code as it was written then, from top to bottom, with what it gives."""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn, optim
from flambeau.autograd import Function, Variable, grad
from flambeau.nn import functional as F
from flambeau.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from flambeau.utils.data import DataLoader, Dataset, TensorDataset


def test_tensors_of_the_time():
    x = torch.Tensor(2, 3)
    assert x.size() == torch.Size([2, 3]) and x.type() == "torch.FloatTensor" and x.dim() == 2
    y = torch.LongTensor([[1, 2, 3], [4, 5, 6]])
    assert isinstance(y, torch.LongTensor) and not isinstance(y, torch.FloatTensor)
    assert y.numpy().dtype == np.int64 and y.t().contiguous().view(-1).tolist() == [1, 4, 2, 5, 3, 6]
    z = y.float().mul_(2).add_(1)
    assert z.sum().item() == 2 * 21 + 6 and z.new(2, 2).zero_().sum() == 0
    assert z.type("torch.DoubleTensor").dtype is torch.float64 and z.type_as(y).dtype is torch.int64
    assert torch.range(1, 3).tolist() == [1, 2, 3] and torch.arange(0, 1, 0.25).numel() == 4
    mask = y > 3
    assert y[mask].tolist() == [4, 5, 6] and y[mask.type(torch.ByteTensor)].tolist() == [4, 5, 6]
    assert (1 - mask.byte()).sum().item() == 3 and mask.sum().item() == 3
    assert y.max(1)[1].tolist() == [2, 2] and y.max(1, keepdim=True)[0].size() == (2, 1)
    values, indices = torch.topk(y.float(), 2, 1)
    assert values.tolist() == [[3, 2], [6, 5]] and indices.tolist() == [[2, 1], [2, 1]]
    assert torch.cat((y, y), 0).size(0) == 4 and torch.stack([y, y], 2).size() == (2, 3, 2)
    assert [each.size(1) for each in y.chunk(2, 1)] == [2, 1] and len(y.split(1, 0)) == 2
    y.index_fill_(1, torch.LongTensor([0]), 9).scatter_(1, torch.LongTensor([[1], [2]]), -1)
    assert y.tolist() == [[9, -1, 3], [9, 5, -1]]
    assert torch.from_numpy(np.arange(3.0)).type() == "torch.DoubleTensor"
    assert torch.zeros(2, 3, out=torch.Tensor()).size() == (2, 3) and torch.equal(
        torch.eye(2), torch.Tensor([[1, 0], [0, 1]])
    )


def test_old_orders_of_arguments():
    a, b, c = torch.ones(2, 2), torch.eye(2) * 3, torch.ones(2, 2) * 5
    for call in (
        lambda: torch.addmm(0.5, c, 2, a, b), lambda: c.addmm(0.5, 2, a, b), lambda: torch.addmm(c, a, b, beta=0.5, alpha=2)
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            np.testing.assert_array_equal(call().numpy(), np.full((2, 2), 8.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        np.testing.assert_array_equal(torch.add(a, 2, b).numpy(), 1 + 6 * np.eye(2))
        np.testing.assert_array_equal(a.clone().addcmul_(2, b, b).numpy(), 1 + 18 * np.eye(2))


def test_variables_and_gradients():
    x = Variable(torch.ones(2, 2), requires_grad=True)
    assert type(x) is torch.Tensor and isinstance(x, Variable)
    y = (x + 2) ** 2 * 3
    assert y.grad_fn is not None and x.is_leaf and not y.is_leaf
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.clone()))
    y.mean().backward(retain_graph=True)
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]] and seen[0].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    handle.remove()
    x.grad.data.zero_()
    y.backward(torch.ones(2, 2))
    assert len(seen) == 1 and x.grad[0, 0].item() == 18
    x.data.add_(1)  # not tracked
    assert x.requires_grad and x._version >= 0 and x.detach().requires_grad is False
    (first,) = grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with pytest.warns(DeprecationWarning, match="volatile"):
        v = Variable(torch.ones(1), volatile=True)
    assert not v.requires_grad
    with pytest.raises(IndexError, match=r"invalid index of a 0-dim tensor\. Use `tensor\.item\(\)`"):
        x.sum().data[0]


def test_a_function_in_the_static_style():
    class MyReLU(Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    x = torch.Tensor([-1, 2, 3]).requires_grad_()
    MyReLU.apply(x).sum().backward()
    assert x.grad.tolist() == [0, 1, 1]
    assert torch.autograd.gradcheck(MyReLU.apply, (torch.randn(4, dtype=torch.double, requires_grad=True),))


def test_without_cuda_it_says_what_to_install():
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    with pytest.raises(RuntimeError, match="cuda"):
        torch.ones(1).cuda()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    assert nn.Linear(2, 2).to(device).weight.device == device


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.conv2_drop = nn.Dropout2d()
        self.bn = nn.BatchNorm2d(4)
        self.fc1 = nn.Linear(4 * 3 * 3, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.bn(self.conv1(x)), 2))
        x = self.conv2_drop(x)
        x = x.view(-1, 4 * 3 * 3)
        return F.log_softmax(self.fc1(x), dim=1)


def stripes(count):
    """Images with a bright row, and its number as label."""
    labels = torch.LongTensor(np.arange(count) % 6)
    images = torch.zeros(count, 1, 8, 8)
    for each in range(count):
        images[each, 0, labels[each] + 1] = 1
    return images + torch.randn(images.size()) * 0.1, labels


def test_training_testing_and_saving():
    torch.manual_seed(1)
    images, labels = stripes(240)
    loader = DataLoader(TensorDataset(images, labels), batch_size=24, shuffle=True)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    losses = []
    for _ in range(6):
        model.train()
        for data, target in loader:
            data, target = Variable(data), Variable(target)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    assert math.isclose(optimizer.param_groups[0]["lr"], 0.05) and losses[-1] < losses[0] / 3
    model.eval()
    test_images, test_labels = stripes(60)
    with torch.no_grad():
        output = model(test_images)
        with pytest.warns(DeprecationWarning, match="size_average"):
            total = F.nll_loss(output, test_labels, size_average=False).item()
        pred = output.max(1, keepdim=True)[1]
        correct = pred.eq(test_labels.view_as(pred)).sum().item()
    assert correct >= 55 and math.isclose(total, -output.gather(1, test_labels.unsqueeze(1)).sum().item(), rel_tol=1e-5)

    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 6}, file)
    file.seek(0)
    kept = torch.load(file, map_location=lambda storage, location: storage)
    again, other = Net(), optim.SGD(Net().parameters(), lr=1)
    again.load_state_dict(kept["model"])
    other.load_state_dict(kept["optimizer"])
    again.eval()
    assert torch.equal(again(test_images), output) and kept["epoch"] == 6 and other.param_groups[0]["momentum"] == 0.5
    assert sum(p.numel() for p in again.parameters()) == 4 * 9 + 4 + 8 + 36 * 10 + 10


def test_weights_by_hand():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def weights_init(m):
        if m.__class__.__name__.find("Linear") != -1:
            m.weight.data.normal_(0.0, 0.02)
            m.bias.data.fill_(0)

    model.apply(weights_init)
    assert model[0].bias.abs().sum().item() == 0 and model[0].weight.std().item() < 0.1
    nn.init.xavier_uniform_(model[0].weight)
    with pytest.warns(FutureWarning, match="xavier_uniform_"):
        nn.init.xavier_uniform(model[0].weight)
    x, y = torch.randn(64, 3), torch.randn(64, 1)
    loss_fn, learning_rate = nn.MSELoss(reduction="sum"), 1e-3
    before = loss_fn(model(x), y).item()
    for _ in range(50):
        loss = loss_fn(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= learning_rate * param.grad
    assert loss_fn(model(x), y).item() < before
    for name, param in model.named_parameters():
        param.requires_grad = name.startswith("2")
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True]


def test_recurrent_nets_and_packed_sequences():
    torch.manual_seed(0)
    rnn = nn.LSTM(input_size=3, hidden_size=5, num_layers=2, bidirectional=True)
    x = torch.randn(4, 2, 3)
    packed = pack_padded_sequence(x, [4, 2])
    output, (h, c) = rnn(packed)
    padded, lengths = pad_packed_sequence(output)
    assert padded.size() == (4, 2, 10) and list(lengths) == [4, 2] and h.size() == c.size() == (4, 2, 5)
    assert padded[2:, 1].abs().sum().item() == 0
    alone, (h1, _) = rnn(x[:2, 1:])
    np.testing.assert_allclose(padded[:2, 1:].detach().numpy(), alone.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h[:, 1:].detach().numpy(), h1.detach().numpy(), rtol=1e-5, atol=1e-6)
    embedding = nn.Embedding(10, 3, padding_idx=0)
    embedding(torch.LongTensor([[0, 2], [4, 0]])).sum().backward()
    assert embedding.weight.grad[0].abs().sum().item() == 0 and embedding.weight.grad[2].tolist() == [1, 1, 1]


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return {"x": torch.Tensor([index]), "y": index**2}


def test_data_of_ones_own():
    batches = list(DataLoader(Squares(), batch_size=4, num_workers=2, drop_last=False))
    assert [each["x"].view(-1).tolist() for each in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[2]["y"].tolist() == [64, 81] and batches[0]["y"].dtype is torch.int64


def test_other_losses_and_optimizers_of_the_time():
    torch.manual_seed(3)
    x, target = torch.randn(5, 4), torch.LongTensor([0, 3, 1, 2, 2])
    with pytest.warns(DeprecationWarning, match="reduce"):
        each = nn.CrossEntropyLoss(reduce=False)(x, target)
    a = x.numpy().astype(np.float64)
    expected = np.log(np.exp(a).sum(1)) - a[np.arange(5), target.numpy()]
    np.testing.assert_allclose(each.numpy(), expected, rtol=1e-5)
    for make in (
        lambda p: optim.Adam(p, lr=0.05), lambda p: optim.RMSprop(p, lr=0.02), lambda p: optim.Adagrad(p, lr=0.3),
        lambda p: optim.Adadelta(p), lambda p: optim.Adamax(p, lr=0.05), lambda p: optim.ASGD(p, lr=0.05),
        lambda p: optim.Rprop(p), lambda p: optim.LBFGS(p, lr=0.3),
    ):  # fmt: skip
        w = Variable(torch.zeros(4, 4), requires_grad=True)
        optimizer = make([w])

        def closure(w=w, optimizer=optimizer):
            optimizer.zero_grad()
            loss = F.cross_entropy(x.mm(w), target)
            loss.backward()
            return loss

        first = closure().item()
        for _ in range(10):
            optimizer.step(closure)
        assert closure().item() < first, optimizer


def test_broadcasting_in_place_and_printing():
    x = torch.ones(3, 1)
    x = x + torch.arange(2, dtype=torch.float)
    assert str(x) == "tensor([[1., 2.],\n        [1., 2.],\n        [1., 2.]])"
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, requires_grad=True).add_(1)
    y = torch.ones(2, requires_grad=True)
    z = y.exp()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    assert repr(torch.tensor([1e-8, 1.0])) == "tensor([1.0000e-08, 1.0000e+00])"
