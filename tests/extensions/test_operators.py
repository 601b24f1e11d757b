"""The C++ declarations are those of the installed core's operators."""

from __future__ import annotations

import re

import pytest

import flambeau
from flambeau.dispatch.operator import offers, operators
from flambeau.nn import functional
from flambeau_extensions import operators as declarations


@pytest.fixture(scope="module")
def functions():
    return declarations.functions_header()


@pytest.fixture(scope="module")
def methods():
    return declarations.methods_header()


def declared(header, name):
    return (
        re.search(rf"^(OPERATOR_|INPLACE_)\([^,]+(<[^,]*>)?, {re.escape(name)}, \(", header, re.MULTILINE) is not None
    )


#: Names that C++ cannot use, and those of the hand-written part of at::Tensor.
LEFT_OUT = declarations._KEYWORDS | declarations._BY_HAND


def test_every_public_function_is_declared(functions):
    public = {
        each.name.rpartition(".")[2] for each in operators.values() if {"", "nn.functional"} & set(each.namespaces)
    }
    public |= {each.name for each in offers if {"", "nn.functional"} & set(each.namespaces)}
    public = {each for each in public if not each.startswith("_")} - LEFT_OUT
    assert all(hasattr(flambeau, each) or hasattr(functional, each) for each in public)
    assert not [each for each in sorted(public) if not declared(functions, each)]


def test_every_method_is_declared(methods):
    public = {each.name for each in operators.values() if each.method}
    public |= {each.inplace for each in operators.values() if each.inplace}
    public |= {each.name for each in offers if each.method}
    public = {each for each in public if not each.startswith("_")} - LEFT_OUT
    assert not [each for each in sorted(public) if hasattr(flambeau.Tensor, each) and not declared(methods, each)]


@pytest.mark.parametrize("line", [
    'OPERATOR_(Tensor, addmm, (const Tensor& self, const Tensor& mat1, const Tensor& mat2, Maybe<Number> beta = {}, '
    "Maybe<Number> alpha = {}), 't', 3, 3, \"beta alpha \", self, mat1, mat2, beta, alpha)",
    "OPERATOR_(Tensor, elu, (const Tensor& input, Maybe<Number> alpha = {}, Maybe<Flag> inplace = {}), 'f', 1, 3, "
    '"alpha inplace ", input, alpha, inplace)',
    "OPERATOR_(std::vector<Tensor>, chunk, (const Tensor& self, Int chunks, Maybe<Int> dim = {}), 't', 2, 3, \"dim \", "
    "self, chunks, dim)",
    "OPERATOR_(Tensor, zeros, (Ints size, const TensorOptions& options = {}), 't', 1, 1, "
    '"dtype device requires_grad ", size, FLAMBEAU_OPTIONS)',
    "OPERATOR_(Pair, max, (const Tensor& self, Int dim, Maybe<Flag> keepdim = {}), 't', 2, 3, \"keepdim \", self, dim, keepdim)",
    "OPERATOR_(Tensor, sum, (const Tensor& self, Maybe<Ints> dim = {}, Maybe<Flag> keepdim = {}, "
    "Maybe<ElementType> dtype = {}), 't', 1, 3, \"dim keepdim dtype \", self, dim, keepdim, dtype)",
    "OUT_(out, mm, (const Tensor& out, const Tensor& self, const Tensor& mat2), 't', 2, 2, \"out \", self, mat2, out)",
])  # fmt: skip
def test_declarations_follow_the_signatures(functions, line):
    assert line in functions.splitlines()


def test_keywords_of_cpp_are_no_names():
    assert not re.search(r"[ &](and|or|not|default|operator) =", declarations.functions_header())
