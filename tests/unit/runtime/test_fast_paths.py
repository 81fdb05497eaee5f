"""Every fast path against the plain one: the same bits, for a table of programs.

`fast_paths` lists the paths, `fast_programs` the programs. Each part of a path is shown to be
taken, and is broken on purpose: a comparison that does not see that would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from tests.unit.runtime.fast_paths import NAMES, PATHS, Part, Path
from tests.unit.runtime.launching import NATIVE

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("the CPU's ways"),
    pytest.mark.filterwarnings("ignore:no gradient flows"),
]


@pytest.mark.parametrize(
    ("path", "program"), [(path.name, program) for path in PATHS for program in path.programs]
)
def test_the_same_bits(path: str, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = NAMES[path]
    assert of.differences(of.programs[program], monkeypatch) == []


PARTS = [pytest.param(path, part, id=f"{path.name}-{part.name}")
         for path in PATHS for part in path.parts]  # fmt: skip


@pytest.mark.parametrize(("path", "part"), PARTS)
def test_it_is_taken(path: Path, part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[bool] = []

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            found = real(*args, **named)
            came.append(found is not None and found is not False)
            return found

        return call

    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    for program in path.programs.values():
        with path.on(monkeypatch) as _, monkeypatch.context() as m:
            part.put(m, counted)
            program(path.repeat)
        if any(came):
            break
    assert any(came)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("path", "part"), PARTS)
def test_a_fault_is_seen(path: Path, part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    spoiled = path.spoiled(part)
    for program in path.programs.values():
        try:
            if spoiled.differences(program, monkeypatch):
                return
        except (EngineError, ValueError):  # where the plain way has none
            return
    pytest.fail(f"no program of {path.name!r} sees what is wrong with {part.name!r}")
