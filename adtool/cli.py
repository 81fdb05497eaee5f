"""The command line: global flags, commands, and the way every command ends."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.main

from adtool import __version__, configuration, streams, usage
from adtool.commands.baseline import baseline
from adtool.commands.capture import capture
from adtool.commands.check import check
from adtool.commands.doctor import doctor
from adtool.commands.explain import explain
from adtool.commands.graph import graph
from adtool.commands.jacobian import jacobian
from adtool.commands.reduce import reduce
from adtool.commands.report import report
from adtool.commands.schema import schema
from adtool.commands.selftest import selftest
from adtool.commands.show import show
from adtool.commands.targets import ActionCommand, LookCommand, LookKernelCommand, TargetCommand
from adtool.commands.trace import trace
from adtool.exits import Exit, ToolError, because

# Plain help and plain errors: rich would be imported for them.
app = typer.Typer(
    name="adtool",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=TargetCommand)(check)
app.command(cls=ActionCommand)(baseline)
app.command(cls=LookCommand)(capture)
app.command(cls=LookCommand)(reduce)
app.command(cls=LookCommand)(jacobian)
app.command(cls=LookCommand)(graph)
app.command(cls=LookCommand)(trace)
app.command(cls=LookCommand)(report)
app.command(cls=LookKernelCommand)(show)
app.command()(explain)
app.command()(doctor)
app.command()(selftest)
app.command()(schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adtool {__version__}")
        raise typer.Exit


@app.callback()
def _globals(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colour (NO_COLOR does the same).")
    ] = False,
) -> None:
    """A gradient debugger for programs that run on `engine`."""
    ctx.obj = no_color
    commands: Any = ctx.command
    if ctx.invoked_subcommand not in (
        "doctor",
        "explain",
        "schema",
    ):  # these help where settings are wrong
        ctx.default_map = configuration.settings(Path.cwd(), commands.commands)
        ctx.meta["adtool.project"] = configuration.project(Path.cwd(), commands.commands)


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
        code = app(args=given, prog_name="adtool", standalone_mode=False)
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
    except Exception:
        _say(traceback.format_exc().rstrip(), "error: this is a bug in adtool; please report it")
    return int(Exit.FAILURE)


def _json(args: list[str]) -> bool:
    """Whether a command line that came to nothing asks for JSON, itself or by its project."""
    if any(a.partition("=")[0] == "--format" for a in args):
        return usage.wants_json(args)
    commands: Any = typer.main.get_command(app)
    with suppress(ToolError, OSError):
        found = configuration.settings(Path.cwd(), commands.commands)
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
        for line in lines:
            if line:
                print(line, file=sys.stderr)
