"""`Tape.visualize`: validates its arguments and draws."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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
from engine.tape.records.record import Record
from engine.tape.scopes import Scope


def visualized(
    records: Sequence[Record], scopes: Sequence[Scope], seeded: Sequence[array], *,
    simplify: bool, hide_readonly: bool, labels: Mapping[array, str] | None, longest: bool,
    unscoped: bool, inputs: Sequence[array] | None, outputs: Sequence[array] | None,
    input_names: Sequence[str] | None, output_names: Sequence[str] | None, direction: str,
    filename: str | os.PathLike[str] | None = None,
) -> str:  # fmt: skip
    """The dot text, which is written to a file if there is one. Raises TapeError (E401)."""
    if not isinstance(filename, str | os.PathLike | None):
        raise _misused(f"filename is a path, got {filename!r:.80}", "write filename='tape.dot'")
    for name, flag in (
        ("simplify_graph", simplify), ("hide_readonly_arrays", hide_readonly),
        ("choose_longest_node_name", longest), ("ignore_graph_scopes", unscoped),
    ):  # fmt: skip
        try:
            bool(flag)
        except (TypeError, ValueError):  # of an array, for one
            raise _misused(f"{name} is {flag!r:.80}", "it is True or False") from None
    if not isinstance(direction, str) or direction not in get_args(Direction):
        raise _misused(f"graph_direction is {direction!r:.80}", "it is LR, RL, TB or BT")
    tracked = _tracked(inputs, "track_inputs"), _tracked(outputs, "track_outputs")
    named: dict[Any, str] = {}
    for kind, arrays, names in (
        ("input", tracked[0], input_names), ("output", tracked[1], output_names),
    ):  # fmt: skip
        if names is None:
            continue
        if not isinstance(names, (list, tuple)) or len(names) != len(arrays):
            raise _misused(
                f"track_{kind}_names does not have one name for each of track_{kind}s",
                f"pass {len(arrays)} names",
            )
        named |= {key_of(a): str(n) for a, n in zip(arrays, names, strict=True)}
    if labels is not None and not isinstance(labels, Mapping):
        raise _misused("array_labels is not a dictionary", "write array_labels={x: 'x'}")
    for a, name in (labels or {}).items():
        if not isinstance(a, array):
            raise _misused(f"a key of array_labels is not an array: {a!r}",
                           "write array_labels={x: 'x'}")  # fmt: skip
        named.setdefault(key_of(a), str(name))
    lister = Lister()
    lister.add(records)
    places = [[lister.array(a) for a in arrays] for arrays in tracked]
    listing = lister.done(scopes, seeded, variable_names(lister.keys))
    known = lister.keys
    options = GraphOptions(
        simplify, hide_readonly, {known[k]: n for k, n in named.items() if k in known}, longest,
        not unscoped, tuple(places[0]), tuple(places[1]), cast(Direction, direction),
    )  # fmt: skip
    text = dot(graph(listing, options))
    if filename is not None:
        _write(filename, text)
    return text


def _write(filename: str | os.PathLike[str], text: str) -> None:
    try:
        with open(filename, "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _misused(f"filename {os.fspath(filename)!r} cannot be written: {why}", "") from None


def _tracked(given: Sequence[array] | None, name: str) -> Sequence[array]:
    if given is None:
        return ()
    single = isinstance(given, array) or not isinstance(given, Iterable)
    arrays = () if single else tuple(given)
    if single or not all(isinstance(a, array) for a in arrays):
        raise _misused(f"{name} takes a list of arrays, got {given!r:.80}", f"write {name}=[x]")
    return arrays


def _misused(message: str, help: str) -> TapeError:
    return TapeError(Diagnostic("E401", f"visualize: {message}", call_span(), help))
