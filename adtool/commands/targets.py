"""Splits a command line into the tool's options, targets, and the script's own arguments."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from adtool import places
from adtool.commands.plain_values import PlainCommand
from adtool.exits import ToolError
from adtool.globs import fits, plain
from adtool.permissions import require_inside
from adtool.saying import say
from adtool.scripts import in_folder, is_pattern
from engine.reading import LIMIT

if TYPE_CHECKING:
    from adtool.configuration import Project
    from adtool.job import Target


class TargetCommand(PlainCommand):
    """Options end at the script, or at `-m MODULE`, as those of `python` do.

    All words from there on come as the parameter `words`, as they were written.
    """

    own = 0  # words that the command's own options may follow, too

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses what stands before the target."""
        head, words = self.split(args)
        ctx.meta["adtool.words"] = words
        return list(super().parse_args(ctx, [*head, "--", *words] if words else head))

    def split(self, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words that are options of the tool, with their values, and all others."""
        takes = {
            name: not getattr(p, "is_flag", False) and not getattr(p, "count", False)
            for p in self.params
            if p.param_type_name == "option"
            for name in (*p.opts, *p.secondary_opts)
        }
        head: list[str] = []
        words: list[str] = []
        module = False
        at = 0
        while at < len(args) and len(words) + module <= self.own:
            word = args[at]
            begun = bool(words) or module
            if word == "--":
                return head, [*words, *args[at if begun else at + 1 :]]
            if not word.startswith("-") or word == "-":
                words.append(word)
                at += 1
                if self.own == 0:
                    break
                continue
            is_module = word.startswith("-m") and "-m" in takes
            if begun and (is_module or word.partition("=")[0] not in takes):
                break
            count = 2 if takes.get(word) else 1
            head += args[at : at + count]
            at += count
            if is_module:
                module = True
                if self.own == 0:
                    break
        return head, [*words, *args[at:]]


class ActionCommand(TargetCommand):
    """The same where a word before all others says what to do: `ctx.meta["adtool.action"]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Takes the first word away."""
        if args and not args[0].startswith("-"):
            ctx.meta["adtool.action"], *args = args
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage, with that word."""
        return ["ACTION", *super().collect_usage_pieces(ctx)]


class LookCommand(TargetCommand):
    """The same for commands that look at one thing: their own options may follow the script, too.

    That ends at the first word that is none of them, or at `--`; from there on all is the
    script's.
    """

    own = 1


class LookKernelCommand(LookCommand):
    """The same, where the name of a kernel follows the script."""

    own = 2


def one_target(command: str, words: Sequence[str] | None, module: str | None) -> Target:
    """The one target of a command line. Raises ToolError where it names none, or several."""
    words = list(words or ())
    if module is None and words and _several(words[0]):
        raise ToolError(
            f"`{words[0]}` matches several scripts",
            f"`adtool {command}` takes one script: name it",
        )
    (target,) = targets_of(command, words, module)
    return target


def targets_of(
    command: str,
    words: Sequence[str] | None,
    module: str | None,
    each: bool = False,
    exclude: Sequence[str] = (),
    project: Project | None = None,
) -> tuple[Target, ...]:
    """The targets of a command line.

    The first word is a script, and all that follow are its arguments (`--` before these may
    be written, and is not one of them). All words are targets, and arguments for all of them
    follow after `--`, if the first one is a folder or a pattern, or with each=True; `check` takes
    them so, too, where each is a Python file that is there.

    command: as it is written after `adtool`, with its action. exclude: patterns of what folders
    and patterns do not stand for. project: its scripts are the targets where there are no words.

    Raises:
        ToolError: no target is named; it cannot be told whether words are scripts or arguments;
            a script of the project is not in its folder, links followed.
    """
    from adtool.configuration import NAME, SCRIPTS
    from adtool.job import Target

    words = list(words or ())
    if module is not None:
        if each:
            raise ToolError("--each takes scripts, not -m MODULE", "use only one of them")
        return (Target(None, module, tuple(_after_dashes(words)), command=command),)
    if project is not None and (not project.scripts or (words and words[0] != "--")):
        project = None  # it says nothing of them
    if project is not None:
        scripts = [os.path.relpath(project.folder / s) for s in project.scripts]
        words, each = [*scripts, *words], True
    if not words or words[0] == "--":
        raise ToolError(
            "no script is named on the command line",
            f"name one: adtool {command} SCRIPT [ARGS...], or -m MODULE [ARGS...]",
        )
    cut = words.index("--") if "--" in words else len(words)
    if not each and not _several(words[0]):
        named = cut > 1 and all(w.endswith(".py") for w in words[:cut]) and os.path.isfile(words[0])
        if not named:
            return (_target(command, words[0], tuple(_after_dashes(words[1:]))),)
        for word in words[1:cut]:
            if not os.path.isfile(word):
                raise ToolError(
                    f"`{word}` after `{words[0]}` is not a file",
                    f"correct its name; or put `--` before the arguments of `{words[0]}`",
                )
        if command.partition(" ")[0] not in ("check", "baseline"):
            _refuse_files(words[:cut])
    for word in words[:cut]:
        if word == "-":
            raise ToolError(
                "`-` must be the only script: it is read from standard input",
                f"adtool {command} - [ARGS...] < SCRIPT; check other scripts in another command",
            )
        if word.startswith("-"):
            raise ToolError(
                f"`{word}` is between the scripts",
                (
                    "write options of adtool before the scripts, and arguments for the scripts "
                    "after `--`"
                ),
            )
    found: dict[str, None] = {}
    left = 0
    for word in words[:cut]:
        for script in _scripts(word):
            if script != word and any(fits(script, p, places.folder()) for p in exclude):
                left += 1
            else:
                found[script] = None
    if not found:
        raise ToolError(
            f"no script is left: --exclude matches all {left}",
            "its patterns are " + ", ".join(f"`{p}`" for p in exclude),
        )
    if project is not None:
        for script in found:
            require_inside(script, project.folder, f"{project.folder / NAME}: {SCRIPTS}")
    return tuple(_target(command, s, tuple(words[cut + 1 :])) for s in found)


def _target(command: str, script: str, args: tuple[str, ...]) -> Target:
    """A script, a capture, or `-`. Raises ToolError for arguments of a capture."""
    from adtool.captures.sniff import is_capture
    from adtool.job import STDIN, Target

    if script == "-":
        if command.startswith("baseline "):
            raise ToolError(
                "a baseline needs the name of a script, and `-` has none",
                "save the script in a file, and name the file",
            )
        return Target(STDIN, None, args, text=_standard_input(), command=command)
    capture = is_capture(script)
    if capture and args:
        raise ToolError(
            f"`{script}` is a capture, which takes no arguments: `{args[0]}`",
            "write options of adtool before it",
        )
    return Target(script, None, args, capture, command=command)


def _standard_input() -> str:
    """A script from standard input, to its end: each byte as the character of its number."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise ToolError("standard input is closed", "adtool check - [ARGS...] < SCRIPT")
    if sys.stdin.isatty():
        say("reading a script from the terminal; end it with Ctrl-D", file=sys.stderr)
    data = stream.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise ToolError(
            f"the script on standard input is larger than {LIMIT >> 20} MiB", "use a file"
        )
    return str(data, "latin-1")


def _after_dashes(words: list[str]) -> list[str]:
    return words[1:] if words[:1] == ["--"] else words


def _several(word: str) -> bool:
    return os.path.isdir(word) or (is_pattern(word) and not os.path.exists(word))


def _refuse_files(words: list[str]) -> NoReturn:
    """A shell expands `*.py`: its second script must not go to the first as an argument."""
    more = f" and {len(words) - 2} more" if len(words) > 2 else ""
    raise ToolError(
        f"`{words[1]}`{more} after `{words[0]}` may be scripts or arguments",
        f"name one script; or put `--` before the arguments of `{words[0]}`",
    )


def _scripts(word: str) -> list[str]:
    """The scripts that a word stands for: itself, those in a folder, or what fits a pattern.

    A folder or pattern without a script stands for itself: its report says that there is none.
    """
    found: list[str] = []
    if os.path.isdir(word):
        found = in_folder(word)
    elif _several(word):
        found = sorted(f for f in glob.glob(plain(word), recursive=True) if os.path.isfile(f))
    return found or [word]
