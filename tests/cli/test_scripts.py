"""SCRIPT may be a file, a module or standard input; other things are refused at once."""

from __future__ import annotations

import json
import py_compile
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WRONG = """import sys
import engine as wp
# adtool: --fast
@wp.func
def cube(v: float):
    return v * v * v

@wp.func_grad(cube)
def adj_cube(v: float, adj_ret: float):
    wp.adjoint[v] += 2.0 * v * v * adj_ret

@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

print(sys.argv)
x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(cubes, dim=3, inputs=[x], outputs=[y])
"""
NAMES = (
    "import sys\nprint(sys.argv, repr(sys.path[0]), sorted((k, repr(v)) for k, v in "
    "globals().copy().items() if k.startswith('__') and k != '__builtins__'))\n"
    "print(repr(sys.stdin.read()))\n"
)

# ---- what is no script


def _bytes(*parts: bytes) -> bytes:
    return b"".join(parts).ljust(600, b"\0")


KINDS = {
    "nb.ipynb": (b'{"cells": [], "nbformat": 4}', "is a notebook",
                 "jupyter nbconvert --to script nb.ipynb"),
    "my nb.json": (b'{"cells": [{"cell_type": "code"}]}', "is a notebook", "script 'my nb.json'"),
    "lib.so": (_bytes(b"\x7fELF"), "machine code", "name the Python script"),
    "app.pyz": (_bytes(b"PK\3\4"), "is an archive", "unpack it"),
    "report.json": (b'{"schema": 1, "tool": "adtool 1"}', "is a report of adtool",
                    "adtool report report.json --out page.html"),
    "report": (b'{"schema": 1, "tool": "adtool 1"}', "is a report of adtool",
               "rename it to REPORT.json; `adtool report REPORT.json"),
    "nb.py": (b'{"cells": [{"cell_type": "code", "execution_count": null}]}', "is a notebook",
              "rename it to nb.ipynb, remove its lines with % or !, and convert it to a script: "
              "jupyter nbconvert --to script nb.ipynb"),
    "data.py": (b'{"a": [null, true]}', "is JSON", "name a script"),
    "data.json": (b"[1, 2]", "is JSON", "name a script"),
    "plot.png": (_bytes(b"\x89PNG"), "is a picture", "name a script"),
    "types.pyi": (b"x: int\n", "has the name of a stub, not of a Python script",
                  "rename it to types.py"),
    "fast.pyx": (b"cdef int x\n", "has the name of Cython code, not of a Python script",
                 "rename it to fast.py"),
    "notes.txt": (b"first of all\n", "has a syntax error",
                  "a file name that ends in .txt is not a Python script"),
}  # fmt: skip
# What standard input is refused for, and what the help says: of the content alone.
INPUTS = {
    "notebook": (b'{"cells": [], "metadata": {"a": null}, "nbformat": 4}', "is a notebook",
                 "jupyter nbconvert --to script NOTEBOOK.ipynb"),
    "report": (b'{"schema": 1, "tool": "adtool 1", "device": null}', "is a report of adtool",
               "adtool report REPORT.json --out page.html"),
    "json": (b'[{"a": null}]', "is JSON", "name a script"),
    "library": (_bytes(b"\x7fELF"), "machine code", "name the Python script"),
    "archive": (_bytes(b"PK\3\4"), "is an archive", "unpack it"),
    "picture": (_bytes(b"\x89PNG"), "is a picture", "name a script"),
}  # fmt: skip
COMMANDS = (
    ["check"], ["baseline", "write"], ["capture"], ["jacobian"], ["graph"], ["trace"],
    ["report", "--out", "p.html"], ["show"],
)  # fmt: skip


def refused(done: subprocess.CompletedProcess[str], words: str, help: str) -> None:
    assert done.returncode == 2 and "Traceback" not in done.stderr
    (error,) = [x for x in done.stderr.splitlines() if x.startswith("error: ")]
    assert words in error
    assert help in done.stderr.partition("\nhelp: ")[2]


def piped(adtool: Any, content: bytes) -> subprocess.CompletedProcess[str]:
    """`adtool check -` with these bytes on standard input."""
    done = subprocess.run(
        [*adtool.command, "check", "-"], cwd=adtool.folder, env=adtool.env, input=content,
        capture_output=True, timeout=300,
    )  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.mark.parametrize("name", KINDS)
def test_files_that_are_no_scripts(adtool: Any, name: str) -> None:
    content, words, help = KINDS[name]
    (adtool.folder / name).write_bytes(content)
    refused(adtool("check", name), words, help)


