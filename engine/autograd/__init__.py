"""Derivatives of kernels, functions and tapes, and checks that compare them with a reference.

Public is what `__all__` names. The rooms behind it, from low to high:

variables     inputs and outputs in their roles, and the scalars of each
reference     derivatives by differences, with their own error
comparison    adjoint beside reference: tolerances and verdicts
launch        one recorded launch: evaluated, compared, explained
tape          all launches of a tape, and its backward pass as a whole
function      a Python function, run on its user's arrays
jacobians     matrices, dense or sparse, entry by entry or compressed
plots         pictures of matrices and of errors
mutation      adjoints that are wrong on purpose
"""

from typing import TYPE_CHECKING

from engine.late import late

if TYPE_CHECKING:
    from engine.autograd.facts import (
        Broken,
        Change,
        Event,
        Fact,
        FunctionCheck,
        Handwritten,
        Made,
        Moved,
        Overwritten,
        Peer,
        Reason,
        Recorded,
        Sought,
        Stale,
        Undifferentiated,
        Unwatched,
        Write,
    )
    from engine.autograd.gradcheck import check_function, gradcheck
    from engine.autograd.gradcheck_tape import gradcheck_tape
    from engine.autograd.jacobian import jacobian, jacobian_fd
    from engine.autograd.jacobians.collection import Jacobians
    from engine.autograd.jacobians.difference import error_jacobians
    from engine.autograd.jacobians.shares import Derivative, Share
    from engine.autograd.jacobians.sparse import SparseJacobian
    from engine.autograd.jacobians.summary import MatrixSummary, summarise
    from engine.autograd.jvp import Tangents, jvp
    from engine.autograd.launch.experience import Experience
    from engine.autograd.mutation.mutants import MUTATIONS, Mutation, Trial, compile_trials
    from engine.autograd.plots.differences import error_plot
    from engine.autograd.plots.figures import jacobian_plot, plot_kernel_jacobians
    from engine.autograd.recorded_launch import check_recorded, recorded_jacobians
    from engine.autograd.results import (
        NOT_LINEAR,
        Blame,
        Cause,
        Corner,
        Entry,
        LaunchResult,
        NonFinite,
        PairResult,
        RemainderRow,
        Remainders,
        TapeResult,
        Unchecked,
        Verdict,
        WholeResult,
    )
    from engine.autograd.tape.check import CheckInterrupted, check_tape, check_whole
    from engine.autograd.tape.check import check_tape as check
    from engine.autograd.tape.divided import DividedCheck, Found
    from engine.autograd.taylor import taylor_test
    from engine.autograd.traces import trace
    from engine.autograd.variables.metadata import FunctionMetadata
    from engine.autograd.watch.detectors.aliasing import Shared
    from engine.autograd.watch.detectors.ungraded import Ungraded
    from engine.autograd.watch.moved import STEPS, Enough, Mover, decided, judged, repeats
    from engine.autograd.watch.registry import fact_named
    from engine.autograd.watch.witness import Witness
    from engine.tape.graph.build import array_label, graph, used_as
    from engine.tape.graph.colours import Colours
    from engine.tape.graph.dot import dot
    from engine.tape.graph.listing import (
        ListedArray,
        ListedKernel,
        ListedOperation,
        ListedScope,
        TapeListing,
    )
    from engine.tape.graph.model import (
        ArrayNode,
        Cluster,
        Edge,
        Graph,
        GraphOptions,
        Mark,
        OperationNode,
        norm_text,
    )
    from engine.tape.memory import MemoryUse
    from engine.tape.pass_log import PassLog, noting
    from engine.tape.pass_notes import Given, PassNotes
    from engine.tape.tracing import Flow, OperationTrace, TapeTrace

