"""Elementary functions against a better reference, over every power of two, on each instruction set of the machine.

The unit is the unit in the last place (ULP) of the exact result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.special

import flambeau as torch
import flambeau.nn.functional as F
from flambeau_cpu._kernels import lib

#: Values between two powers of two.
DENSITY = 48
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, np.pi, np.pi / 2, 1e30, -1e30]

#: name: (function, reference, largest error in float32, and in float64 (None: the reference is no better))
FUNCTIONS = {
    "exp": (torch.exp, np.exp, 2, 2),
    "expm1": (torch.expm1, np.expm1, 4, 4),
    "log": (torch.log, np.log, 2, 2),
    "log1p": (torch.log1p, np.log1p, 4, 2),
    "log2": (torch.log2, np.log2, 4, 2),
    "log10": (torch.log10, np.log10, 4, 2),
    "sin": (torch.sin, np.sin, 2, 2),
    "cos": (torch.cos, np.cos, 2, 2),
    "tan": (torch.tan, np.tan, 2, 2),
    "asin": (torch.asin, np.arcsin, 2, 2),
    "acos": (torch.acos, np.arccos, 2, 2),
    "atan": (torch.atan, np.arctan, 2, 2),
    "sinh": (torch.sinh, np.sinh, 2, 4),
    "cosh": (torch.cosh, np.cosh, 2, 2),
    "tanh": (torch.tanh, np.tanh, 4, 4),
    "sigmoid": (torch.sigmoid, lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))), 4, 4),
    "softplus": (F.softplus, lambda x: np.where(x > 20, x, np.log1p(np.exp(x))), 4, 4),
    "erf": (torch.erf, scipy.special.erf, 4, None),
    "erfc": (torch.erfc, scipy.special.erfc, 4, None),
    "sqrt": (torch.sqrt, np.sqrt, 0.5, 0.5),
    "rsqrt": (torch.rsqrt, lambda x: 1 / np.sqrt(x), 2, 2),
    "reciprocal": (torch.reciprocal, lambda x: 1 / x, 0.5, 0.5),
}


def stratified(dtype):
    """Both signs of DENSITY random values in each [2^k, 2^(k+1)), subnormals included, and the special values."""
    info = np.finfo(dtype)
    first = int(np.log2(np.float64(info.smallest_subnormal)))
    draw = np.random.default_rng(0).random((info.maxexp - first, DENSITY))
    values = np.ldexp(1 + draw, np.arange(first, info.maxexp)[:, None]).astype(dtype).reshape(-1)
    return np.concatenate([values, -values, np.array(SPECIAL, dtype)])


def errors(got, exact):
    """In ULP of the exact result; a NaN or an infinity in the wrong place is an infinite error."""
    dtype = got.dtype
    exact = exact.astype(np.longdouble)
    rounded = exact.astype(dtype)
    alike = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(dtype).max)).astype(np.longdouble)
    wrong = np.isnan(got) | np.isnan(rounded) | np.isinf(got) & (np.abs(exact) < np.finfo(dtype).max)
    found = np.where(wrong, np.inf, np.abs(got.astype(np.longdouble) - exact) / unit)
    return np.where(alike, np.minimum(np.where(np.isfinite(found), found, 0), 0.5), found)


def pairs(dtype):
    """Bases and exponents of pow: results of every size, and all pairs of special values."""
    random = np.random.default_rng(1)
    base = np.abs(stratified(dtype)[: -len(SPECIAL)])
    wanted = random.uniform(np.log2(np.float64(np.finfo(dtype).smallest_subnormal)), np.finfo(dtype).maxexp, base.size)
    exponent = (wanted / np.log2(base.astype(np.longdouble))).astype(dtype)
    special = np.array([*SPECIAL, 3.0, -2.5, 1e-30], dtype)
    a, b = np.meshgrid(special, special)
    near = 1 + random.uniform(-1e-3, 1e-3, base.size).astype(dtype)
    return np.concatenate([base, near, a.ravel()]), np.concatenate([exponent, exponent * 1000, b.ravel()])


def measure():
    """The largest error of each function in each dtype on this process' instruction set."""
    worst = {}
    with np.errstate(all="ignore"):
        for dtype, better in ((np.float32, np.float64), (np.float64, np.longdouble)):
            x = stratified(dtype)
            for name, (function, reference, *_) in FUNCTIONS.items():
                exact = reference(x.astype(better if name not in ("erf", "erfc") else np.float64))
                found = errors(function(torch.from_numpy(x)).numpy(), exact)
                worst[f"{name} {x.dtype.name}"] = float(found.max()), float(x[found.argmax()])
            a, b = pairs(dtype)
            found = errors(
                torch.pow(torch.from_numpy(a), torch.from_numpy(b)).numpy(),
                np.power(a.astype(better), b.astype(better)),
            )
            worst[f"pow {x.dtype.name}"] = float(found.max()), [float(a[found.argmax()]), float(b[found.argmax()])]
    return worst


@pytest.mark.parametrize(
    "instructions", [each for each in ("baseline", "avx2", "avx512") if lib.fb_supports(each.encode())]
)
def test_errors_are_small(instructions):
    environment = {**os.environ, "FLAMBEAU_CPU_ISA": instructions}
    worst = json.loads(subprocess.check_output([sys.executable, __file__], env=environment, text=True))
    assert worst.pop("instructions") == instructions
    allowed = {f"{name} float32": each[2] for name, each in FUNCTIONS.items()} | {"pow float32": 4, "pow float64": 2}
    allowed |= {f"{name} float64": each[3] for name, each in FUNCTIONS.items() if each[3] is not None}
    too_large = {name: worst[name] for name, most in allowed.items() if not worst[name][0] <= most}
    assert not too_large


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sigmoid", "erf", "sqrt", "log1p"])
def test_every_half(name):
    bits = np.arange(65536, dtype=np.uint16)
    x = bits.view(np.float16)
    function, reference, *_ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        found = errors(function(torch.from_numpy(x)).numpy(), reference(x.astype(np.float64)))
    assert found.max() <= 0.51


if __name__ == "__main__":
    from flambeau_cpu.plugin import INSTRUCTIONS

    print(json.dumps({**measure(), "instructions": INSTRUCTIONS}))