def test_lines_that_only_a_notebook_runs(adtool: Any) -> None:
    adtool.script("get_ipython().run_line_magic('matplotlib', 'inline')\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "help: it was a notebook: remove its lines with % or !" in done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_refuses_a_notebook(adtool: Any, words: list[str]) -> None:
    (adtool.folder / "nb.ipynb").write_bytes(KINDS["nb.ipynb"][0])
    kernel = ["k"] if words == ["show"] else []
    done = adtool(*words, "nb.ipynb", *kernel)
    refused(done, "`nb.ipynb` is a notebook", "jupyter nbconvert --to script nb.ipynb")


def test_compiled_python(adtool: Any) -> None:
    source = adtool.script("x = 1\n", "sub/one.py")
    made = py_compile.compile(str(source))
    name = str(Path(str(made)).relative_to(adtool.folder))
    refused(adtool("check", name), "is compiled Python", "was made from: sub/one.py")
    compiled = Path(str(made)).read_bytes()
    for name in ("plain.dat", "other.py"):  # no help names a file that is not there, or this one
        (adtool.folder / name).write_bytes(compiled)
        done = adtool("check", name)
        refused(done, "is compiled Python", "name the source that it was made from")
        assert ".py" not in done.stderr.partition("\nhelp: ")[2]
    done = piped(adtool, compiled)
    refused(done, "standard input is compiled Python", "name the source")


@pytest.mark.parametrize("kind", INPUTS)
def test_standard_input_that_is_no_script(adtool: Any, kind: str) -> None:
    content, words, help = INPUTS[kind]
    done = piped(adtool, content)
    refused(done, "standard input is ", help)
    assert words in done.stderr


def test_a_capture_on_standard_input(adtool: Any) -> None:
    adtool.script(WRONG)
    assert adtool("capture", "script.py", "--out", "run.adt").returncode == 0
    content = (adtool.folder / "run.adt").read_bytes()
    refused(piped(adtool, content), "standard input is a capture", "RUN.adt")


@pytest.mark.parametrize("text", ["[1, 2]\n", "{'a': 1}\n", '{"a": [1, -2.0]}\n', "{*()}\n"])
def test_displays_are_python(adtool: Any, text: str) -> None:
    """What is JSON, and Python too, runs: from a file, and from standard input."""
    adtool.script(text, "list.py")
    for done in (adtool("check", "list.py"), adtool("check", "-", stdin=text)):
        assert "made no tape" in done.stderr and done.returncode == 2


def test_a_script_of_any_name(adtool: Any) -> None:
    """As for `python`: the name is looked at only where the text is no Python."""
    adtool.script("print('runs')\n", "script.txt")
    adtool.script("print('runs')\n", "script")
    for name in ("script.txt", "script"):
        done = adtool("check", name)
        assert done.stdout == "runs\n" and "made no tape" in done.stderr


def test_folders_without_scripts(adtool: Any) -> None:
    adtool.script("", "empty/notes.txt")
    adtool.script("{}", "books/a.ipynb")
    adtool.script("print('main')", "pack/__main__.py")
    refused(adtool("check", "empty"), "the folder `empty` has no script", "'empty/**/*.py'")
    refused(adtool("check", "books"), "has no script", "nbconvert --to script books/*")
    refused(adtool("check", "pack"), "has no script", "run it with -m pack")


@pytest.mark.parametrize("words", [("none/*.py",), ("empty",), ("--each", "none.py")])
def test_words_without_scripts_give_reports_too(adtool: Any, words: tuple[str, ...]) -> None:
    adtool.script("", "empty/notes.txt")
    files = ("--out", "json=a.json", "--out", "junit=a.xml")
    assert adtool("check", *files, *words).returncode == 2
    report = json.loads((adtool.folder / "a.json").read_text())
    assert report["exit_code"] == 2 and words[-1] in report["error"]["message"]
    assert words[-1] in (adtool.folder / "a.xml").read_text()


def test_a_baseline_without_a_script(adtool: Any) -> None:
    refused(adtool("baseline", "write"), "no script is named", "adtool baseline write SCRIPT")


def test_without_a_compiler_the_script_is_not_at_fault(adtool: Any) -> None:
    adtool.script(WRONG)
    adtool.env["CXX"] = "no-such-compiler"
    done = adtool("check", "script.py")
    assert done.returncode == 2 and "E301" in done.stderr
    assert "cannot compile the kernels of the script, first at script.py:" in done.stderr
    assert "refused" not in done.stderr


# ---- standard input


def test_standard_input_is_as_for_python(adtool: Any) -> None:
    """The same names, arguments and search path, and nothing left to read."""
    python = subprocess.run(
        [sys.executable, "-", "--a", "-"], input=NAMES, capture_output=True, text=True, timeout=60
    )
    done = adtool("check", "-", "--a", "-", stdin=NAMES)
    assert done.stdout == python.stdout and done.stdout.endswith("\n''\n")
    assert "made no tape" in done.stderr and done.returncode == 2


def test_findings_of_standard_input(adtool: Any) -> None:
    done = adtool("check", "-", "--fast", stdin=WRONG)
    assert done.returncode == 1 and done.stdout.startswith("['-', '--fast']\n")
    assert "--> <stdin>:9:1\n" in done.stdout and "9 | def adj_cube(v" in done.stdout
    assert "--fix" not in done.stdout and "went to the script" not in done.stdout
    report = json.loads(adtool("check", "--format", "json", "-", stdin=WRONG).stdout)
    (finding,) = report["findings"]
    assert (report["script"], finding["file"], finding["line"]) == ("<stdin>", "<stdin>", 9)
    silent = WRONG.replace("adj_ret: float):", "adj_ret: float):  # adtool: ignore[G001]")
    assert "passed (1 suppressed)" in adtool("check", "-", stdin=silent).stdout


def test_the_last_run_of_standard_input(adtool: Any) -> None:
    """What was kept of it is looked at afterwards; other commands take it, too."""
    assert adtool("check", "-q", "-", stdin=WRONG).returncode == 1
    assert "`cubes`" in adtool("graph", "--out", "g.dot").stdout
    assert adtool("report", "--out", "p.html").returncode == 0
    assert "9 | def adj_cube" not in (adtool.folder / "p.html").read_text()[:200]
    assert "kernel `cubes`" in adtool("jacobian", "-", stdin=WRONG).stdout
    assert "cube(x[i])" in adtool("show", "-", "cubes", stdin=WRONG).stdout
    assert adtool("capture", "-", stdin=WRONG).returncode == 0
    assert adtool("check", "-q", "stdin.adt").returncode == 1


def test_a_script_on_standard_input_runs_again(adtool: Any) -> None:
    """What only another run tells is told: the loss goes through the host."""
    text = WRONG.replace("2.0 * v", "3.0 * v").replace("wp.Tape():", "wp.Tape() as tape:") + (
        "    z = wp.array(y.numpy() * 2.0, dtype=float, requires_grad=True)\n"
        "    w = wp.zeros(3, dtype=float, requires_grad=True)\n"
        "    wp.launch(cubes, dim=3, inputs=[z], outputs=[w])\n"
        "tape.backward(grads={w: wp.ones(3, dtype=float)})\n"
    )
    adtool.script(text)
    of_file, of_input = (
        json.loads(done.stdout) for done in (
            adtool("check", "--format", "json", "--rerun", "script.py"),
            adtool("check", "--format", "json", "--rerun", "-", stdin=text),
        )
    )  # fmt: skip
    codes = [[(f["code"], f["line"], f["severity"]) for f in r["findings"]]
             for r in (of_file, of_input)]  # fmt: skip
    assert codes[0] == codes[1] and "G004" in [code for code, _, _ in codes[0]]


@pytest.mark.parametrize(
    ("args", "words", "help"),
    [
        (
            ["check", "--each", "-", "a.py"],
            "`-` must be the only script",
            "adtool check - [ARGS...]",
        ),
        (["check", "--each", "-", "-"], "`-` must be the only script", "adtool check - [ARGS...]"),
        (["check", "sub", "-"], "`-` must be the only script", "adtool check - [ARGS...]"),
        (["check", "--fix", "-"], "has no file to change", "save it in a file"),
        (["check", "--diff", "-"], "has no file to change", "save it in a file"),
        (["baseline", "write", "-"], "needs the name of a script", "save the script"),
    ],
)
def test_what_standard_input_cannot(adtool: Any, args: list[str], words: str, help: str) -> None:
    adtool.script("", "sub/a.py")
    refused(adtool(*args, stdin=WRONG), words, help)


def test_standard_input_that_is_no_python(adtool: Any) -> None:
    done = adtool("check", "-", stdin="x = 1\nimport x y\n")
    assert done.returncode == 2 and "--> <stdin>:2:10\n" in done.stderr
    assert "2 | import x y" in done.stderr


# ---- modules


def package(adtool: Any) -> None:
    adtool.script("", "pack/__init__.py")
    adtool.script("", "pack/sub/__init__.py")
    adtool.script("SIZE = 3\n", "pack/sizes.py")
    text = "from ..sizes import SIZE\nfrom . import helper\nprint(SIZE, __name__, __package__)\n"
    adtool.script(text + WRONG, "pack/sub/train.py")
    adtool.script("", "pack/sub/helper.py")
    adtool.script("from .sizes import SIZE\n" + WRONG, "pack/__main__.py")


@pytest.mark.parametrize("module", ["pack", "pack.sub.train"])
@pytest.mark.parametrize(
    "words", [w for w in COMMANDS if w[0] != "baseline"], ids=lambda words: words[0]
)
def test_modules_with_relative_imports(adtool: Any, words: list[str], module: str) -> None:
    package(adtool)
    kernel = ["cubes"] if words == ["show"] else []
    done = adtool(*words, "-m", module, *kernel, "--steps", "3")
    assert done.returncode == (1 if words[0] in ("check", "report") else 0), done.stderr
    assert "'--steps', '3']" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "words", "help"),
    [
        ("nosuch", "no module named `nosuch`", "in the current folder"),
        ("pack.nosuch", "no module named `pack.nosuch`", "in the current folder"),
        ("pack/sizes.py", "no module named `pack/sizes.py`", "without .py: -m pack.sizes"),
        ("./pack/sizes.py", "no module named `./pack/sizes.py`", "without .py: -m pack.sizes"),
        ("pack/sizes", "no module named `pack/sizes`", "the name of a module: -m pack.sizes"),
        ("../x/rel.py", "no module named `../x/rel.py`", "without -m adtool takes a file"),
        ("pack.sizes.py", "no module named `pack.sizes.py`", "-m pack.sizes"),
        ("pack.sub", "is a package without a `__main__`", "-m pack.sub.module"),
    ],
)
def test_modules_that_are_not_there(adtool: Any, module: str, words: str, help: str) -> None:
    package(adtool)
    python = subprocess.run(
        [sys.executable, "-m", module], cwd=adtool.folder, capture_output=True, timeout=60
    )
    assert python.returncode == 1
    refused(adtool("check", "-m", module), words, help)


