"""Type stubs of the builtins, from which editors know their names, arguments and docs."""

from __future__ import annotations

import textwrap

from engine.builtins.queries import QUERIES
from engine.builtins.stubs import BUILTINS
from tools.reference.pages import SIGNATURES
from tools.reference.signatures import overloads, signatures

HEADER = '''"""The builtins, for editors and type checkers.

Made by tools/make_reference.py: do not edit.
"""

from typing import Any

'''


def stubs() -> str:
    """The text of engine/builtins/names.pyi."""
    return HEADER + "\n".join(map(_stub, BUILTINS))


def _stub(name: str) -> str:
    doc = BUILTINS[name].__doc__ or ""
    if name in QUERIES:
        doc = "\n".join(dict.fromkeys(q.doc for q in QUERIES[name]))
    lines = [q.shown for q in QUERIES.get(name, ())] or [
        line for o in overloads(name) for line in SIGNATURES.get(name) or signatures(name, o)
    ]
    text = "\n".join(textwrap.fill(line, 92) for line in doc.splitlines())
    shown = "\n".join(dict.fromkeys(lines))
    body = textwrap.indent(f'"""{text}\n\n{shown}\n"""' if shown else f'"""{text}"""', "    ")
    return f"def {name}({_parameters(name)}) -> Any:\n{body}\n    ...\n"


def _parameters(name: str) -> str:
    """The arguments by name where all overloads have the same, else any."""
    if name in QUERIES:
        return "*args: Any, **named: Any"
    forms = {tuple(n.replace(" ", "") for n in o.names) for o in overloads(name)}
    if len(forms) != 1:
        return "*args: Any, **named: Any"
    (names,) = forms
    out = []
    for n in names:
        plain, equals, _ = n.partition("=")
        out.append(f"{plain}: Any = ..." if equals else f"{plain}: Any")
    return ", ".join([*out, "/"])
