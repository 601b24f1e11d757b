"""Optimisers: they change parameters by their gradients."""

from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, SparseAdam
from .adaptive import ASGD, Adadelta, Adagrad, RMSprop, Rprop
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Optimizer",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
]
