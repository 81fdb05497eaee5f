"""`Tape.visualize`: its arguments checked and put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.runtime.array import array
from engine.tape.graph.build import graph
from engine.tape.graph.dot import dot
from engine.tape.graph.listing import Lister
from engine.tape.graph.model import Direction, GraphOptions
from engine.tape.graph.names import variable_names
from engine.tape.outline import key_of
from engine.tape.record import Record
from engine.tape.scopes import Scope


def visualized(
    records: Sequence[Record], scopes: Sequence[Scope], seeded: Sequence[array], *,
    simplify: bool, hide_readonly: bool, labels: Mapping[array, str] | None, longest: bool,
    scoped: bool, inputs: Sequence[array] | None, outputs: Sequence[array] | None,
    input_names: Sequence[str] | None, output_names: Sequence[str] | None, direction: str,
) -> str:  # fmt: skip
    """The dot text. Raises TapeError (E401)."""
    if direction not in get_args(Direction):
        raise _misused(f"graph_direction is {direction!r}", "it is LR, RL, TB or BT")
    tracked = _tracked(inputs, "track_inputs"), _tracked(outputs, "track_outputs")
    named: dict[Any, str] = {}
    for kind, arrays, names in (
        ("input", tracked[0], input_names), ("output", tracked[1], output_names),
    ):  # fmt: skip
        if names is None:
            continue
        if isinstance(names, str) or len(names) != len(arrays):
            raise _misused(
                f"track_{kind}_names does not have one name for each of track_{kind}s",
                f"pass {len(arrays)} names",
            )
        named |= {key_of(a): str(n) for a, n in zip(arrays, names, strict=True)}
    if labels is not None and not isinstance(labels, Mapping):
        raise _misused("array_labels is no dictionary", "write array_labels={x: 'x'}")
    for a, name in (labels or {}).items():
        if not isinstance(a, array):
            raise _misused(f"a key of array_labels is no array: {a!r}",
                           "write array_labels={x: 'x'}")  # fmt: skip
        named.setdefault(key_of(a), str(name))
    lister = Lister()
    lister.add(records)
    places = [[lister.array(a) for a in arrays] for arrays in tracked]
    listing = lister.done(scopes, seeded, variable_names(lister.keys))
    known = lister.keys
    options = GraphOptions(
        simplify, hide_readonly, {known[k]: n for k, n in named.items() if k in known}, longest,
        scoped, tuple(places[0]), tuple(places[1]), cast(Direction, direction),
    )  # fmt: skip
    return dot(graph(listing, options))


def _tracked(given: Sequence[array] | None, name: str) -> Sequence[array]:
    arrays = [] if given is None else given
    if isinstance(arrays, array) or not all(isinstance(a, array) for a in arrays):
        raise _misused(f"{name} takes a list of arrays", f"write {name}=[x]")
    return arrays


def _misused(message: str, help: str) -> TapeError:
    return TapeError(Diagnostic("E401", f"visualize: {message}", call_span(), help))
