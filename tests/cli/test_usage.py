"""The command line itself: help, version, bad usage, explain."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from adtool import __version__
from engine.diagnostics import CODES


def test_version(adtool: Any) -> None:
    done = adtool("--version")
    assert (done.returncode, done.stdout) == (0, f"adtool {__version__}\n")


def test_help_is_light(adtool: Any) -> None:
    script = (
        "import sys\nfrom adtool.cli import main\n"
        "try:\n    main({})\nexcept SystemExit:\n    pass\n"
        "heavy = ('numpy', 'rich', 'engine.types', 'matplotlib', 'graphviz', 'torch', 'jax',"
        " 'cupy')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)\n"
    )
    for args in (["--help"], ["check", "--help"], ["explain"], ["--version"]):
        code = "import sys; sys.path[0] = sys.argv.pop(1)\n" + script.format(args)
        root = adtool.command[-1].split("'")[1]
        done = subprocess.run(
            [sys.executable, "-c", code, root], capture_output=True, text=True, timeout=60
        )
        assert done.stderr.strip() == "[]", args


def test_help_names_every_option(adtool: Any) -> None:
    text = adtool("check", "--help").stdout
    for option in (
        "-m", "--eps", "--atol", "--rtol", "--kernel", "--skip-kernel", "--max-inputs",
        "--max-outputs", "--device", "--seed", "--timeout", "--format", "--gate", "--verbose",
        "--no-color", "--memory", "--each", "--tape", "--launch", "--no-end-to-end", "--order",
        "--select", "--ignore", "--exit-zero", "--out", "--quiet", "--durations",
    ):  # fmt: skip
        assert re.search(rf"[ /]{option}[ \n]", text), option


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["check"], "no script is named on the command line"),
        (["trace", "script.py", "script.py"], "may be scripts or arguments"),
        (["check", "--", "--"], "no script is named on the command line"),
        (["check", "missing.py"], "the script `missing.py` does not exist"),
        (["check", "missing.py"], "help: the current folder is "),
        (["check", "--each", "missing.py", "script.py"], "help: the current folder is "),
        (["jacobian", "--kernel", "k", "."], "`.` matches several scripts"),
        (["check", "--eps", "0", "script.py"], "--eps"),
        (["check", "--eps", "nan", "script.py"], "--eps"),
        (["check", "--atol", "-1", "script.py"], "--atol"),
        (["check", "--rtol", "x", "script.py"], "--rtol"),
        (["check", "--timeout", "-3", "script.py"], "--timeout"),
        (["check", "--format", "xml", "script.py"], "--format"),
        (["check", "--gate", "fatal", "script.py"], "--gate"),
        (["check", "--seed", "-1", "script.py"], "--seed"),
        (["check", "--bogus", "script.py"], "--bogus"),
        (["check", "--device", "abacus", "script.py"], "abacus"),
        (["check", "-m", "no.such.module"], "no module named `no.such.module`"),
        (["check", "-m", "email"], "without a `__main__`"),
        (["check", "-m", "sys"], "no Python source"),
        (["chekc", "script.py"], "chekc"),
        (["explain", "G999"], "G999"),
    ],
)
def test_bad_usage(adtool: Any, args: list[str], words: str) -> None:
    adtool.script("")
    done = adtool(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "kind", "words"),
    [
        (["check", "--format", "json", "--bogus"], "usage", "No such option: --bogus"),
        (["check", "--format=json", "--eps", "x", "a.py"], "usage", "--eps"),
        (["jacobian", "--format", "json", "--launch", "x", "a.py"], "usage", "--launch"),
        (["check", "--format", "json"], "target", "no script is named on the command line"),
        (["check", "--format", "json", "--select", "X", "a.py"], "target", "'X'"),
    ],
)
def test_wrong_usage_as_json(adtool: Any, args: list[str], kind: str, words: str) -> None:
    done = adtool(*args)
    data = json.loads(done.stdout)
    assert (done.returncode, data["exit_code"], data["ok"]) == (2, 2, False)
    assert data["error"]["kind"] == kind and words in data["error"]["message"]
    assert data["script"] is None and data["findings"] == []


def test_the_words_of_wrong_usage(adtool: Any) -> None:
    done = adtool("check", "--format", "xml", "a.py")
    assert done.stderr == (
        "error: Invalid value for '--format': 'xml' is not one of "
        "'text', 'json', 'junit', 'sarif', 'github', 'markdown'\n"
        "help: `adtool check --help` lists the options\n"
    )


@pytest.mark.parametrize(
    ("args", "message", "help"),
    [
        (["check", "--rtol", "x", "a.py"], "'--rtol': 'x' is not a number\n", ""),
        (["trace", "--top", "1.5", "a.py"], "'--top': '1.5' is not a whole number\n", ""),
        (["check", "--durations", "-1", "a.py"], "-1 must be greater than or equal to 0\n", ""),
        (["a b.py"], "`a b.py` is not a command\n", "to check it: adtool check 'a b.py'\n"),
        (["here"], "`here` is not a command\n", "to check it: adtool check here\n"),
        (["chekc"], "No such command 'chekc'", "`adtool --help` lists the commands\n"),
        (["check", "--steps", "2", "a.py"], "No such option: --steps",
         "write an option of the script after the script: adtool check SCRIPT --steps\n"),
        (["trace", "--steps=2", "a.py"], "No such option: --steps", "adtool trace SCRIPT --steps"),
        (["doctor", "--steps"], "No such option: --steps", "`adtool doctor --help` lists the opti"),
    ],
)  # fmt: skip
def test_words_say_what_to_write(adtool: Any, args: list[str], message: str, help: str) -> None:
    (adtool.folder / "here").mkdir()
    done = adtool(*args)
    assert done.returncode == 2
    assert message in done.stderr and help in done.stderr
    assert ("SCRIPT" in done.stderr) == ("SCRIPT" in help)


def test_the_jobs_of_a_jacobian_are_for_captures(adtool: Any) -> None:
    said = " ".join(adtool("jacobian", "--help").stdout.split())
    assert "-j, --jobs N Only for a capture: the number of processes" in said
    assert "scripts to run at once" not in said


def test_a_missing_script_is_reported_as_json_too(adtool: Any) -> None:
    report = adtool.report("missing.py")
    assert report["exit_code"] == 2
    assert "missing.py" in report["error"]["message"]


def test_explain(adtool: Any) -> None:
    listed = adtool("explain")
    assert listed.returncode == 0
    lines = [line.split() for line in listed.stdout.splitlines() if line.startswith("  ")]
    findings = [words for words in lines if words[0].startswith("G")]
    errors = [words for words in lines if words[0].startswith("E")]
    assert len(findings) + len(errors) == len(lines) and len(errors) == len(CODES)
    assert "if the program moves the array by it" in listed.stdout
    for code, name, *_ in findings[::5]:
        by_code, by_name = adtool("explain", code.lower()), adtool("explain", name)
        assert by_code.returncode == 0
        assert by_code.stdout == by_name.stdout
        assert by_code.stdout.startswith(f"{code} {name} (")
    for code, *words in errors[::15]:
        done = adtool("explain", code.lower())
        assert (done.returncode, words) == (0, CODES[code].split())
        assert done.stdout.startswith(f"{code} {CODES[code]} (error of the engine)\n")
        for part in ("What it is", "Example", "What to do"):
            assert f"\n{part}\n" in done.stdout


def test_a_code_that_is_none(adtool: Any) -> None:
    assert "did you mean E402? `adtool explain` lists all codes" in adtool("explain", "E4O2").stderr
    for word in ("wrong-gradint", "wrong", "WRONG_GRADIENT"):
        assert "did you mean wrong-gradient?" in adtool("explain", word).stderr
    for word in ("g1", "G0001"):
        assert "did you mean G001?" in adtool("explain", word).stderr
    for word in ("G999", "gradient", "X1", "G" + "9" * 6000, "seldom"):  # near nothing, or several
        done = adtool("explain", word)
        assert done.returncode == 2 and "did you mean" not in done.stderr
        assert "`adtool explain` lists all codes" in done.stderr


def test_a_code_between_others_that_is_not_used(adtool: Any) -> None:
    listed = adtool("explain").stdout
    between = [f"G{k:03}" for k in range(1, 18) if f"G{k:03}" not in listed]
    assert between
    for code in between:
        done = adtool("explain", code.lower())
        assert done.returncode == 2
        assert f"no finding has the code {code}: it is not used" in done.stderr


@pytest.mark.parametrize("words", ["G001 G002", "G001,G002"])
def test_several_codes(adtool: Any, words: str) -> None:
    done = adtool("explain", words)
    assert done.returncode == 2 and "name one code at a time" in done.stderr


def test_nothing_is_named(adtool: Any) -> None:
    """The help, as it is asked for, and no success: nothing was checked."""
    done, asked = adtool(), adtool("--help")
    assert (done.returncode, done.stderr) == (2, "")
    assert (asked.returncode, asked.stdout) == (0, done.stdout)
    assert done.stdout.startswith("Usage: adtool ")


@pytest.mark.parametrize("width", [60, 80])
def test_help_on_a_narrow_terminal(adtool: Any, width: int) -> None:
    adtool.env["COLUMNS"] = str(width)
    done = adtool("check", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "…" not in done.stdout and max(map(len, done.stdout.splitlines())) <= width
    assert "  --format text|json|junit|sarif|github|markdown\n" in done.stdout
    assert done.stdout.index("\nExamples:\n") < done.stdout.index("\nHow the script runs:\n")
