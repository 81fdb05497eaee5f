"""`jacobian` and `jacobian_fd`: the derivative of every output by every input, as matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.autograd.comparison.tolerance import Tolerance, flags, whole
from engine.autograd.function.adjoint import adjoint_rows
from engine.autograd.function.call import FunctionCall, arrays_of, function_call, relaunched
from engine.autograd.function.displaced import DisplacedFunction, difference_columns
from engine.autograd.function.recorded_call import (
    ChangedInput,
    RecordedCall,
    conclude,
    recorded_call,
)
from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.jacobians.of_launch import (
    Matrices,
    by_adjoint,
    by_differences,
    check_enabled,
    sparsely,
)
from engine.autograd.launch.call import LaunchCall, launch_call
from engine.autograd.launch.recorded_arguments import NotRepeatable
from engine.autograd.plots.figures import jacobian_plot
from engine.autograd.variables.dense import Dense
from engine.autograd.variables.metadata import FunctionMetadata
from engine.autograd.variables.roles import Mask, Pair, renamed
from engine.classes import dataclass
from engine.runtime.device import DeviceLike
from engine.runtime.kernel import Kernel

Function = Kernel | Callable[..., Any]


def jacobian(
    function: Function,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: DeviceLike = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_outputs_per_var: int = -1,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    restore_inputs: bool = True,
    *,
    sparse: bool = False,
) -> Jacobians:
    """The Jacobians of a kernel or function by reverse mode, as its adjoint gives them.

    Args:
        function: a kernel; or a function that takes `inputs` and returns an array or a list
            of arrays (None where `outputs` names them).
        dim: the grid of a kernel's launch.
        inputs: arguments. Arrays (and structs with arrays) with requires_grad count.
        outputs: a kernel's further arguments. They may stand anywhere among the parameters:
            see `launch_call`. Without them, outputs are what the kernel writes,
            counted by their positions among all arguments.
        input_output_mask: pairs of input and output, each by position or name; None for all.
        device: where to run, the current device for None.
        max_outputs_per_var: how many scalars of each output to look at; all if <= 0.
        plot_jacobians: draws the result (see `jacobian_plot`).
        metadata: names and types for plots; filled in where it is empty.
        max_blocks: accepted for GPU code; it means nothing on the CPU.
        block_dim: accepted for GPU code; it means nothing on the CPU.
        restore_inputs: of a function. True leaves all arrays and gradients bit for bit as they
            were, and warns where the function changes an input that it does not return. False
            leaves its inputs as one run makes them. Derivatives are taken at the values from
            before, in any case.
        sparse: gives `SparseJacobian`s, which keep only entries that can differ from zero.

    Large Jacobians of kernels are evaluated many rows (or columns) at once: see
    `engine.autograd.jacobians.compressed`.

    Returns:
        Arrays by (input index, output index), or by names. A matrix has a row for each
        scalar of the output and a column for each element of the input, with the input's
        element type; of structs a column for each float. What was not evaluated is NaN.

    Raises LaunchError for arguments that do not fit, E405 for a mask that names what is not
    there or has no gradient, E209 for matrices that do not fit into memory;
    GradcheckError E404 where there is nothing to differentiate.
    """
    del max_blocks, block_dim
    flags(plot_jacobians=plot_jacobians, restore_inputs=restore_inputs, sparse=sparse)
    mask = renamed(input_output_mask, metadata)
    how = ByAdjoint(whole(max_outputs_per_var, "max_outputs_per_var"), sparse)
    found = evaluate(function, dim, inputs, outputs, mask, device, how)
    conclude(str(found.jacobians.metadata.key), found.changed, restore_inputs)
    return _finished(found.jacobians, metadata, plot_jacobians)


def jacobian_fd(
    function: Function,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: DeviceLike = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_inputs_per_var: int = -1,
    eps: float | None = None,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    restore_inputs: bool = True,
    *,
    sparse: bool = False,
) -> Jacobians:
    """The Jacobians of a kernel or function by central differences, in float64.

    A kernel is evaluated in float64, whatever its arrays are; a Python function in the
    precision of its arrays. Elements that are not finite have no derivative: NaN.

    eps is the step of (f(x + eps) - f(x - eps)) / (2 eps). None chooses steps by scale and
    extrapolates, which is good to about nine digits for kernels. max_inputs_per_var: how many
    scalars of each input to look at; all if <= 0.

    The other arguments, the result and errors are those of `jacobian`, but entries are
    float64. E405 also for a step that is not positive.
    """
    del max_blocks, block_dim
    flags(plot_jacobians=plot_jacobians, restore_inputs=restore_inputs, sparse=sparse)
    Tolerance(eps)  # says what is wrong with it
    mask = renamed(input_output_mask, metadata)
    how = ByDifferences(whole(max_inputs_per_var, "max_inputs_per_var"), sparse, eps)
    found = evaluate(function, dim, inputs, outputs, mask, device, how)
    conclude(str(found.jacobians.metadata.key), found.changed, restore_inputs)
    return _finished(found.jacobians, metadata, plot_jacobians)


class ByAdjoint:
    """How to fill matrices from adjoints. limit: rows of each output."""

    wide = False

    def __init__(self, limit: int, sparse: bool) -> None:
        self.limit = limit
        self.sparse = sparse

    def launch(self, call: LaunchCall, pairs: list[Pair]) -> Matrices:
        return by_adjoint(call, pairs, self.limit, self.sparse)

    def function(self, recorded: RecordedCall, dense: Dense) -> None:
        for record in recorded.tape.records:
            if record.launch is not None:
                check_enabled(record.launch)
        adjoint_rows(recorded, dense.pairs, dense.entries, self.limit)


class ByDifferences:
    """How to fill matrices from differences. limit: columns of each input."""

    wide = True

    def __init__(self, limit: int, sparse: bool, eps: float | None) -> None:
        self.limit = limit
        self.sparse = sparse
        self.eps = eps

    def launch(self, call: LaunchCall, pairs: list[Pair]) -> Matrices:
        return by_differences(call, pairs, self.eps, self.limit, self.sparse)

    def function(self, recorded: RecordedCall, dense: Dense) -> None:
        recorded.restore()
        outputs = list({id(p.output): p.output for p in dense.pairs}.values())
        displaced = DisplacedFunction(recorded, outputs)
        difference_columns(displaced, dense.pairs, dense.entries, self.eps, self.limit)


@dataclass(frozen=True)
class Evaluated:
    """Jacobians, and the inputs that the function changed in the one run that was recorded."""

    jacobians: Jacobians
    changed: tuple[ChangedInput, ...] = ()


def evaluate(
    function: Function, dim: Any, inputs: Any, outputs: Any, mask: Mask | None,
    device: DeviceLike, how: ByAdjoint | ByDifferences,
) -> Evaluated:  # fmt: skip
    """The Jacobians of a kernel or function. Its arrays are as they were afterwards."""
    if not isinstance(function, Kernel):
        return _of_function(function_call(function, inputs, outputs), mask, how)
    call = launch_call(function, dim, inputs, outputs, device)
    pairs = call.roles.pairs(mask)
    try:
        matrices = how.launch(call, pairs).on(call.device)
    except NotRepeatable:
        # Arguments that overlap in memory: the launch is run on the user's own arrays.
        matrices = _of_function(relaunched(call), [p.key for p in pairs], how).jacobians
    return Evaluated(Jacobians(matrices, call.roles.metadata()))


def _of_function(
    call: FunctionCall, mask: Mask | None, how: ByAdjoint | ByDifferences
) -> Evaluated:
    with recorded_call(call) as recorded:
        roles = call.roles(recorded.results)
        dense = Dense(roles.pairs(mask), how.wide)
        how.function(recorded, dense)
    found: dict[tuple[int, int], Any]
    if how.sparse:
        found = {key: sparsely(m) for key, m in dense.entries.items()}
    else:
        found = dict(dense.on(arrays_of(call.given)[0].device))
    return Evaluated(Jacobians(found, roles.metadata()), recorded.changed)


def _finished(result: Jacobians, metadata: FunctionMetadata | None, plot: bool) -> Jacobians:
    if metadata is not None:
        metadata.fill(result.metadata)
        result.metadata = metadata
    if plot:
        jacobian_plot(result, result.metadata)
    return result
