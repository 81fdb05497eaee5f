"""Writes to components of a variable: `t = insert(x, i, s); x = t` as one assignment.

Compilers keep both copies of a long vector in memory if they are asked for, and copy
the whole of it twice for each component that is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from engine.ir import nodes as n


def uses(fn: n.Function) -> Mapping[n.Var, int]:
    """How often each temporary that `insert` made is read."""
    made = {s.dst for s in n.walk(fn.body) if isinstance(s, n.Let) and s.op == "insert"}
    found: Counter[n.Var] = Counter()
    if made:
        for s in n.walk(fn.body):
            found.update(a for a in n.uses_of(s) if isinstance(a, n.Var) and a in made)
    return found


def run_of_inserts(block: Sequence[n.Stmt], at: int, used: Mapping[n.Var, int]) -> list[n.Let]:
    """The inserts from `at` on that together change a variable, which the next statement sets.

    Empty where there are none: a temporary is used elsewhere, or the variable is another.
    """
    found: list[n.Let] = []
    for s in block[at:]:
        if isinstance(s, n.Let) and s.op == "insert":
            if used[s.dst] != 1 or (found and s.args[0] != found[-1].dst):
                return []
            found.append(s)
            continue
        if found and isinstance(s, n.Set) and s.value == found[-1].dst:
            return found if s.dst == found[0].args[0] else []
        return []
    return []
