"""Views of a tensor that was detached from a view: they begin where the view did."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

VALUES = np.arange(24.0).reshape(2, 3, 4)
LOOKS = {
    "diagonal": (lambda x: x.diagonal(), lambda a: a.diagonal()),
    "select": (lambda x: x.select(0, 0), lambda a: a[0]),
    "index": (lambda x: x[0], lambda a: a[0]),
    "transpose": (lambda x: x.t(), lambda a: a.T),
    "reshape": (lambda x: x.view(-1), lambda a: a.reshape(-1)),
    "narrow": (lambda x: x.narrow(0, 0, 2), lambda a: a[:2]),
    "expand": (lambda x: x.expand(2, 3, 4), lambda a: np.broadcast_to(a, (2, 3, 4))),
    "chain": (lambda x: x[1:].t()[2:].detach().t(), lambda a: a[1:].T[2:].T),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("detach", [lambda x: x.detach(), lambda x: x.data])
def test_detached(look: str, detach) -> None:
    whole = torch.from_numpy(VALUES.copy())
    part = detach(whole[1])
    seen, wanted = LOOKS[look][0](part), LOOKS[look][1](VALUES[1])
    np.testing.assert_array_equal(seen.numpy(), wanted)
    np.testing.assert_array_equal((seen * 1).numpy(), wanted)
    assert seen.tolist() == wanted.tolist()
    again = whole.as_strided(seen.shape, seen.stride(), seen.storage_offset())
    np.testing.assert_array_equal(again.numpy(), wanted)


def test_writes_reach_the_whole() -> None:
    whole = torch.from_numpy(VALUES.copy())
    whole[1].detach().diagonal().fill_(-1)
    wanted = VALUES.copy()
    np.fill_diagonal(wanted[1][:, :3], -1)
    np.testing.assert_array_equal(whole.numpy(), wanted)
