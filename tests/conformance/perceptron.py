"""Trains a perceptron on a device, with nothing falling back: run by the tests of the kit.

Prints who served; exit status 1 unless it is the device alone.  The exclusive-or of two signs is learnt.
"""

import sys

import numpy as np

import flambeau as torch

device = sys.argv[1]
torch.set_default_device(device)
torch.manual_seed(3)
signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, 2))
x = torch.tensor(signs + np.random.default_rng(1).normal(0, 0.2, signs.shape), dtype=torch.float32)
y = torch.tensor((signs.prod(1) > 0).astype(np.int64))

with torch.backends.trace() as calls:
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    right = (model(x).argmax(1) == y).float().mean().item()

places = {each.device.partition(":")[0] for each in calls.calls}
ways = {each.how for each in calls.calls}
if right < 0.98 or places != {device} or not ways <= {"kernel", "composite"}:
    sys.exit(f"{right:.0%} right, on {places}, by {ways}")
print(f"{right:.0%} right, served by {device} alone")
