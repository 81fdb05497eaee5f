"""Verification of gradients: checks that compare adjoints with an independent oracle."""

from engine.autograd.errors import error_jacobians
from engine.autograd.figures import jacobian_plot, plot_kernel_jacobians
from engine.autograd.gradcheck import check_function, gradcheck
from engine.autograd.gradcheck_tape import gradcheck_tape
from engine.autograd.jacobian import jacobian, jacobian_fd
from engine.autograd.jacobians import Jacobians
from engine.autograd.jvp import Tangents, jvp
from engine.autograd.metadata import FunctionMetadata
from engine.autograd.plot import error_plot
from engine.autograd.recorded import (
    MatrixSummary,
    check_recorded,
    recorded_jacobians,
    summarise,
)
from engine.autograd.results import (
    Cause,
    Entry,
    LaunchResult,
    NonFinite,
    PairResult,
    TapeResult,
    Unchecked,
    WholeResult,
)
from engine.autograd.sparse import SparseJacobian
from engine.autograd.tape_check import CheckInterrupted, check_tape
from engine.autograd.tape_check import check_tape as check

__all__ = [
    "Cause",
    "CheckInterrupted",
    "Entry",
    "FunctionMetadata",
    "Jacobians",
    "LaunchResult",
    "MatrixSummary",
    "NonFinite",
    "PairResult",
    "SparseJacobian",
    "Tangents",
    "TapeResult",
    "Unchecked",
    "check_function",
    "check_recorded",
    "WholeResult",
    "check",
    "check_tape",
    "error_jacobians",
    "error_plot",
    "gradcheck",
    "gradcheck_tape",
    "jacobian",
    "jacobian_fd",
    "jacobian_plot",
    "jvp",
    "plot_kernel_jacobians",
    "recorded_jacobians",
    "summarise",
]
