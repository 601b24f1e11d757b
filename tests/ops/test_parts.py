"""Where narrow may begin."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("start", [1, np.int64(1), torch.tensor(1), torch.tensor(1, dtype=torch.uint8)])
def test_whole_starts(start: object) -> None:
    assert torch.arange(5).narrow(0, start, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("start", "error", "got"),
    [
        (torch.tensor(True), RuntimeError, r"bool\[\]"),
        (torch.tensor(1.0), RuntimeError, r"float32\[\]"),
        (torch.tensor([1]), RuntimeError, r"int64\[1\]"),
        (1.5, TypeError, "float 1.5"),
    ],
)
def test_other_starts(start: object, error: type[Exception], got: str) -> None:
    with pytest.raises(error, match=rf"start must be an int or a 0-dim integral tensor, got {got}"):
        torch.arange(5).narrow(0, start, 2)