@pytest.mark.parametrize("folder", [".", "pack", "pack/sub", "elsewhere"])
@pytest.mark.parametrize(
    ("words", "kernel"), [(["check"], []), (["trace"], []), (["show"], ["cubes"])]
)
def test_the_help_of_a_relative_import_works(
    adtool: Any, words: list[str], kernel: list[str], folder: str
) -> None:
    """The line of the help, run where the user is, does what was wanted."""
    package(adtool)
    there = adtool.folder / folder
    there.mkdir(exist_ok=True)
    script = Path("../" * (len(Path(folder).parts))) / "pack/sub/train.py"
    process = adtool.start(*words, str(script), *kernel, "--n", "a b", cwd=there)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2 and "attempted relative import" in err
    (line,) = re.findall(r"^help: the script is a module of a package: run (.*)$",
                         err, re.MULTILINE)  # fmt: skip
    assert f"-m pack.sub.train {' '.join([*kernel, '--n'])} 'a b'" in line
    assert ("cd " in line) == (folder != ".")
    run = shlex.join(adtool.command)
    done = subprocess.run(
        ["bash", "-c", line.replace("adtool ", f"{run} ", 1)], cwd=there, env=adtool.env,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == (1 if words == ["check"] else 0), done.stderr
    assert "3 __main__ pack.sub" in done.stdout + done.stderr


def test_a_relative_import_of_a_module_in_its_own_folder(adtool: Any) -> None:
    """`-m train` within the package has the same cure as the script."""
    package(adtool)
    there = adtool.folder / "pack" / "sub"
    process = adtool.start("check", "-m", "train", "--n", "1", cwd=there)
    _, err = process.communicate(timeout=300)
    said = " ".join(err.split())
    assert process.returncode == 2 and "attempted relative import" in said
    assert "run cd ../.. && adtool check -m pack.sub.train --n 1" in said


def test_a_package_that_is_not_installed(adtool: Any) -> None:
    adtool.script("import nothing_of_that_name.part\n")
    said = " ".join(adtool("check", "script.py").stderr.split())
    assert "which has no module `nothing_of_that_name`: install it there" in said
    adtool.script("import json.no_such_part\n")
    said = adtool("check", "script.py").stderr
    assert "install" not in said and "plain `python`" in said
    adtool.script("raise ModuleNotFoundError('m', name='adtool')\n")
    assert "install" not in adtool("check", "script.py").stderr


def test_the_source_of_exec_is_not_available(adtool: Any) -> None:
    """Plain Python and adtool say the same of a kernel that exec defines."""
    script = adtool.script(
        "import engine as wp\n"
        "exec('@wp.kernel\\ndef f(y: wp.array(dtype=float)):\\n    y[0] = 1.0')\n"
        "wp.launch(f, 1, outputs=[wp.zeros(1, dtype=float)])\n"
    )
    told = "error[E111]: the source text of `f` is not available"
    assert told in adtool("check", "script.py").stderr
    plain = subprocess.run(
        [sys.executable, str(script)], cwd=adtool.folder, env=adtool.env, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    assert told in plain.stderr


def test_relative_imports_of_others(adtool: Any) -> None:
    """Where another file cannot be imported so, -m of the script is no cure."""
    adtool.script("from . import x\n", "other.py")
    adtool.script("import other\n")
    done = adtool("check", "script.py")
    assert "attempted relative import" in done.stderr and "-m " not in done.stderr
