"""Verification of gradients: checks that compare adjoints with an independent oracle."""

from engine.autograd.check import check_tape
from engine.autograd.gradcheck_tape import gradcheck_tape
from engine.autograd.jvp import Tangents, jvp
from engine.autograd.results import (
    Entry,
    LaunchResult,
    NonFinite,
    PairResult,
    TapeResult,
    Unchecked,
)

__all__ = [
    "Entry",
    "LaunchResult",
    "NonFinite",
    "PairResult",
    "Tangents",
    "TapeResult",
    "Unchecked",
    "check_tape",
    "gradcheck_tape",
    "jvp",
]
