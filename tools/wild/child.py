"""Imports the modules of a folder under the alias, and lowers their kernels; writes JSON lines.

Runs in a process of its own (`measure.py` minds it): sources hang and crash. What was begun and
has no end in the file when the process starts again is what ended the one before.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import json
import os
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.wild import sources
from tools.wild.instances import candidates
from tools.wild.standins import StandIns


class OutOfTime(BaseException):
    """A module or a kernel took too long. No `except Exception` of a module takes it."""


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Raises OutOfTime in a block that takes longer."""

    def over(*_: object) -> None:
        raise OutOfTime(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Below:
    """Finds a package that lies below the alias (`warp.examples`) where it really is."""

    def __init__(self, package: str, root: Path) -> None:
        self.package = package
        self.where = str(root.joinpath(*package.split(".")[:-1]))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the package itself, or of what is in it; None for all else."""
        if fullname == self.package:
            return importlib.machinery.PathFinder.find_spec(fullname, [self.where])
        if fullname.startswith(self.package + "."):
            return importlib.machinery.PathFinder.find_spec(fullname, path)
        return None


def cause(error: BaseException, folder: str) -> dict[str, Any]:
    """What went wrong and where, as data."""
    diagnostics = getattr(error, "diagnostics", None)
    if diagnostics:
        first = diagnostics[0]
        span = first.span
        place = f"{span.file}:{span.line}" if span is not None else _place(error, folder)
        return {"cause": f"{first.code}: {first.message}", "place": place}
    text = str(error).strip().splitlines()
    shown = next((t for t in text if t), "")
    return {"cause": f"{type(error).__name__}: {shown}"[:300], "place": _place(error, folder)}


def _place(error: BaseException, folder: str) -> str:
    """The last line of the folder that the error came through; else its last line at all."""
    trace, last, inside = error.__traceback__, "", ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        last = f"{file}:{trace.tb_lineno}"
        if file.startswith(folder):
            inside = last
        trace = trace.tb_next
    return inside or last


class Log:
    """The file of JSON lines. done: what has an end in it, by kind and name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[tuple[str, str], dict[str, Any]] = {}
        begun: dict[str, Any] | None = None
        if path.exists():
            for text in path.read_text().splitlines():
                row = json.loads(text)
                if "begin" in row:
                    begun = row
                elif "kind" in row:
                    self.done[row["kind"], row["name"]] = row
                    begun = None
        self.file = path.open("a")
        if begun is not None:
            kind, name = begun["begin"]
            self.end(kind, name, ok=False, cause="ended the process that ran it", place="")

    def write(self, row: dict[str, Any]) -> None:
        """Adds a line, at once."""
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def begin(self, kind: str, name: str) -> None:
        """Says what is worked on from here."""
        self.write({"begin": [kind, name]})

    def end(self, kind: str, name: str, **facts: Any) -> None:
        """Says what became of it."""
        row = {"kind": kind, "name": name, **facts}
        self.done[kind, name] = row
        self.write(row)


def import_all(
    found: sources.Sources, log: Log, stand_ins: StandIns, alias: str, seconds: int
) -> None:
    """Imports every module; those that want what is not installed, again with a stand-in."""
    own = {alias, *(name.partition(".")[0] for name in found.modules)}
    for name in found.modules:
        row = log.done.get(("module", name))
        if row is not None:
            stand_ins.names |= set(row.get("stood_in", ()))
    again = list(found.modules)
    for name in again:
        row = log.done.get(("module", name))
        if row is not None and not row["ok"]:
            continue
        if row is None:
            log.begin("module", name)
        stood: list[str] = []
        while True:
            error = _import(name, seconds)
            wanted = getattr(error, "name", None) or ""
            package = wanted.partition(".")[0]
            if not isinstance(error, ModuleNotFoundError) or not package or package in own:
                break
            if package in stand_ins.names or package in sys.stdlib_module_names:
                break
            stand_ins.names.add(package)
            stood.append(package)
        if row is None:
            facts = {} if error is None else cause(error, str(found.root))
            log.end("module", name, ok=error is None, stood_in=stood, **facts)


def _import(name: str, seconds: int) -> BaseException | None:
    before = sys.argv
    sys.argv = [name]
    try:
        with limit(seconds):
            importlib.import_module(name)
    except (Exception, OutOfTime, SystemExit) as error:
        return error
    finally:
        sys.argv = before
    return None


def kernels(folder: str) -> list[Any]:
    """Every kernel that there is and whose function stands in the folder."""
    from engine import Kernel

    found = [k for k in gc.get_objects() if type(k) is Kernel and k.types is None]
    found = [k for k in found if k.func.__code__.co_filename.startswith(folder)]
    return sorted(found, key=lambda k: (_file(k), k.func.__code__.co_firstlineno, k.key))


def _file(kernel: Any) -> str:
    return str(kernel.func.__code__.co_filename)


def apart(function: Callable[..., Any], seen: set[int] | None = None) -> str:
    """Whether a kernel, or a function that it calls, uses what is counted apart; "" if not."""
    import ast
    import inspect
    import textwrap

    from engine import Function

    seen = set() if seen is None else seen
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return ""
    seen.add(id(code))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return ""
    if found := sources.apart(tree):
        return found
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    space = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    paths = [space[n] for n in sorted(names) if n in space]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = space.get(node.value.id)
            if isinstance(owner, types.ModuleType) and owner.__name__ != "engine":
                paths.append(owner.__dict__.get(node.attr))
    for value in paths:
        if isinstance(value, Function) and (found := apart(value.func, seen)):
            return found
    return ""


def lower_all(folder: str, log: Log, seconds: int) -> None:
    """Lowers every kernel, and makes its adjoint."""
    for kernel in kernels(folder):
        code = kernel.func.__code__
        name = f"{code.co_filename}:{code.co_firstlineno}:{kernel.key}"
        if ("kernel", name) in log.done:
            continue
        log.begin("kernel", name)
        facts: dict[str, Any] = {
            "file": code.co_filename, "line": code.co_firstlineno, "key": kernel.key,
            "generic": False, "ok": False, "adjoint": None,
        }  # fmt: skip
        began = time.perf_counter()
        try:
            with limit(seconds):
                facts["apart"] = apart(kernel.func)
                _lower(kernel, facts, folder)
        except (Exception, OutOfTime) as error:
            facts.update(cause(error, folder))
            facts["apart"] = facts.get("apart") or _missing(facts["cause"])
        facts["seconds"] = round(time.perf_counter() - began, 3)
        log.end("kernel", name, **facts)


def _missing(cause: str) -> str:
    """Which of the things that are counted apart an error names; "" for none."""
    whats = set(sources.APART.values())
    return next((w for w in sorted(whats) if cause.startswith("E112") and w in cause), "")


def _lower(kernel: Any, facts: dict[str, Any], folder: str) -> None:
    from engine.compile.pipeline import Variants
    from engine.diagnostics import EngineError
    from engine.runtime.kernel import lower

    made = None
    facts["generic"] = generic = kernel.is_generic
    first: BaseException | None = None
    for types_ in candidates(kernel) if generic else [None]:
        try:
            made = lower(kernel if types_ is None else kernel.add_overload(types_))
            facts["instance"] = str(types_) if types_ is not None else ""
            break
        except EngineError as error:
            first = first or error
    if made is None:
        raise first or TypeError("there is no instance to try")
    facts["ok"] = True
    if not kernel.enable_backward:
        return
    facts["adjoint"] = False
    try:
        variants = Variants(made)
        variants.adjoint_ir(variants.differentiable, variants.journaled())
        facts["adjoint"] = True
    except (Exception, OutOfTime) as error:
        found = cause(error, folder)
        facts["adjoint_cause"], facts["adjoint_place"] = found["cause"], found["place"]


def main(arguments: dict[str, Any]) -> None:
    """arguments: folder, log, alias, skip, seconds (see `measure.py`)."""
    from engine import alias

    warnings.simplefilter("ignore")
    alias.install(arguments["alias"])
    found = sources.find(Path(arguments["folder"]), arguments["skip"])
    stand_ins = StandIns()
    if found.package.partition(".")[0] == arguments["alias"]:
        sys.meta_path.insert(0, Below(found.package, found.root))
        # `import a.b.c` asks for `a.b` first, which may not be a package that can be imported.
    elif str(found.root) not in sys.path:
        sys.path.insert(0, str(found.root))
    sys.meta_path.append(stand_ins)
    log = Log(Path(arguments["log"]))
    seconds = int(arguments["seconds"])
    import_all(found, log, stand_ins, arguments["alias"], seconds)
    lower_all(str(Path(arguments["folder"]).resolve()), log, seconds)
    log.write({"finished": True})
    log.file.close()
    os._exit(0)  # threads of modules do not hold it up


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
