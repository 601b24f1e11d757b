"""Train a convolutional network on 1 797 handwritten digits (scikit-learn's load_digits, 8x8 pixels)."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import matplotlib
import numpy as np
from common import arguments, batches, check_reloaded, progress, providers_used
from sklearn.datasets import load_digits

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

matplotlib.use("Agg")
from matplotlib import pyplot


class Net(nn.Module):
    """Two convolutions with batch normalisation, one pooling, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.hidden, self.out = nn.Linear(32 * 16, 128), nn.Linear(128, 10)
        self.dropout = nn.Dropout(0.4)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = self.dropout(F.relu(self.hidden(x.view(x.size(0), -1))))
        return self.out(x)


def data(seed: int, device: str) -> tuple[Any, Any, Any, Any]:
    """Training images and labels, and those of the held-out fifth."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = torch.from_numpy((digits.images[order] / 16).astype(np.float32)).unsqueeze(1).to(device)
    labels = torch.from_numpy(digits.target[order].astype(np.int64)).to(device)
    held_out = len(order) // 5
    return images[held_out:], labels[held_out:], images[:held_out], labels[:held_out]


def outputs(model: Net, images: Any) -> Any:
    """The network's outputs, without dropout and without history."""
    model.eval()
    with torch.no_grad():
        return model(images)


def picture(
    path: Any, losses: list[float], accuracies: list[float], images: Any, wrong: list[tuple[int, int, int]]
) -> None:
    """The learning curve, and the digits that were misread."""
    figure = pyplot.figure(figsize=(9, 4.5))
    curve = figure.add_subplot(1, 2, 1)
    curve.plot(losses, label="training loss")
    curve.set_xlabel("epoch")
    curve.set_yscale("log")
    right = curve.twinx()
    right.plot([100 * each for each in accuracies], color="tab:green", label="test accuracy, %")
    right.set_ylim(90, 100)
    figure.legend(loc="upper center", ncols=2)
    for place, (index, read, true) in enumerate(wrong[:12]):
        cell = figure.add_subplot(3, 8, 5 + place % 4 + 8 * (place // 4))
        cell.imshow(images[index, 0].cpu().numpy(), cmap="gray_r")
        cell.set_title(f"{true} read as {read}", fontsize=7)
        cell.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    options = arguments(__doc__ or "", epochs=15)
    torch.manual_seed(options.seed)
    x, y, test_x, test_y = data(options.seed, options.device)
    model = Net().to(options.device)
    model_file = options.out / "digits.pt"
    if options.predict:
        model.load_state_dict(torch.load(model_file))
        options.predict.write_bytes(outputs(model, test_x).cpu().numpy().tobytes())
        return

    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    losses, accuracies, calls = [], [], torch.backends.trace()
    start = time.perf_counter()
    for epoch in range(options.epochs):
        model.train()
        total, steps = 0.0, -(-len(x) // options.batch)
        with contextlib.nullcontext() if epoch else calls:
            for images, labels in progress(batches(x, y, options.batch), steps, f"epoch {epoch + 1:2}"):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.item() * len(labels)
        schedule.step()
        losses.append(total / len(x))
        accuracies.append((outputs(model, test_x).argmax(1) == test_y).float().mean().item())
        print(f"epoch {epoch + 1:2}  loss {losses[-1]:.4f}  test accuracy {100 * accuracies[-1]:.1f} %")
    print(f"trained in {time.perf_counter() - start:.1f} s\n")

    result = outputs(model, test_x)
    read = result.argmax(1)
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (test_y.cpu().numpy(), read.cpu().numpy()), 1)
    print("confusion matrix: rows are the digits, columns what was read")
    print("\n".join("  ".join(f"{count:3}" if count else "  ." for count in row) for row in confusion), "\n")
    for provider, names in providers_used(calls).items():
        print(f"{provider} served {len(names)} operators: {', '.join(names)}\n")

    torch.save(model.state_dict(), model_file)
    check_reloaded(__file__, options, model_file, result.cpu().numpy().tobytes())
    wrong = [(i, int(read[i]), int(test_y[i])) for i in range(len(test_y)) if read[i] != test_y[i]]
    picture(options.out / "digits.png", losses, accuracies, test_x, wrong)
    print(f"picture: {options.out / 'digits.png'}")
    print(f"test accuracy {100 * (1 - len(wrong) / len(test_y)):.1f} %")


if __name__ == "__main__":
    main()
