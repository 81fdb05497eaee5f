"""The stages of a kernel's compilation: its code at each, beside the Python source."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, LaunchError, Span
from engine.ir.nodes import Function, callees, walk
from engine.ir.printer import located
from engine.reading import getlines

if TYPE_CHECKING:
    from engine.compile.forms import Form
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan

Stage = Literal["ast", "ir", "adjoint", "tangent", "cpp", "cuda", "cuda-adjoint"]
Names = frozenset[str]

_LANGUAGES = {"ast": "python-ast", "cpp": "c++", "cuda": "cuda", "cuda-adjoint": "cuda"}
_LINE = re.compile(r'#line (\d+) "(.*)"')


@dataclass(frozen=True, slots=True)
class StageLine:
    """A line of code. file, line, source: the Python line that it comes from; None for none."""

    text: str
    file: str | None = None
    line: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class KernelStage:
    """A kernel's code at a stage.

    file, line: its definition. gradients: the arrays that derivatives are taken by, where there
    are any. language: of the code, `python-ast`, `ir`, `c++` or `cuda`. preamble: what stands
    before the lines, so that CUDA's compilers take the whole.
    """

    kernel: str
    stage: Stage
    file: str
    line: int
    language: str
    gradients: tuple[str, ...]
    lines: tuple[StageLine, ...]
    preamble: str = ""


def kernel_stage(source: Any, stage: Stage) -> KernelStage:
    """The code of a kernel at a stage.

    source: a kernel, or a recorded launch, for which it is the code that ran: with the gradients
    that its arrays have. stage: `ast` (the Python syntax tree), `ir` (typed, as lowered),
    `adjoint` (the backward pass), `tangent` (forward mode), `cpp` (the text that is compiled
    for the launch and its adjoint), `cuda` or `cuda-adjoint` (what is compiled for one of them on
    a GPU; none is needed).

    Raises:
        LaunchError: E405, no such stage; E201, a generic kernel that was not launched.
        EngineError: the kernel has no such form.
    """
    if stage not in get_args(Stage):
        raise LaunchError(
            Diagnostic("E405", f"there is no stage {stage!r}",
                       help=f"the stages are {', '.join(get_args(Stage))}")
        )  # fmt: skip
    plan, wrt, journaled, recorded = _forms(source)
    variants = plan.variants
    gradients: tuple[str, ...] = ()
    if stage not in ("ast", "ir"):
        gradients = tuple(p.name for p in plan.params if p.name in wrt)
    text = plan.kernel.text
    files: dict[str, list[str]] = {} if text is None else {text.file: text.lines or []}
    language, preamble = _LANGUAGES.get(stage, "ir"), ""
    if stage == "ast":
        lines = list(_syntax_tree(plan.kernel))
    elif stage == "cpp" or stage == "cuda" or stage == "cuda-adjoint":
        forms: list[Form] = ["recorded" if recorded else "forward"]
        if stage == "cpp":
            forms += ["adjoint"] if wrt else []
        elif stage == "cuda-adjoint":
            forms = ["adjoint"]
        fns = [variants.function(f, wrt, journaled) for f in forms]
        names = [f"{plan.kernel.key}_{form}" for form in forms]
        write = _cpp if stage == "cpp" else _cuda
        lines = [x for f, name in zip(fns, names, strict=True) for x in _native(f, name, write)]
        if stage != "cpp":
            from engine.codegen.cuda import unit

            preamble = unit(fns)
    else:
        form: Form = "forward" if stage == "ir" else stage
        fn = variants.function(form, wrt, journaled)
        lines = [x for f in (fn, *callees(fn)) for x in _printed(f)]
    shown = tuple(
        StageLine(t, file, line, _source(files, file, line)) if line else StageLine(t)
        for t, file, line in lines
    )
    span = variants.ir.span
    return KernelStage(plan.kernel.key, stage, span.file, span.line, language, gradients, shown,
                       preamble)  # fmt: skip


# Text, and the file and number of its Python line, 0 for none.
_Lines = Iterable[tuple[str, str, int]]


def _forms(source: Any) -> tuple[Plan, Names, Names, bool]:
    """The lowered kernel, its arrays with gradients, those journaled, whether that is needed."""
    selection = getattr(source, "selection", None)
    plan: Plan = source.plan
    variants = plan.variants
    if selection is not None and selection.useful:
        return plan, selection.wrt, selection.journaled, selection.saves_journal
    if not plan.kernel.enable_backward:
        return plan, frozenset(), frozenset(), False
    journaled = variants.journaled() if selection is None else selection.journaled
    return plan, variants.differentiable, journaled, False


def _printed(fn: Function) -> Iterator[tuple[str, str, int]]:
    for text, span in located(fn):
        yield text, span.file, span.line
    yield "", "", 0


def _cpp(fn: Function, name: str) -> str:
    from engine.compile.cpu.loops import text

    return text(fn, name, lines=True)


def _cuda(fn: Function, name: str) -> str:
    from engine.codegen import cuda
    from engine.codegen.spelling import identifier
    from engine.compile.cuda.apart import known_of

    return cuda.emit(fn, identifier(name), lines=True, known=known_of(fn))


def _native(
    fn: Function, name: str, write: Callable[[Function, str], str]
) -> Iterator[tuple[str, str, int]]:
    files = {os.path.basename(s.file): s.file for s in _spans(fn)}
    file, line = "", 0
    for text in write(fn, name).splitlines():
        found = _LINE.fullmatch(text)
        if found is not None:
            file, line = files.get(found[2], ""), int(found[1])
            continue
        if text and not text[0].isspace():  # outside of what was written in Python
            file, line = "", 0
        yield text, file, line if file else 0
    yield "", "", 0


def _spans(fn: Function) -> Iterator[Span]:
    for f in (fn, *callees(fn)):
        yield f.span
        for s in walk(f.body):
            yield s.span


def _syntax_tree(kernel: Kernel) -> _Lines:
    text = kernel.text
    lines = None if text is None else text.lines
    if text is None or lines is None:
        return
    code = text.code
    tree = ast.parse("\n".join(line.rstrip("\n") for line in lines))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= code.co_firstlineno <= node.lineno:
                for shown, line in _dump(node, 0):
                    yield shown, text.file, line


def _dump(node: ast.AST, depth: int) -> Iterator[tuple[str, int]]:
    """Statements one below the other, each with its fields."""
    pad = "  " * depth
    line = getattr(node, "lineno", 0)
    blocks = {
        name: value
        for name, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    }
    yield f"{pad}{type(node).__name__}", line
    for name, value in ast.iter_fields(node):
        if name in blocks:
            yield f"{pad}  {name}:", line
            for item in blocks[name]:
                yield from _dump(item, depth + 2)
        elif isinstance(value, ast.AST):
            yield f"{pad}  {name} = {ast.dump(value)}", line
        elif isinstance(value, list) and value:
            items = ", ".join(ast.dump(v) if isinstance(v, ast.AST) else repr(v) for v in value)
            yield f"{pad}  {name} = [{items}]", line
        elif value not in (None, [], ""):
            yield f"{pad}  {name} = {value!r}", line


def _source(files: dict[str, list[str]], file: str, line: int) -> str:
    if file not in files:
        files[file] = getlines(file)
    lines = files[file]
    return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else ""
