"""What is timed: for each row, a function from a library's module to a callable without arguments.

``torch`` rows serve flambeau as well: the interface is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Maker = Callable[[Any], Callable[[], Any]]


def _random(np: Any, *shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def both(operation: Callable[..., Any], *shapes: tuple[int, ...]) -> dict[str, Maker]:
    """An operation that both interfaces spell alike, on normal random arrays."""

    def for_torch(T: Any) -> Callable[[], Any]:
        args = [T.randn(*shape) for shape in shapes]
        return lambda: operation(T, *args)

    def for_numpy(np: Any) -> Callable[[], Any]:
        args = [_random(np, *shape) for shape in shapes]
        return lambda: operation(np, *args)

    return {"torch": for_torch, "numpy": for_numpy}


def only(make: Maker) -> dict[str, Maker]:
    """A row without a numpy version."""
    return {"torch": make}


def _chain(count: int) -> Maker:
    def make(T: Any) -> Callable[[], Any]:
        x = T.randn(10).requires_grad_()

        def step() -> None:
            y = x
            for _ in range(count):
                y = y * 1.01
            y.sum().backward()

        return step

    return make


def _gather(T: Any) -> Callable[[], Any]:
    x, index = T.randn(10**6), T.randint(0, 10**6, (10**6,))
    return lambda: x[index]


def _layer(name: str, shape: tuple[int, ...], *args: Any, **options: Any) -> Maker:
    def make(T: Any) -> Callable[[], Any]:
        module, x = getattr(T.nn, name)(*args, **options), T.randn(*shape)
        return lambda: module(x)

    return make


def _training(T: Any) -> Callable[[], Any]:
    model = T.nn.Sequential(T.nn.Linear(784, 256), T.nn.ReLU(), T.nn.Linear(256, 10))
    optimizer = T.optim.SGD(model.parameters(), lr=1e-4)
    x, y = T.randn(64, 784), T.randint(0, 10, (64,))

    def step() -> None:
        optimizer.zero_grad()
        T.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


_SMALL, _LARGE, _MATRIX = (10,), (10**7,), (1000, 1000)

WORKLOADS: dict[str, dict[str, Maker]] = {
    "overhead/add": both(lambda xp, a, b: a + b, _SMALL, _SMALL),
    "overhead/mul number": both(lambda xp, a: a * 2.5, _SMALL),
    "overhead/slice": both(lambda xp, a: a[2:7], _SMALL),
    "overhead/sum": both(lambda xp, a: a.sum(), _SMALL),
    "overhead/backward, 2 ops": only(_chain(1)),
    "overhead/backward, 50 ops": only(_chain(49)),
    "elementwise/add 1e7": both(lambda xp, a, b: a + b, _LARGE, _LARGE),
    "elementwise/exp 1e6": both(lambda xp, a: xp.exp(a), (10**6,)),
    "elementwise/tanh 1e6": both(lambda xp, a: xp.tanh(a), (10**6,)),
    "elementwise/where 1e6": both(lambda xp, a, b: xp.where(a > 0, a, b), (10**6,), (10**6,)),
    "elementwise/add transposed": both(lambda xp, a, b: a.T + b, _MATRIX, _MATRIX),
    "reduction/sum 1e7": both(lambda xp, a: a.sum(), _LARGE),
    "reduction/max rows": both(lambda xp, a: a.max(1), _MATRIX),
    "reduction/std": both(lambda xp, a: a.std(), (10**6,)),
    "order/sort 1e6": both(lambda xp, a: xp.sort(a), (10**6,)),
    "indexing/x[i] 1e6": {"torch": _gather, "numpy": lambda np: _numpy_gather(np)},
    "indexing/mask 1e6": both(lambda xp, a: a[a > 0], (10**6,)),
    "random/normal 1e6": {"torch": lambda T: lambda: T.randn(10**6), "numpy": lambda np: lambda: _random(np, 10**6)},
    "random/dropout 1e6": only(_layer("Dropout", (10**6,), 0.5)),
    "linalg/matmul 64": both(lambda xp, a, b: a @ b, (64, 64), (64, 64)),
    "linalg/matmul 1000": both(lambda xp, a, b: a @ b, _MATRIX, _MATRIX),
    "layers/Linear": only(_layer("Linear", (64, 512), 512, 512)),
    "layers/Conv2d": only(_layer("Conv2d", (8, 64, 28, 28), 64, 64, 3, padding=1)),
    "layers/BatchNorm2d": only(_layer("BatchNorm2d", (8, 64, 56, 56), 64)),
    "layers/MaxPool2d": only(_layer("MaxPool2d", (8, 64, 56, 56), 2)),
    "layers/LSTM": only(_layer("LSTM", (50, 32, 128), 128, 128)),
    "training/perceptron, batch 64": only(_training),
}


def _numpy_gather(np: Any) -> Callable[[], Any]:
    x, index = _random(np, 10**6), np.random.default_rng(0).integers(0, 10**6, 10**6)
    return lambda: x[index]
