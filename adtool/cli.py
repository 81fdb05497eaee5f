"""The command line: global flags, commands, and the way every command ends."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer

from adtool import __version__
from adtool.commands.check import CheckCommand, check
from adtool.commands.explain import explain
from adtool.exits import Exit, ToolError

# Plain help and plain errors: rich would be imported for them.
app = typer.Typer(
    name="adtool",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=CheckCommand)(check)
app.command()(explain)


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


def main(args: list[str] | None = None) -> NoReturn:
    """Runs the tool and exits with one of `Exit`."""
    for stream in (sys.stdout, sys.stderr):
        # Names of the user's that the terminal cannot show must not end the tool.
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    sys.exit(_run(args))


def _run(args: list[str] | None) -> int:
    try:
        app(args=args, prog_name="adtool")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(Exit.FAILURE)
    except ToolError as error:
        _say(f"error: {error.message}", f"help: {error.help}" if error.help else "")
    except BrokenPipeError:
        # The reader went away (`adtool check ... | head`): nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _say("error: interrupted")
    except Exception:
        _say(traceback.format_exc().rstrip(), "error: this is a bug in adtool; please report it")
    return int(Exit.FAILURE)


def _say(*lines: str) -> None:
    for line in lines:
        if line:
            print(line, file=sys.stderr)
