"""The kit on kernels for another layout: wrong ones of a second provider, which is preferred to the plug-in's."""

from __future__ import annotations

import pytest

from flambeau.backend import Backend, Kernel, float32, float64, sparse_coo
from flambeau.backends import register
from flambeau.conformance.suite import Suite

FLOATS = (float32, float64)


def mapped(function):
    """A kernel that changes the held values, whether or not a place is named twice."""

    def kernel(self, out=None):
        import flambeau

        values, indices = function(self._values()), self._indices()
        return flambeau.sparse_coo_tensor(indices, values, tuple(self.shape), is_coalesced=self.is_coalesced())

    return kernel


def halved(self, dense):
    return self.to_dense().mm(dense) * 0.5 + 0.5 * self.to_dense().abs().mm(dense)


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        ({"neg": mapped(lambda values: -values)}, set()),
        ({"abs": mapped(lambda values: values.abs())}, {"abs (sparse_coo)-float32-uncoalesced"}),
        (
            {"neg": mapped(lambda values: values)},
            {"neg (sparse_coo)-float32-values"},
        ),
        ({"sparse_product": halved}, {"sparse_product (sparse_coo)-float64-values"}),
    ],
    ids=["right", "does not coalesce", "keeps the sign", "takes absolute values"],
)
def test_kernels_of_a_layout(kernels, names):
    second = Backend(
        name="second", device="cpu", version="1.0", layout=sparse_coo, priority=9,
        kernels={name: Kernel(function, FLOATS) for name, function in kernels.items()},
    )  # fmt: skip
    with register(second):
        suite = Suite("cpu", "second")
        found = [suite.run(each) for each in suite.cases()]
    failed = {each.case.id: each.detail for each in found if each.status == "failed"}
    assert {each.status for each in found} <= {"passed", "failed"}
    assert names <= failed.keys() and bool(failed) == bool(names), failed
