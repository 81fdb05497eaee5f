"""Every construct that kernels do not have: code, place, carets, message and advice.

A case is a module in `cases/` with kernels that must be refused. Comments say what is
expected of the line above them: carets under the place, the code, and a part of the
message. All problems of a kernel must be told at once, and none that is not expected.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import engine as wp
from engine.frontend import lower_kernel

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
_MARK = re.compile(r"^\s*#\s*(\^+) (E\d{3}) (.+)$")


@dataclass(frozen=True)
class Expected:
    line: int
    col: int
    end: int
    code: str
    message: str


def expectations(path: Path) -> list[Expected]:
    """What the comments of a case ask for. Carets next to `#` stand for the line's start."""
    out: list[Expected] = []
    lines = path.read_text().splitlines()
    target = 0
    for number, text in enumerate(lines, 1):
        mark = _MARK.match(text)
        if mark is None:
            target = number
            continue
        source = lines[target - 1]
        start = mark.start(1) + 1
        if text[: mark.start(1)].rstrip().endswith("#") and mark.start(1) - text.index("#") == 2:
            start = len(source) - len(source.lstrip()) + 1
        out.append(Expected(target, start, mark.end(1) + 1, mark.group(2), mark.group(3)))
    return out


def load(path: Path) -> ModuleType:
    name = f"compile_fail_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: Path) -> None:
    module = load(path)
    errors: list[wp.KernelError] = []
    for item in vars(module).values():
        if isinstance(item, wp.Kernel):
            with pytest.raises(wp.KernelError) as caught:
                lower_kernel(item.func)
            errors.append(caught.value)
    found = {d for e in errors for d in e.diagnostics}
    expected = expectations(path)
    assert expected
    left = list(found)
    for want in expected:
        match = [
            d
            for d in left
            if d.span is not None
            and (d.code, d.span.line, d.span.col) == (want.code, want.line, want.col)
        ]
        told = "\n\n".join(str(wp.KernelError(d)) for d in left)
        assert len(match) == 1, f"{want} is not among:\n{told}"
        (d,) = match
        assert d.span is not None
        assert want.message in d.message
        if d.span.end_line == d.span.line:
            assert d.span.end_col == want.end, f"{want}: ends at {d.span.end_col}"
        assert d.help, f"no advice: {d.message}"
        left.remove(d)
    assert not left, "\n\n".join(str(wp.KernelError(d)) for d in left)
    check_rendered(path, errors)


def check_rendered(path: Path, errors: list[wp.KernelError]) -> None:
    """The text that users see: place, source line, carets below it, help; nothing internal."""
    for error in errors:
        text = str(error)
        assert "engine/" not in text and "Traceback" not in text and "object at 0x" not in text
        for d in error.diagnostics:
            assert d.span is not None
            block = str(wp.KernelError(d)).splitlines()
            assert block[0] == f"error[{d.code}]: {d.message}"
            assert block[1] == f"  --> {path}:{d.span.line}:{d.span.col}"
            shown, carets = block[3], block[4]
            bar = shown.index("|")
            assert shown[bar + 2 :] == path.read_text().splitlines()[d.span.line - 1]
            assert carets.index("^") == bar + 1 + d.span.col
            assert any(line.startswith("help: ") for line in block)
