"""The command line: global options, commands, and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand

from adtool import __version__, configuration, dependencies, places, streams, usage
from adtool.commands.plain_values import PlainCommand, PlainGroup
from adtool.commands.targets import ActionCommand, LookCommand, LookKernelCommand, TargetCommand
from adtool.exits import Exit, ToolError, because
from adtool.saying import say

# The commands, in the order of the help: files of `adtool/commands`.
_COMMANDS: dict[str, type[TyperCommand]] = {
    "check": TargetCommand, "baseline": ActionCommand, "capture": LookCommand,
    "reduce": LookCommand, "jacobian": LookCommand, "graph": LookCommand, "trace": LookCommand,
    "report": LookCommand, "show": LookKernelCommand, "explain": PlainCommand,
    "doctor": PlainCommand, "selftest": PlainCommand, "schema": PlainCommand,
}  # fmt: skip


def _app(names: Iterable[str]) -> typer.Typer:
    """The command line with some of the commands, which are imported."""
    # Plain help and plain errors: rich would be imported for them.
    found = typer.Typer(
        name="adtool",
        cls=PlainGroup,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        command: Any = getattr(import_module(f"adtool.commands.{name}"), name)
        found.command(cls=_COMMANDS[name])(command)
    found.callback()(_globals)
    return found


@cache
def _whole() -> typer.Typer:
    return _app(_COMMANDS)


def __getattr__(name: str) -> Any:
    if name == "app":
        return _whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _needed(args: Sequence[str]) -> typer.Typer:
    """The command line with the one command that is called; with all where more is asked for.

    Settings of a project are for all commands, and are held against the options of all.
    """
    named = next((a for a in args if a not in ("--no-color",)), "")
    if named in _COMMANDS and not configuration.is_set(Path(places.folder())):
        return _app([named])
    return _whole()


if TYPE_CHECKING:
    app = _whole()


def _version(wanted: bool) -> None:
    if wanted:
        say(f"adtool {__version__}")
        raise typer.Exit


def _globals(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colour (NO_COLOR does the same).")
    ] = False,
) -> None:
    """A gradient debugger: checks tapes of `engine` and of Warp, and handwritten gradients of
    PyTorch and JAX functions.
    """
    ctx.obj = no_color
    commands: Any = ctx.command
    if ctx.invoked_subcommand not in (
        "doctor",
        "explain",
        "schema",
    ):  # these help where settings are wrong, or the engine cannot be loaded
        if not dependencies.is_there(dependencies.ENGINE):
            raise ToolError(*dependencies.words(dependencies.ENGINE), "environment")
        here = Path(places.folder())
        ctx.default_map = configuration.settings(here, commands.commands)
        ctx.meta["adtool.project"] = configuration.project(here, commands.commands)


def main(args: list[str] | None = None) -> NoReturn:
    """Runs the tool and exits with one of `Exit`."""
    streams.provide()
    for stream in (sys.stdout, sys.stderr):
        # Names of the user's that the terminal cannot show must not end the tool.
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    code = _run(args)
    sys.exit(code if _written() else int(Exit.FAILURE))


def _run(args: list[str] | None) -> int:
    given = sys.argv[1:] if args is None else args
    out = sys.stdout
    try:
        if not given:  # the help, and no success: nothing was checked
            _whole()(args=["--help"], prog_name="adtool", standalone_mode=False)
            return int(Exit.FAILURE)
        code = _needed(given)(args=given, prog_name="adtool", standalone_mode=False)
        # 130 is an interrupt, to newer versions of typer.
        return int(Exit.FAILURE) if code == 130 else int(code or 0)
    except SystemExit as ended:
        # The reader went away (`... | head`): typer puts another stream in place, and ends.
        if sys.stdout is not out:
            return int(Exit.FAILURE)
        return ended.code if isinstance(ended.code, int) else int(Exit.FAILURE)
    except ToolError as error:
        usage.tell(error.kind, error.message, error.help, _json(given))
    except usage.ClickException as error:
        usage.tell("usage", *usage.words(error), _json(given))
    except (KeyboardInterrupt, typer.Abort):
        _say("error: interrupted")
    except OSError as error:
        if _written():
            what = "" if error.filename else "standard output cannot be written: "
            _say(f"error: {what}{because(error)}")
    except Exception as error:
        if name := dependencies.missing(error):
            usage.tell("environment", *dependencies.words(name), _json(given))
            return int(Exit.FAILURE)
        import traceback

        _say(
            *traceback.format_exc().splitlines(), "error: this is a bug in adtool; please report it"
        )
    return int(Exit.FAILURE)


def _json(args: list[str]) -> bool:
    """Whether a command line that came to nothing asks for JSON, itself or by its project."""
    if any(a.partition("=")[0] == "--format" for a in args):
        return usage.wants_json(args)
    commands: Any = typer.main.get_command(_whole())
    with suppress(ToolError, OSError):
        found = configuration.settings(Path(places.folder()), commands.commands)
        return any(found.get(a, {}).get("format") == "json" for a in args)
    return False


def _written() -> bool:
    """Whether all that was printed has left the process. Says why where it has not."""
    failed = streams.flush()
    if failed is not None and not isinstance(failed, BrokenPipeError):
        _say(f"error: standard output cannot be written: {because(failed)}")
    return failed is None


def _say(*lines: str) -> None:
    with suppress(OSError):
        say(*filter(None, lines), file=sys.stderr)
