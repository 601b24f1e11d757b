"""Train a multi-layer perceptron to tell benign from malignant tumours (scikit-learn's load_breast_cancer)."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import arguments, batches, check_reloaded, progress
from sklearn.datasets import load_breast_cancer

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F


def data(seed: int) -> tuple[Any, Any, Any, Any]:
    """Standardised measurements and labels for training, and those of the held-out fifth."""
    samples = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(samples.target))
    held_out = len(order) // 5
    x = samples.data[order]
    x = (x - x[held_out:].mean(0)) / x[held_out:].std(0)
    features, labels = (
        torch.from_numpy(x.astype(np.float32)),
        torch.from_numpy(samples.target[order].astype(np.float32)),
    )
    return features[held_out:], labels[held_out:], features[:held_out], labels[:held_out]


def main() -> None:
    options = arguments(__doc__ or "", epochs=30)
    torch.manual_seed(options.seed)
    x, y, test_x, test_y = data(options.seed)
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    model_file = options.out / "mlp.pt"
    if options.predict:
        model.load_state_dict(torch.load(model_file))
        with torch.no_grad():
            options.predict.write_bytes(model(test_x).numpy().tobytes())
        return

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    for _ in progress(range(options.epochs), options.epochs, "training"):
        for features, labels in batches(x, y, options.batch):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(features).squeeze(1), labels).backward()
            optimizer.step()

    with torch.no_grad():
        result = model(test_x)
    torch.save(model.state_dict(), model_file)
    check_reloaded(__file__, options, model_file, result.numpy().tobytes())
    correct = ((result.squeeze(1) > 0).float() == test_y).float().mean().item()
    print(f"test accuracy {100 * correct:.1f} %")


if __name__ == "__main__":
    main()
