"""Each optimiser against its rule written out in NumPy, over dtypes, views and several steps."""

import numpy as np
import pytest

import flambeau
from flambeau import optim

TOLERANCE = {"float32": 3e-6, "float64": 1e-13}


def sgd(lr, momentum=0, dampening=0, weight_decay=0, nesterov=False):
    buffer = None

    def rule(p, g, _):
        nonlocal buffer
        g = g + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        return p - lr * g

    return rule


def adam(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, decoupled=False):
    m = v = most = 0.0

    def rule(p, g, step):
        nonlocal m, v, most
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        most = np.maximum(most, v)
        used = (most if amsgrad else v) / (1 - betas[1] ** step)
        return p - lr * m / (1 - betas[0] ** step) / (np.sqrt(used) + eps)

    return rule


def adamw(lr=1e-3, weight_decay=1e-2, **options):
    return adam(lr=lr, weight_decay=weight_decay, decoupled=True, **options)


def adamax(lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    m = u = 0.0

    def rule(p, g, step):
        nonlocal m, u
        g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, np.abs(g) + eps)
        return p - lr / (1 - betas[0] ** step) * m / u

    return rule


def adagrad(lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    total = initial_accumulator_value

    def rule(p, g, step):
        nonlocal total
        g = g + weight_decay * p
        total = total + g * g
        return p - lr / (1 + (step - 1) * lr_decay) * g / (np.sqrt(total) + eps)

    return rule


def adadelta(lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    square = moved = 0.0

    def rule(p, g, _):
        nonlocal square, moved
        g = g + weight_decay * p
        square = rho * square + (1 - rho) * g * g
        delta = np.sqrt(moved + eps) / np.sqrt(square + eps) * g
        moved = rho * moved + (1 - rho) * delta * delta
        return p - lr * delta

    return rule


def rmsprop(lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    square = mean = buffer = 0.0

    def rule(p, g, _):
        nonlocal square, mean, buffer
        g = g + weight_decay * p
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        scaled = g / (np.sqrt(square - mean**2 if centered else square) + eps)
        buffer = momentum * buffer + scaled
        return p - lr * buffer

    return rule


def rprop(lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    before, size = 0.0, lr

    def rule(p, g, _):
        nonlocal before, size
        turn = np.sign(g * before)
        size = np.clip(size * np.where(turn > 0, etas[1], np.where(turn < 0, etas[0], 1.0)), *step_sizes)
        g = np.where(turn < 0, 0.0, g)
        before = g
        return p - np.sign(g) * size

    return rule


def asgd(lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0):
    eta = lr

    def rule(p, g, step):
        nonlocal eta
        p, g = p * (1 - lambd * eta), g + weight_decay * p
        p = p - eta * g
        eta = lr / (1 + lambd * lr * step) ** alpha
        return p

    return rule


CASES = [
    ("SGD", sgd, {"lr": 0.1}),
    ("SGD", sgd, {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", adam, {}),
    ("Adam", adam, {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", adam, {"lr": 0.1, "amsgrad": True}),
    ("AdamW", adamw, {"lr": 0.1}),
    ("AdamW", adamw, {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("Adamax", adamax, {}),
    ("Adamax", adamax, {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", adagrad, {"lr": 0.1}),
    ("Adagrad", adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", adadelta, {}),
    ("Adadelta", adadelta, {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1}),
    ("RMSprop", rmsprop, {}),
    ("RMSprop", rmsprop, {"lr": 0.1, "centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("RMSprop", rmsprop, {"momentum": 0.9}),
    ("Rprop", rprop, {}),
    ("Rprop", rprop, {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2)}),
    ("ASGD", asgd, {}),
    ("ASGD", asgd, {"lr": 0.05, "lambd": 0.01, "weight_decay": 0.1}),
]


def names(case):
    return case if isinstance(case, str) else ""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "rule", "options"), CASES, ids=names)
def test_against_the_rule(name, rule, options, dtype):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), (), (0, 2)]
    start = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    params = [flambeau.from_numpy(np.array(each)).requires_grad_() for each in start]
    # a parameter that is a transposed piece of something larger, with gradients of other strides
    odd = flambeau.from_numpy(rng.standard_normal((4, 6)).astype(dtype)).t()[1:4].detach().requires_grad_()
    params.append(odd)
    expected = [each.astype(np.float64) for each in [*start, odd.detach().numpy()]]
    rules = [rule(**options) for _ in params]
    optimizer = getattr(optim, name)(params, **options)
    for step in range(1, 9):
        for i, param in enumerate(params):
            grad = rng.standard_normal(tuple(param.shape)).astype(dtype)
            param.grad = flambeau.from_numpy(np.asarray(grad))
            expected[i] = rules[i](expected[i], grad.astype(np.float64), step)
        optimizer.step()
    for param, value in zip(params, expected, strict=True):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        assert param.is_leaf and param.requires_grad


def test_the_average_of_asgd():
    p = flambeau.zeros(1, dtype=flambeau.float64, requires_grad=True)
    optimizer = optim.ASGD([p], lr=1.0, lambd=0.0, t0=1)
    seen = []
    for _ in range(5):
        p.grad = flambeau.ones(1, dtype=flambeau.float64)
        optimizer.step()
        seen.append(p.item())
    # the average follows the value until one step after t0, and is the mean of all values since
    assert optimizer.state[p]["ax"].item() == pytest.approx(np.mean(seen[2:]))


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_every_optimiser_descends(name):
    flambeau.manual_seed(0)
    target = flambeau.randn(6)
    p = flambeau.zeros(6, requires_grad=True)
    optimizer = getattr(optim, name)([p], **({} if name in ("Adadelta", "Rprop") else {"lr": 0.05}))
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = ((p - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


# ---------------------------------------------------------------- what all share


def test_parameters_without_gradient_stay():
    a, b = flambeau.ones(2, requires_grad=True), flambeau.ones(2, requires_grad=True)
    optimizer = optim.Adam([a, b], lr=0.1)
    a.grad = flambeau.ones(2)
    optimizer.step()
    assert a.tolist() != [1.0, 1.0] and b.tolist() == [1.0, 1.0] and b not in optimizer.state


def test_groups_have_options_of_their_own():
    a, b = flambeau.ones(1, requires_grad=True), flambeau.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.5)
    a.grad = b.grad = flambeau.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.5, 0.0)
    c = flambeau.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": c, "lr": 2.0})
    c.grad = flambeau.ones(1)
    optimizer.step()
    assert c.item() == -1.0 and len(optimizer.param_groups) == 3


def test_zero_grad():
    p = flambeau.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = grad = flambeau.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closures():
    p = flambeau.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with flambeau.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert p.item() == 1.0


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_state_goes_round_through_a_dict(name):
    def make(dtype=flambeau.float32):
        rng = np.random.default_rng(1)
        params = [flambeau.tensor(rng.standard_normal(3), dtype=dtype, requires_grad=True) for _ in range(2)]
        return params, getattr(optim, name)(params, **({"momentum": 0.9} if name in ("SGD", "RMSprop") else {}))

    def run(params, optimizer, steps, seed):
        rng = np.random.default_rng(seed)
        for _ in range(steps):
            for each in params:
                each.grad = flambeau.tensor(rng.standard_normal(3), dtype=each.dtype)
            optimizer.step()

    params, optimizer = make()
    run(params, optimizer, 3, seed=2)
    others, other = make()
    other.load_state_dict(optimizer.state_dict())
    with flambeau.no_grad():
        for a, b in zip(others, params, strict=True):
            a.copy_(b)
    run(params, optimizer, 3, seed=3)
    run(others, other, 3, seed=3)
    assert [each.tolist() for each in others] == [each.tolist() for each in params]
    # the copy is apart from the original, and takes the dtype of its parameters
    doubles, wide = make(flambeau.float64)
    wide.load_state_dict(optimizer.state_dict())
    kinds = {v.dtype for s in wide.state.values() for v in s.values() if isinstance(v, flambeau.Tensor)}
    assert kinds <= {flambeau.float64}
    before = [each.tolist() for each in params]
    run(doubles, wide, 1, seed=4)
    assert [each.tolist() for each in params] == before


P = flambeau.ones(2, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: optim.SGD(P), TypeError, "should be an iterable of Tensors or dicts, but got Tensor"),
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD([3]), TypeError, "can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([P * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([P, P]), ValueError, "appear in more than one parameter group"),
        (lambda: optim.SGD([P], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([P], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: optim.SGD([P], lr=None), TypeError, r"Invalid learning rate: None\.\nExpected a number"),
        (lambda: optim.SGD([P], lr="0.1"), TypeError, r"Invalid learning rate: '0\.1'\.\nExpected a number"),
        (lambda: optim.SGD([P], momentum=-0.1), ValueError, "Invalid momentum value: -0.1"),
        (lambda: optim.SGD([P], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.SGD([P], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda: optim.Adam([P], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([P], betas=(0.9, -0.1)), ValueError, "Invalid beta parameter at index 1: -0.1"),
        (lambda: optim.Adam([P], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.AdamW([P], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.Adamax([P], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.Adagrad([P], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda: optim.Adadelta([P], rho=1.5), ValueError, "Invalid rho value: 1.5"),
        (lambda: optim.RMSprop([P], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: optim.Rprop([P], etas=(1.2, 0.5)), ValueError, "Invalid eta values: 1.2, 0.5"),
        (lambda: optim.Rprop([P], step_sizes=(5, 1)), ValueError, "Invalid step sizes: 5, 1"),
        (lambda: optim.ASGD([P], t0=-1), ValueError, "Invalid t0 value: -1"),
        (lambda: optim.ASGD([P], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.LBFGS([P], line_search_fn="x"), ValueError, "only 'strong_wolfe' is supported"),
        (lambda: optim.LBFGS([{"params": [P]}, {"params": [P * 1]}]), ValueError, "non-leaf|parameter groups"),
        (lambda: optim.LBFGS([P]).step(), TypeError, "needs a closure"),
        (lambda: optim.SGD([P]).load_state_dict({"param_groups": [], "state": {}}), ValueError, "0 instead of 1"),
        (lambda: optim.SGD([P]).add_param_group([P]), TypeError, "param_group must be a dict, but got list"),
    ],
)
def test_arguments(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_what_an_optimiser_shows():
    text = repr(optim.SGD([P], lr=0.1))
    assert text.startswith("SGD (") and "lr: 0.1" in text and "momentum: 0" in text


# ---------------------------------------------------------------- L-BFGS


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize(("search", "lr"), [(None, 0.3), ("strong_wolfe", 1.0)])
def test_lbfgs_finds_the_bottom_of_a_valley(search, lr):
    x = flambeau.tensor([-1.2, 1.0, -1.2, 1.0], dtype=flambeau.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], lr=lr, max_iter=100, line_search_fn=search)
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), np.ones(4), atol=1e-4)
    assert evaluations < 250
    assert optimizer.state[x]["func_evals"] == evaluations


def twelve_moves(each):
    """Where twelve moves lead, `each` of them in a step, and how often that evaluates; the state is saved between steps."""
    p, calls = flambeau.tensor([-1.2, 1.0], dtype=flambeau.float64, requires_grad=True), []
    saved = None
    for _ in range(12 // each):
        optimizer = optim.LBFGS([p], lr=0.5, max_iter=each, max_eval=100)
        if saved is not None:
            optimizer.load_state_dict(saved)

        def closure(optimizer=optimizer):
            calls.append(1)
            optimizer.zero_grad()
            loss = rosenbrock(p)
            loss.backward()
            return loss

        optimizer.step(closure)
        saved = optimizer.state_dict()
    return p.tolist(), len(calls)


def test_lbfgs_evaluates_once_for_each_move_in_however_many_steps():
    ends, calls = zip(*[twelve_moves(each) for each in (1, 3, 4, 12)], strict=True)
    assert calls == (12, 12, 12, 12)
    np.testing.assert_allclose(ends, np.broadcast_to(ends[-1], (4, 2)), rtol=1e-12)


def test_lbfgs_solves_a_quadratic_over_several_parameters():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((6, 6))
    a = flambeau.from_numpy(a @ a.T + np.eye(6))
    b = flambeau.from_numpy(rng.standard_normal(6))
    u, v = (flambeau.zeros(2, 2, dtype=flambeau.float64, requires_grad=True) for _ in range(2))
    v = flambeau.zeros(2, dtype=flambeau.float64, requires_grad=True)
    optimizer = optim.LBFGS([u, v], line_search_fn="strong_wolfe", max_iter=50, tolerance_change=1e-16)

    def closure():
        optimizer.zero_grad()
        x = flambeau.cat([u.reshape(-1), v])
        loss = x @ a @ x / 2 - b @ x
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert first.item() == 0.0
    found = np.concatenate([u.detach().numpy().reshape(-1), v.detach().numpy()])
    np.testing.assert_allclose(found, np.linalg.solve(a.numpy(), b.numpy()), atol=1e-6)


# ---------------------------------------------------------------- steps over many parameters at once


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_mixed_parameters_in_one_group(name):
    """Dtypes and layouts that one kernel call does not cover give the same numbers."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 3))
    make = {
        "plain": lambda: flambeau.tensor(values, dtype=flambeau.float32),
        "double": lambda: flambeau.tensor(values),
        "turned": lambda: flambeau.tensor(values.T.copy(), dtype=flambeau.float32).t(),
        "spread": lambda: flambeau.tensor(np.repeat(values, 2, 1), dtype=flambeau.float32)[:, ::2],
        "half": lambda: flambeau.tensor(values, dtype=flambeau.bfloat16),
    }
    params = [each().detach().requires_grad_() for each in make.values()]
    optimizer = getattr(optim, name)(params, lr=0.1)
    for _ in range(3):
        for each in params:
            each.grad = (each.detach() * 2).contiguous()
        optimizer.step()
    for label, each in zip(make, params, strict=True):
        tolerance = 0.02 if label == "half" else 1e-6
        np.testing.assert_allclose(each.detach().double().numpy(), params[1].detach().numpy(), atol=tolerance)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_step_counts_as_a_write(name):
    weight = flambeau.ones(3, requires_grad=True)
    optimizer = getattr(optim, name)([weight], lr=0.1)
    loss = (weight * weight).sum()
    weight.grad = flambeau.ones(3)
    optimizer.step()
    assert weight._version > 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
