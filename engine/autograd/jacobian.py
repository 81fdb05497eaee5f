"""`jacobian` and `jacobian_fd`: the derivative of every output by every input, as matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.autograd import function_jacobian
from engine.autograd.blocks import Dense
from engine.autograd.function_jacobian import FunctionSubject, OwnLines, function_subject, unharmed
from engine.autograd.jacobians import Jacobians
from engine.autograd.launch_jacobian import (
    Matrices,
    Unknown,
    by_adjoint,
    by_differences,
    sparsely,
)
from engine.autograd.metadata import FunctionMetadata
from engine.autograd.subject import LaunchSubject, Mask, Pair, Roles, launch_subject, renamed
from engine.autograd.tolerance import Tolerance, whole
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
            see `engine.autograd.subject`. Without them, outputs are what the kernel writes,
            counted by their positions among all arguments.
        input_output_mask: pairs of input and output, each by position or name; None for all.
        device: where to run, the current device for None.
        max_outputs_per_var: how many scalars of each output to look at; all if <= 0.
        plot_jacobians: draws the result (see `jacobian_plot`).
        metadata: names and types for plots; filled in where it is empty.
        max_blocks: accepted for GPU code; it means nothing on the CPU.
        block_dim: accepted for GPU code; it means nothing on the CPU.
        restore_inputs: accepted; arrays and gradients are always left bit for bit as they were.
        sparse: gives `SparseJacobian`s, which keep only entries that can differ from zero.

    Large Jacobians of kernels are evaluated many rows (or columns) at once: see
    `engine.autograd.compressed`.

    Returns:
        Arrays by (input index, output index), or by names. A matrix has a row for each
        scalar of the output and a column for each element of the input, with the input's
        element type; of structs a column for each float. What was not evaluated is NaN.

    Raises LaunchError for arguments that do not fit, E405 for a mask that names what is not
    there or has no gradient, E209 for matrices that do not fit into memory;
    GradcheckError E404 where there is nothing to differentiate.
    """
    del max_blocks, block_dim, restore_inputs
    mask = renamed(input_output_mask, metadata)
    how = _Adjoint(whole(max_outputs_per_var, "max_outputs_per_var"), sparse)
    result = _of(function, dim, inputs, outputs, mask, device, how)
    return _finished(result, metadata, plot_jacobians, "Jacobian")


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
    del max_blocks, block_dim, restore_inputs
    Tolerance(eps)  # says what is wrong with it
    mask = renamed(input_output_mask, metadata)
    how = _Differences(whole(max_inputs_per_var, "max_inputs_per_var"), sparse, eps)
    result = _of(function, dim, inputs, outputs, mask, device, how)
    return _finished(result, metadata, plot_jacobians, "Jacobian by finite differences")


class _Adjoint:
    """How to fill matrices from adjoints."""

    wide = False

    def __init__(self, limit: int, sparse: bool) -> None:
        self.limit = limit
        self.sparse = sparse

    def launch(self, subject: LaunchSubject, pairs: list[Pair]) -> Matrices:
        return by_adjoint(subject, pairs, self.limit, self.sparse)

    def function(self, subject: FunctionSubject, mask: Mask | None) -> tuple[Roles, Dense]:
        with unharmed(subject):
            tape, results = subject.run()
            roles = subject.roles(results)
            pairs = roles.pairs(mask)
            dense = Dense(pairs, self.wide)
            function_jacobian.adjoint_rows(tape, results, subject, pairs, dense, self.limit)
        return roles, dense


class _Differences:
    """How to fill matrices from differences."""

    wide = True

    def __init__(self, limit: int, sparse: bool, eps: float | None) -> None:
        self.limit = limit
        self.sparse = sparse
        self.eps = eps

    def launch(self, subject: LaunchSubject, pairs: list[Pair]) -> Matrices:
        return by_differences(subject, pairs, self.eps, self.limit, self.sparse)

    def function(self, subject: FunctionSubject, mask: Mask | None) -> tuple[Roles, Dense]:
        with unharmed(subject) as keeper:
            results = subject.run()[1]
            roles = subject.roles(results)
            keeper.restore()
            pairs = roles.pairs(mask)
            dense = Dense(pairs, self.wide)
            outputs = list({id(p.output): p.output for p in pairs}.values())
            lines = OwnLines(subject, keeper, outputs, results)
            function_jacobian.differences(lines, pairs, dense, self.eps, self.limit)
        return roles, dense


def _of(
    function: Function, dim: Any, inputs: Any, outputs: Any, mask: Mask | None,
    device: DeviceLike, how: _Adjoint | _Differences,
) -> Jacobians:  # fmt: skip
    if not isinstance(function, Kernel):
        roles, dense = how.function(function_subject(function, inputs, outputs), mask)
        return Jacobians(_matrices(dense, how.sparse), roles.metadata())
    subject = launch_subject(function, dim, inputs, outputs, device)
    pairs = subject.roles.pairs(mask)
    try:
        found = how.launch(subject, pairs).by_key
    except Unknown:
        # Arguments that overlap in memory: the launch is run on the user's own arrays.
        found = _matrices(how.function(relaunched(subject), _by_index(pairs))[1], how.sparse)
    return Jacobians(found, subject.roles.metadata())


def _matrices(dense: Dense, sparse: bool) -> dict[tuple[int, int], Any]:
    if not sparse:
        return dict(dense.arrays)
    return {key: sparsely(m) for key, m in dense.entries.items()}


def relaunched(subject: LaunchSubject) -> FunctionSubject:
    """The launch as a function of its arguments, run on the user's own arrays."""
    roles, given = subject.roles, subject.given
    count = max(roles.inputs, default=-1) + 1
    explicit = len(given) > count
    outs = {k: given[count + k] if explicit else given[k] for k in roles.outputs}

    def run(*_: Any) -> Any:
        assert subject.relaunch is not None
        subject.relaunch()
        return [outs.get(k) for k in range(max(outs) + 1)]

    run.__name__ = roles.key
    labels = [roles.inputs[k][0] for k in range(count)]
    found = function_subject(run, given[:count], list(outs.values()), labels)
    found.named.update({k: label for k, (label, _, _) in roles.outputs.items()})
    return found


def _by_index(pairs: Sequence[Pair]) -> Mask:
    return [p.key for p in pairs]


def _finished(
    result: Jacobians, metadata: FunctionMetadata | None, plot: bool, title: str
) -> Jacobians:
    if metadata is not None:
        metadata.fill(result.metadata)
        result.metadata = metadata
    if plot:
        from engine.autograd.figures import jacobian_plot

        jacobian_plot(result, result.metadata, title=f"{result.metadata.key}: {title}")
    return result
