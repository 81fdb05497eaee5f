"""Verification of gradients: checks that compare adjoints with an independent oracle."""

from engine.autograd.check import check_tape
from engine.autograd.gradcheck import check_function, gradcheck
from engine.autograd.gradcheck_tape import gradcheck_tape
from engine.autograd.jacobian import jacobian, jacobian_fd
from engine.autograd.jacobians import Jacobians
from engine.autograd.jvp import Tangents, jvp
from engine.autograd.metadata import FunctionMetadata
from engine.autograd.results import (
    Entry,
    LaunchResult,
    NonFinite,
    PairResult,
    TapeResult,
    Unchecked,
)
from engine.autograd.sparse import SparseJacobian

__all__ = [
    "Entry",
    "FunctionMetadata",
    "Jacobians",
    "LaunchResult",
    "NonFinite",
    "PairResult",
    "SparseJacobian",
    "Tangents",
    "TapeResult",
    "Unchecked",
    "check_function",
    "check_tape",
    "gradcheck",
    "gradcheck_tape",
    "jacobian",
    "jacobian_fd",
    "jvp",
]