# What reads results needs nothing that finds them.
_MODULES = {
    "engine.autograd.facts":
        "Broken Change Event Fact FunctionCheck Handwritten Made Moved Overwritten Peer Reason "
        "Recorded Sought Stale Undifferentiated Unwatched Write",
    "engine.autograd.gradcheck": "check_function gradcheck",
    "engine.autograd.gradcheck_tape": "gradcheck_tape",
    "engine.autograd.jacobian": "jacobian jacobian_fd",
    "engine.autograd.jacobians.collection": "Jacobians",
    "engine.autograd.jacobians.difference": "error_jacobians",
    "engine.autograd.jacobians.shares": "Derivative Share",
    "engine.autograd.jacobians.sparse": "SparseJacobian",
    "engine.autograd.jacobians.summary": "MatrixSummary summarise",
    "engine.autograd.jvp": "Tangents jvp",
    "engine.autograd.launch.experience": "Experience",
    "engine.autograd.mutation.mutants": "MUTATIONS Mutation Trial compile_trials",
    "engine.autograd.plots.differences": "error_plot",
    "engine.autograd.plots.figures": "jacobian_plot plot_kernel_jacobians",
    "engine.autograd.recorded_launch": "check_recorded recorded_jacobians",
    "engine.autograd.results":
        "NOT_LINEAR Blame Cause Corner Entry LaunchResult NonFinite PairResult RemainderRow "
        "Remainders TapeResult Unchecked Verdict WholeResult",
    "engine.autograd.tape.check": "CheckInterrupted check_tape check_whole check=check_tape",
    "engine.autograd.tape.divided": "DividedCheck Found",
    "engine.autograd.taylor": "taylor_test",
    "engine.autograd.traces": "trace",
    "engine.autograd.variables.metadata": "FunctionMetadata",
    "engine.autograd.watch.detectors.aliasing": "Shared",
    "engine.autograd.watch.detectors.ungraded": "Ungraded",
    "engine.autograd.watch.moved": "STEPS Enough Mover decided judged repeats",
    "engine.autograd.watch.registry": "fact_named",
    "engine.autograd.watch.witness": "Witness",
    "engine.tape.graph.build": "array_label graph used_as",
    "engine.tape.graph.colours": "Colours",
    "engine.tape.graph.dot": "dot",
    "engine.tape.graph.listing": "ListedArray ListedKernel ListedOperation ListedScope TapeListing",
    "engine.tape.graph.model": "ArrayNode Cluster Edge Graph GraphOptions Mark OperationNode "
    "norm_text",
    "engine.tape.memory": "MemoryUse",
    "engine.tape.pass_notes": "Given PassNotes",
    "engine.tape.pass_log": "PassLog noting",
    "engine.tape.tracing": "Flow OperationTrace TapeTrace",
}  # fmt: skip
late(__name__, _MODULES)

__all__ = [
    # checks
    "check", "check_function", "check_recorded", "check_tape", "check_whole", "gradcheck",
    "gradcheck_tape", "CheckInterrupted", "DividedCheck", "Experience", "Found", "taylor_test",
    # what they return
    "NOT_LINEAR", "Blame", "Cause", "Corner", "Entry", "LaunchResult", "NonFinite", "PairResult",
    "RemainderRow", "Remainders", "TapeResult",
    "Unchecked", "Verdict", "WholeResult",
    # what a program did, seen while it ran
    "STEPS", "Broken", "Change", "Enough", "Event", "Fact", "FunctionCheck", "Given", "Handwritten",
    "Made", "Moved", "Mover", "Overwritten", "PassLog", "PassNotes", "Peer", "Reason", "Recorded",
    "Shared", "Sought", "Stale", "Undifferentiated", "Ungraded", "Unwatched", "Witness", "Write",
    "decided", "fact_named", "judged", "noting", "repeats",
    # derivatives
    "Derivative", "FunctionMetadata", "Jacobians", "MatrixSummary", "Share", "SparseJacobian",
    "Tangents",
    "error_jacobians", "jacobian", "jacobian_fd", "jvp", "recorded_jacobians", "summarise",
    # tapes as data, and as pictures
    "ArrayNode", "Cluster", "Colours", "Edge", "Flow", "Graph", "GraphOptions",
    "ListedArray", "ListedKernel", "ListedOperation", "ListedScope", "Mark",
    "MemoryUse", "OperationNode", "OperationTrace",
    "TapeListing", "TapeTrace",
    "array_label", "dot", "graph", "norm_text", "trace", "used_as",
    # plots
    "error_plot", "jacobian_plot", "plot_kernel_jacobians",
    # checks of the checks
    "MUTATIONS", "Mutation", "Trial", "compile_trials",
]  # fmt: skip
