"""The code of kernels beside their Python lines, as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from adtool import __version__
from adtool.codec import dumps
from adtool.places import short
from adtool.render import styles
from adtool.render.words import clean
from adtool.report import SCHEMA

if TYPE_CHECKING:
    from adtool.kernel_listing import KernelListing
    from adtool.session import Session
    from engine import KernelStage

_WHAT = {
    "ast": "the Python syntax tree",
    "ir": "the kernel, typed",
    "adjoint": "the backward pass",
    "tangent": "forward mode",
    "cpp": "the C++ code of the launch and its adjoint",
    "cuda": "the CUDA code of the launch",
    "cuda-adjoint": "the CUDA code of the adjoint",
}
_LEXERS = {"python-ast": "python", "c++": "cpp", "cuda": "cuda", "ir": "llvm"}
_SHARE = 0.45  # of a terminal's width, for the Python lines
_THEME = "ansi_dark"
# As the engine compiles it; other options give other numbers.
_COMPILED = (
    "nvcc -std=c++17 -fmad=false -arch=sm_90 -cubin FILE.cu",
    "NVRTC: --std=c++17 --fmad=false --gpu-architecture=sm_90 --diag-suppress=177",
)


def print_listing(listing: KernelListing, console: Console) -> None:
    """Prints the kernels one below the other; CUDA as a file that compilers take."""
    if any(k.preamble for k in listing.kernels):
        _print_unit(listing.kernels, console)
        return
    for number, kernel in enumerate(listing.kernels):
        if number:
            console.print()
        _print_kernel(kernel, console)


def print_json(session: Session, code: int, stream: TextIO) -> None:
    """Writes the same as one strict JSON object and a line's end."""
    data = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "script": session.target.name,
        "ok": code == 0,
        "exit_code": code,
        "kernels": [] if session.listing is None else session.listing.kernels,
        "error": session.failure,
    }
    stream.write(dumps(data, indent=2) + "\n")


def _print_unit(kernels: Sequence[KernelStage], console: Console) -> None:
    for kernel in kernels:
        place = f"{short(kernel.file)}:{kernel.line}"
        _line(console, Text(f"// {_uncontinued(f'{_head(kernel)} ({place})')}", styles.HEAD))
    for line in _COMPILED:
        _line(console, Text(f"// {line}", styles.DIM))
    # All that snippets see holds all that others do.
    preamble = max((k.preamble for k in kernels), key=len)
    for line in preamble.splitlines():
        _line(console, Text(line))
    for kernel in kernels:
        before: tuple[str | None, int | None] = (None, None)
        for item in kernel.lines:
            if item.line is not None and (item.file, item.line) != before:
                before = item.file, item.line
                said = _uncontinued(f"{item.line}: {item.source.strip()}")
                indent = item.text[: len(item.text) - len(item.text.lstrip())]
                _line(console, Text(f"{indent}// {said}", styles.GUTTER))
            _line(console, _coloured(clean(item.text), _LEXERS[kernel.language], console))


def _uncontinued(comment: str) -> str:
    """Words that may stand in a comment of one line."""
    return clean(comment).rstrip("\\ ")


def _head(kernel: KernelStage) -> str:
    by = f", with gradients of {', '.join(kernel.gradients)}" if kernel.gradients else ""
    return f"kernel `{kernel.kernel}`, {_WHAT[kernel.stage]}{by}"


def _print_kernel(kernel: KernelStage, console: Console) -> None:
    _line(console, Text(clean(_head(kernel)), styles.HEAD))
    _line(console, Text(clean(f"{short(kernel.file)}:{kernel.line}"), styles.DIM))
    lines = list(kernel.lines)
    while lines and not lines[-1].text:
        lines.pop()
    sources = [clean(x.source).rstrip() for x in lines]
    indent = min((len(s) - len(s.lstrip()) for s in sources if s), default=0)
    width = max((len(s) - indent for s in sources), default=0)
    if console.is_terminal:
        width = min(width, int(console.width * _SHARE))
    digits = max((len(str(x.line)) for x in lines if x.line), default=1)
    before: tuple[str | None, int | None] = (None, None)
    for item, source in zip(lines, sources, strict=True):
        place = (item.file, item.line)
        said = place == before or item.line is None
        left = "" if said else source[indent:]
        if len(left) > width:
            left = left[: width - 3] + "..."
        number = "" if said else str(item.line)
        row = Text.assemble((f"{number:>{digits}} ", styles.GUTTER))
        row.append_text(_coloured(left, "python", console))
        row.append(" " * (width - len(left)) + " | ", styles.GUTTER)
        row.append_text(_coloured(clean(item.text), _LEXERS[kernel.language], console))
        row.rstrip()
        _line(console, row)
        before = place if item.line is not None else before


def _coloured(code: str, lexer: str, console: Console) -> Text:
    if not console.is_terminal or console.color_system is None:
        return Text(code)
    text = Syntax("", lexer, theme=_THEME).highlight(code)
    text.rstrip()
    # The lexer drops spaces at the start.
    missing = len(code) - len(code.lstrip()) - (len(text.plain) - len(text.plain.lstrip()))
    return Text(" " * max(0, missing)).append_text(text)


def _line(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False)
