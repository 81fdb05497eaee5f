"""Every operation and builtin on a GPU, real or emulated, of every type.

Operations against their meaning in NumPy, to the last bit but for functions that no library rounds
correctly; composites and their adjoints against the interpreter; atomic updates against loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.pipeline import Variants
from engine.ir import interp
from engine.lang.types import FLOAT32, is_float, scalar_of
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.cuda.held import hold, ran
from tests.backend.signatures import Signature
from tests.backend.test_composites import ADJOINTS, LARGE, NONE, SLOW, THREADS, close, memory
from tests.backend.test_kernel_builtins import CASES as UPDATES
from tests.backend.test_kernel_builtins import Case
from tests.backend.test_operations import SIGNATURES, compare
from tests.overloads import OVERLOADS, Overload, kernel_of, seeded

# What runs emulated, too, where each takes a C++ compiler; all of it as a sweep.
FEW = ("floordiv", "lerp")


def on_places(groups: Sequence[str]) -> list[Any]:
    """Each group on each place."""
    out = []
    for where in PLACES:
        name, marks = (where, []) if isinstance(where, str) else ("cuda", [pytest.mark.gpu])
        for group in dict.fromkeys(groups):
            more = [pytest.mark.sweep] if name == "emulated" and group not in FEW else []
            out.append(pytest.param(name, group, id=f"{group}-{name}", marks=[*marks, *more]))
    return out


@pytest.fixture
def there(request: pytest.FixtureRequest) -> Iterator[Any]:
    with place(request.param) as found, wp.ScopedDevice(found):
        yield found


OPERATIONS: dict[str, list[Signature]] = {}
for _s in SIGNATURES:
    OPERATIONS.setdefault(_s.op, []).append(_s)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("there", "op"), on_places(list(OPERATIONS)), indirect=["there"])
def test_operations(there: Any, op: str) -> None:
    group = OPERATIONS[op]
    entries = there.backend.compile([s.kernel() for s in group])
    for signature, entry in zip(group, entries, strict=True):
        arguments = signature.arguments()
        expected = signature.meaning(arguments)
        held = hold(there, [*arguments[: len(signature.args)], np.zeros_like(expected)])
        ran(there, entry, len(expected), *held)
        compare(signature, arguments, held[-1].host(), expected)


def named(overloads: Sequence[Overload]) -> dict[str, list[Overload]]:
    out: dict[str, list[Overload]] = {}
    for o in overloads:
        name = o.composite.func.__name__
        if name not in (*SLOW, *LARGE):
            out.setdefault(o.composite.user, []).append(o)
        elif any(is_float(x) and scalar_of(x) is FLOAT32 for x in o.types):
            out.setdefault(name, []).append(o)  # the compiler takes seconds for each
    return out


VALUES = named(OVERLOADS)
SLOPES = named([o for o in ADJOINTS if o.composite.func.__name__ not in SLOW])


@pytest.mark.parametrize(("there", "name"), on_places(list(VALUES)), indirect=["there"])
def test_composites(there: Any, name: str) -> None:
    group = [Variants(kernel_of(o)[0]) for o in VALUES[name]]
    entries = there.backend.compile([v.function("forward", NONE, NONE) for v in group])
    for o, v, entry in zip(VALUES[name], group, entries, strict=True):
        want = memory(o)
        held = hold(there, want)
        interp.run(v.ir, want, THREADS)
        ran(there, entry, THREADS, *held)
        close([h.host() for h in held], want, 64)


@pytest.mark.parametrize(("there", "name"), on_places(list(SLOPES)), indirect=["there"])
def test_adjoints_of_composites(there: Any, name: str) -> None:
    """One overload of each, over float64."""
    o = SLOPES[name][0]
    kernel, wrt = kernel_of(o)
    v = Variants(kernel)
    given, rng = memory(o), seeded(o)
    seeds = [
        rng.normal(size=a.shape) if p.name.startswith("r") else np.zeros_like(a)
        for p, a in zip(v.ir.params, given, strict=True)
        if p.name in wrt
    ]
    held = hold(there, [*given, *seeds])
    interp.run(v.adjoint_ir(wrt, NONE).fn, [*given, *seeds], THREADS)
    ran(there, v.entry(there.backend, "adjoint", wrt, NONE), THREADS, *held)
    close([h.host() for h in held[len(given) :]], seeds, 4096)


def updates() -> dict[str, list[Case]]:
    out: dict[str, list[Case]] = {}
    for c in UPDATES:
        out.setdefault(c.name, []).append(c)
    return out


# What they find there, and what the last of some leaves, is decided by the order of threads.
ORDERED = ("atomic_exch", "atomic_cas")


@pytest.mark.parametrize(("there", "name"), on_places(list(updates())), indirect=["there"])
def test_updates(there: Any, name: str) -> None:
    for c in updates()[name]:
        arrays = c.on_device()
        wp.launch(c.kernel, dim=c.dim, inputs=arrays)
        with np.errstate(over="ignore"):
            want = c.model(*(a.copy() for a in c.arrays))
        got = [a.numpy() for a in arrays]
        if name not in ORDERED:  # sums of few digits are exact
            for k in (0,) if name.startswith("atomic") else (0, 1):
                np.testing.assert_array_equal(
                    got[k], want[k].astype(c.scalar.numpy), err_msg=str(c)
                )
        else:  # each element is one of those that were there, whole
            known = {v.tobytes() for a in c.arrays[:2] for v in a}
            if not np.shape(c.arrays[0][0]):  # components are swapped one by one
                assert {v.tobytes() for a in (got[0], got[2]) for v in a} <= known, str(c)
