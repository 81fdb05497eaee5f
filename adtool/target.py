"""Runs a script or module as `__main__` in this process, as plain `python` would."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import io
import os
import sys
import threading
import tokenize
import types
from typing import Any

from adtool import overlay
from adtool.job import STDIN, Target
from adtool.scripts import no_python_hint
from engine.reading import read

# As they are before the target: it may put others in their place.
_threads, _this_thread = threading.enumerate, threading.current_thread


class TargetError(Exception):
    """The target cannot be started. `cause` is its syntax error, where it has one."""

    def __init__(self, message: str, help: str = "", cause: SyntaxError | None = None) -> None:
        self.message = message
        self.help = help
        self.cause = cause
        super().__init__(message)


def run_target(target: Target) -> None:
    """Runs the target to its end; its module stays alive in `sys.modules`.

    Raises:
        TargetError: it cannot be found, read or compiled.
        BaseException: whatever the target raises.
    """
    if target.text is not None:
        code, values = _load_text(target.text.encode("latin-1"))
        sys.argv = ["-", *target.args]
    elif target.script is not None:
        code, values = _load_script(target.script)
        sys.argv = [target.script, *target.args]
    else:
        # As `python -m`: the search path is set before the parent packages are imported.
        sys.argv = ["-m", *target.args]
    if (first := first_folder(target)) is not None:
        sys.path.insert(0, first if target.text is None else "")
    if target.script is None:
        code, values = _load_module(str(target.module))
        sys.argv[0] = values["__file__"]
    module = types.ModuleType("__main__")
    module.__dict__.update(values, __builtins__=builtins)
    if sys.version_info < (3, 14):  # from then on annotations are made when they are asked for
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    exec(code, module.__dict__)
    join_threads()


def first_folder(target: Target) -> str | None:
    """The folder that Python looks for the target's modules in first."""
    if getattr(sys.flags, "safe_path", False):
        return None
    if target.script is not None and target.text is None:
        return os.path.dirname(os.path.realpath(target.script))
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def join_threads() -> None:
    """Waits for the target's threads, as the interpreter does at its end.

    Idle workers of thread pools are left alone: they end only when the interpreter does.
    """
    pool = sys.modules.get("concurrent.futures.thread")
    worker = getattr(pool, "_worker", None)
    for thread in _threads():
        if thread is _this_thread() or thread.daemon:
            continue
        if worker is None or getattr(thread, "_target", None) is not worker:
            thread.join()


def _load_script(script: str) -> tuple[types.CodeType, dict[str, Any]]:
    path = os.path.abspath(script)
    text = _text(path, script)
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    values = {"__file__": path, "__loader__": loader, "__package__": None, "__cached__": None}
    return _compile(text, path, script), values


def _load_text(text: bytes) -> tuple[types.CodeType, dict[str, Any]]:
    """A script from standard input. Its lines are known to tracebacks, and to kernels."""
    overlay.enter(STDIN, text)
    loader = importlib.machinery.BuiltinImporter
    values = {"__file__": STDIN, "__loader__": loader, "__package__": None, "__cached__": None}
    return _compile(text, STDIN, STDIN), values


def _load_module(name: str) -> tuple[types.CodeType, dict[str, Any]]:
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        try:
            spec = _find(f"{name}.__main__")
        except TargetError:
            raise TargetError(
                f"`{name}` is a package without a `__main__` module",
                f"name one of its modules, like `adtool check -m {name}.module`",
            ) from None
    get_source = getattr(spec.loader, "get_source", None)
    path = spec.origin
    if get_source is None or path is None or not spec.has_location:
        raise TargetError(f"module `{name}` has no Python source")
    code = _compile(_text(path, name), path, name)
    return code, {
        "__file__": path,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__cached__": spec.cached,
        "__spec__": spec,
    }


def _text(path: str, name: str) -> bytes:
    try:
        return overlay.content(path) or read(path)
    except OSError as error:
        raise TargetError(f"cannot read `{name}`: {error.strerror}") from None


def _find(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = None if name.startswith(".") else importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # Only where the name itself is missing: an import inside a parent package that
        # fails is that package's fault and keeps its traceback.
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        spec = None
    except (ValueError, TypeError):
        spec = None
    if spec is None:
        where = "adtool searches modules like `python -m`: in the current folder, then in sys.path"
        raise TargetError(f"no module named `{name}`", _as_name(name) or where)
    return spec


def _as_name(path: str) -> str:
    """What to do about a path, or a name with .py, in place of a module's name; empty for none."""
    parts = os.path.normpath(path.removesuffix(".py")).split(os.sep)
    if not path.endswith(".py") and os.sep not in path:
        return ""
    if os.path.isabs(path) or os.pardir in parts:
        return "-m takes the name of a module, like package.module; without -m adtool takes a file"
    without = " without .py" * path.endswith(".py")
    return f"write the name of a module{without}: -m {'.'.join(parts)}"


def _compile(text: bytes, path: str, name: str) -> types.CodeType:
    try:
        _require_encoding(text, path)
        code = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        # Of null bytes Pythons before 3.11.4 say ValueError.
        cause = error if isinstance(error, SyntaxError) else SyntaxError(str(error))
        if cause.filename is None:
            cause.filename = path
        help = no_python_hint(name)
        raise TargetError(f"`{name}` has a syntax error", help, cause) from None
    assert isinstance(code, types.CodeType)
    return code


def _require_encoding(text: bytes, path: str) -> None:
    """Raises SyntaxError, as `python` does and `compile` does not, where a comment is not UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
    except SyntaxError:
        encoding = "utf-8"  # or one that is not known, which `compile` says
    try:
        text.decode(encoding)
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        words = f"it is not {encoding.upper()}: the byte 0x{text[error.start]:02x}"
        if encoding.startswith("utf-8"):
            words = f"it is not UTF-8 (byte 0x{text[error.start]:02x}) and declares no encoding"
        raise SyntaxError(words, (path, line, column, None)) from None
