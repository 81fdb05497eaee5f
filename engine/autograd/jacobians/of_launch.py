"""Jacobians of one launch, on copies of its arguments: by its adjoint, or by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.jacobians.compressed import Entries, adjoint_entries, difference_entries
from engine.autograd.jacobians.shares import ALL, Share
from engine.autograd.jacobians.sparse import SparseJacobian
from engine.autograd.jacobians.sparsity import Side, UnknownSparsity
from engine.autograd.launch.call import LaunchCall, owners
from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import recorded_launch
from engine.autograd.variables.dense import Dense
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Index, Part, Variable
from engine.classes import dataclass
from engine.diagnostics import Diagnostic, TapeError
from engine.runtime.device import Device
from engine.tape.records import LaunchRecord

Array = NDArray[Any]

# So many derivatives are taken one after the other: that needs no further compiled code.
FEW = 256
# Where no pattern can be told, sparse matrices with up to this many entries are evaluated densely.
MOST_DENSE = 25_000_000


@dataclass(frozen=True)
class Matrices:
    """One matrix for each pair: dense ones, or sparse ones by key."""

    dense: Dense | None = None
    sparse: dict[tuple[int, int], SparseJacobian] = field(default_factory=dict)

    def on(self, device: Device) -> dict[tuple[int, int], Any]:
        """The matrices by (input index, output index); dense ones on a device."""
        return dict(self.sparse if self.dense is None else self.dense.on(device))


def by_adjoint(
    call: LaunchCall, pairs: Sequence[Pair], limit: int, sparse: bool, share: Share = ALL
) -> Matrices:
    """Matrices from the adjoint in the launch's own precision. limit: rows of each output.

    share: which derivatives to evaluate; of a part of them, the other entries are zero.

    Raises NotRepeatable; TapeError (E401) where the launch cannot be differentiated.
    """
    record = call.record
    own = Evaluation(recorded_launch(record))
    written = own.variants.written
    check_enabled(record)
    record.check_order(own.wrt & written)
    record.tell_stops(own.wrt)
    view = _View(call, pairs, own)

    def compressed() -> Entries:
        return adjoint_entries(own, view.inputs, view.outputs, share)

    def densely(dense: Dense) -> None:
        for b, name, part in view.output_parts():
            targets = []
            for p in (p for p in pairs if p.output is b):
                inputs = [(a, part.places()) for a, part in view.of(p.input)]
                targets.append((dense.entries[p.key], inputs))
            _rows(own, name, part, targets, limit, share)

    rows = sum(min(p.size, limit) if limit > 0 else p.size for _, _, p in view.output_parts())
    try:
        return _either(record, view, compressed, densely, sparse, rows, False, limit)
    except EvaluationFailed as why:
        raise _stopped(record, str(why)) from None
    finally:
        own.close()


def by_differences(
    call: LaunchCall, pairs: Sequence[Pair], eps: float | None, limit: int, sparse: bool,
    share: Share = ALL,
) -> Matrices:  # fmt: skip
    """Matrices from differences of the lifted launch. limit: columns of each input.

    share: as above. Raises as `by_adjoint`.
    """
    record = call.record
    tolerance = Tolerance(eps, None if eps is None else 0.0)
    try:
        with faithful(recorded_launch(record)) as launch:
            view = _View(call, pairs, launch.exact)
            ins, outs = view.inputs, view.outputs
            displaced = DisplacedLaunch(launch, ins.names, outs.names, tolerance)

            def compressed() -> Entries:
                return difference_entries(displaced, launch.own, ins, outs, eps, share)

            def densely(dense: Dense) -> None:
                for a, name, part in view.input_parts():
                    targets = [
                        (dense.entries[p.key], displaced.spans[b], place.places())
                        for p in pairs
                        if p.input is a
                        for b, place in view.of(p.output)
                    ]
                    _columns(displaced, name, part, targets, limit, share)

            cols = sum(
                min(p.size, limit) if limit > 0 else p.size for _, _, p in view.input_parts()
            )
            return _either(record, view, compressed, densely, sparse, cols, True, limit)
    except EvaluationFailed as why:
        raise _stopped(record, str(why)) from None


def _either(
    record: LaunchRecord, view: _View, compressed: Callable[[], Entries],
    densely: Callable[[Dense], None], sparse: bool, count: int, wide: bool, limit: int,
) -> Matrices:  # fmt: skip
    """Evaluates compressed where that pays or was asked for, else one derivative after another.

    count: how many derivatives the latter takes.
    """
    pairs = view.pairs
    why = ""
    dense = None if sparse else Dense(pairs, wide)
    if sparse or count > FEW:
        try:
            entries = compressed()
            found = view.sparse(entries, limit, wide)
            if dense is None:
                return Matrices(None, found)
            for key, matrix in dense.entries.items():
                _limited(matrix, limit, wide)[...] = 0.0
                s = found[key]
                matrix[s.rows, s.cols] = s.values
            return Matrices(dense)
        except UnknownSparsity as reason:
            why = str(reason)
    if dense is None:
        size = max(p.input.size * p.output.size for p in pairs)
        if size > MOST_DENSE:
            raise TapeError(
                Diagnostic("E401", f"the Jacobian of kernel {record.name!r} cannot be evaluated "
                           f"sparsely: {why}", record.site,
                           help="leave sparse out, or take fewer elements",
                           notes=(f"densely, it has {size} entries",))
            )  # fmt: skip
        dense = Dense(pairs, wide)
        densely(dense)
        return Matrices(None, {key: sparsely(m) for key, m in dense.entries.items()})
    densely(dense)
    return Matrices(dense)


def _limited(matrix: Array, limit: int, columns: bool) -> Array:
    """The part of a matrix that is evaluated."""
    if limit <= 0:
        return matrix
    return matrix[:, :limit] if columns else matrix[:limit]


def sparsely(matrix: Array) -> SparseJacobian:
    """The entries of a dense matrix that are not zero."""
    rows, cols = np.nonzero(matrix)
    return SparseJacobian(matrix.shape, rows, cols, matrix[rows, cols])


class _View:
    """Variables of a launch as parts of its arrays, and arrays as sides of its Jacobian."""

    def __init__(self, call: LaunchCall, pairs: Sequence[Pair], evaluation: Evaluation) -> None:
        self.pairs = list(pairs)
        self._call = call
        self._evaluation = evaluation
        self.inputs = self._side([name for _, name, _ in self.input_parts()])
        self.outputs = self._side([name for _, name, _ in self.output_parts()])

    def of(self, v: Variable) -> list[tuple[str, Part]]:
        """The parts of a variable with the names of the arrays that hold them."""
        owner = self._evaluation.owner
        return [(owner[name], p) for name, p in zip(owners(self._call, v), v.parts, strict=True)]

    def input_parts(self) -> list[tuple[Variable, str, Part]]:
        """Parts of all inputs, with their variables and arrays."""
        found = {id(p.input): p.input for p in self.pairs}.values()
        return [(v, name, part) for v in found for name, part in self.of(v)]

    def output_parts(self) -> list[tuple[Variable, str, Part]]:
        """Parts of all outputs, with their variables and arrays."""
        found = {id(p.output): p.output for p in self.pairs}.values()
        return [(v, name, part) for v in found for name, part in self.of(v)]

    def _side(self, names: Sequence[str]) -> Side:
        unique = tuple(dict.fromkeys(names))
        return Side(unique, tuple(self._evaluation.memory[a].size for a in unique))

    def sparse(self, e: Entries, limit: int, columns: bool) -> dict[Any, SparseJacobian]:
        """The matrices of all pairs. What lies beyond the limit is NaN."""
        ins, outs = self.inputs, self.outputs
        out = {}
        for p in self.pairs:
            rows, cols, values = [], [], []
            for b, below in self.of(p.output):
                span = outs.span(b)
                mine = slice(*np.searchsorted(e.pattern.rows, (span.start, span.stop)))
                for a, across in self.of(p.input):
                    left = ins.span(a)
                    at = e.pattern.cols[mine]
                    r, v = e.pattern.rows[mine], e.values[mine]
                    if len(ins.names) > 1:
                        inside = (at >= left.start) & (at < left.stop)
                        r, at, v = r[inside], at[inside], v[inside]
                    rows.append(_placed(r - span.start, below))
                    cols.append(_placed(at - left.start, across))
                    values.append(v)
            row, col, value = (np.concatenate(x) for x in (rows, cols, values))
            if len(rows) > 1 or not all(q.plain for q in (*p.input.parts, *p.output.parts)):
                order = np.lexsort((col, row))
                row, col, value = row[order], col[order], value[order]
            if limit > 0:
                value = np.where((col if columns else row) < limit, value, np.nan)
            shape = (p.output.size, p.input.size)
            out[p.key] = SparseJacobian(shape, row, col, value, e.colours)
        return out


def _placed(scalars: Array, part: Part) -> Array:
    """Numbers of a part's scalars as numbers of the variable's."""
    if part.plain:
        return scalars + part.offset if part.offset else scalars
    elements, within = np.divmod(scalars, part.width)
    return part.offset + elements * part.stride + within


def _rows(
    own: Evaluation, name: str, part: Part,
    targets: list[tuple[Array, list[tuple[str, Index | slice]]]], limit: int, share: Share,
) -> None:  # fmt: skip
    names = list(dict.fromkeys(a for _, inputs in targets for a, _ in inputs))
    sizes = [own.memory[a].size for a in names]
    seed = np.zeros(own.memory[name].shape, own.memory[name].dtype)
    flat = seed.reshape(-1)
    for f, row in enumerate(part.index().tolist()):
        if 0 < limit <= row:
            continue

        def entries(f: int = f) -> Array:
            flat[f] = 1.0
            grads = own.vjp({name: seed})
            flat[f] = 0.0
            return np.concatenate([grads[a].reshape(-1) for a in names])

        found = share.take(f"rows of {name}", f, entries, sum(sizes))
        if found is None:
            continue
        grads = dict(zip(names, np.split(found, np.cumsum(sizes)[:-1]), strict=True))
        for matrix, inputs in targets:
            for a, cols in inputs:
                matrix[row, cols] = grads[a]


def _columns(
    displaced: DisplacedLaunch, name: str, part: Part,
    targets: list[tuple[Array, slice, Index | slice]], limit: int, share: Share,
) -> None:  # fmt: skip
    height = max((span.stop for _, span, _ in targets), default=0)
    live = displaced.live[name].reshape(-1)
    for f, col in enumerate(part.index().tolist()):
        if 0 < limit <= col or not live[f]:
            continue

        def entries(f: int = f) -> Array:
            return displaced.column(name, f).value[:height]

        slope = share.take(f"columns of {name}", f, entries, height)
        if slope is None:
            continue
        for matrix, span, rows in targets:
            matrix[rows, col] = slope[span]


def check_enabled(record: LaunchRecord) -> None:
    """Raises TapeError (E401) where gradients would stop at a launch unseen."""
    if not record.selection.useful and record.selection.wrt & record.plan.variants.written:
        raise TapeError(
            Diagnostic(
                "E401", "Kernel must have backward pass enabled to compute Jacobians: "
                f"{record.name!r} has not, its enable_backward is False", record.site,
                help="set enable_backward=True at its decorator, or take `jacobian_fd`",
            )
        )  # fmt: skip


def _stopped(record: LaunchRecord, why: str) -> TapeError:
    """What a kernel's own error means here."""
    return TapeError(
        Diagnostic("E401", f"kernel {record.name!r} cannot be differentiated here: {why}",
                   record.site)
    )  # fmt: skip
