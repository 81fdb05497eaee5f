"""`tools/run_documents.py`, which `.ci/run` runs: what it reads, runs, compares, and leaves out."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tools.documents.comparison import renewed, same
from tools.documents.markdown import Document
from tools.documents.reader import Reader
from tools.documents.shell import ShellSession
from tools.run_documents import DOCUMENTS, setup, update

# Blocks that a reader would type and that are not run, by document. Each has its reason beside it.
NOT_RUN = {"README.md": 2}
# Documents with commands that are not followed, and why.
NOT_FOLLOWED = {
    "CONTRIBUTING.md": "its commands are the steps of .ci/run",
    "docs/cache.md": "it removes a reader's cache",
    "docs/cli.md": "a reference: commands on programs, packages and revisions of a reader's",
    "docs/formats.md": "a reference: a command on a reader's program",
    "docs/graph.md": "commands on a reader's program, pictures by Graphviz",
    "docs/index.md": "its commands are those of README.md, see below",
}
SETUP = "python3 -m venv .venv && "


@pytest.mark.parametrize("name", DOCUMENTS)
def test_all_blocks_are_run_or_say_why_not(root: Path, name: str) -> None:
    document = Document.read(root, name)
    assert len(document.not_run()) == NOT_RUN.get(name, 0)
    for block in document.blocks():
        if block.is_shell:
            assert block.commands()
    # Each begins with an environment of its own, in the same words.
    assert setup(document).startswith(SETUP)


def test_all_documents_with_commands_are_followed_or_named(root: Path) -> None:
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *root.glob("*/*.md")]
    found = {str(p.relative_to(root)) for p in pages}
    typed = {n for n in found if any(b.is_shell for b in Document.read(root, n).blocks())}
    assert typed == {*DOCUMENTS, *NOT_FOLLOWED}


def test_the_first_page_of_the_site_has_the_commands_of_the_readme(root: Path) -> None:
    readme, index = (
        [b.text for b in Document.read(root, x).blocks() if b.is_shell]
        for x in ("README.md", "docs/index.md")
    )
    assert index == readme[:2]


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a 1\nb", "a 1\nb", True),
        ("a 1", "a 2", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("...\nc", "a\nb\nc", True),
        ("a\n...", "b\na", False),
        ("a", "a\nb", False),
        ("", "a", False),
        ("a\n...\na", "a", False),
        ("done in 1.0 s", "done in 2.5 s", True),
        ("done in 1.0 s", "done in 2.5 m", False),
        ("k x y 4 1e-12 pass", "k x y 4 3e-12 pass", True),
        ("k x y 4 1e-12 pass", "k x z 4 3e-12 pass", False),
        ("k x y 4 0.1 fail", "k x y 4 0.2 fail", False),
        ("1 fail\n2 fail", "2 fail\n1 fail", True),
        ("off by 1e-09", "off by 3e-09", True),
        ("off by 1e-3", "off by 3e-3", False),
        ("4.5 KiB", "4.6 KiB", True),
    ],
)
def test_the_comparison_sees_differences(shown: str, printed: str, equal: bool) -> None:
    assert same(shown, printed) == equal
    assert same(renewed(shown, printed), printed)


def test_durations_alone_renew_nothing() -> None:
    assert renewed("a 1\nin 2.0 s", "a 2\nin 17.3 s\nin 9 ms") == "a 2\nin 2.0 s\nin 9 ms"


def test_a_session_keeps_its_state(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with ShellSession(tmp_path, {"PATH": os.defpath}) as shell:
        assert shell.run("cd in; name=value", 60) == ("", 0)
        assert shell.run('echo "$name"; pwd', 60) == (f"value\n{tmp_path / 'in'}\n", 0)
        assert shell.run("printf a; printf b >&2; (exit 3)", 60) == ("ab", 3)
        assert shell.run("echo $?", 60) == ("3\n", 0)
        assert shell.run("cat  # reads nothing", 60) == ("", 0)
        assert shell.run("false | true", 60) == ("", 0)


def test_a_session_ends_what_does_not_end(tmp_path: Path) -> None:
    with ShellSession(tmp_path, {"PATH": os.defpath}) as shell:
        with pytest.raises(TimeoutError, match="sleep"):
            shell.run("sleep 987 & echo $! > pid; wait", 0.5)
    with ShellSession(tmp_path, {"PATH": os.defpath}) as shell:
        with pytest.raises(RuntimeError, match="exit 4"):
            shell.run("exit 4", 60)
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        assert time.monotonic() < until, "still running"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


PAGE = """# A page

```sh
python3 -c 'import sys; print(sys.prefix)' > prefix
test -z "$(ls -A "$HOME" | grep -v adtool)" || ls "$HOME"
mkdir ../work && cd ../work
```

```python title="say.py"
print("one")
raise SystemExit(5)
```

```console
$ python3 say.py
two
$ echo $?
5
```

```diff title="say.py"
-print("one")
+print("three")
```

<!-- exit code 5 -->
```console
$ python3 say.py
three
```

<!-- not run: it would not end -->
```sh
sleep 1000
```
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one document, `page.md`, and a file that git ignores."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "page.md").write_text(PAGE)
    (folder / ".gitignore").write_text("made\n")
    (folder / "made").write_text("")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.skipif(bool(shutil.which("pytest", path="/usr/bin:/bin")), reason="has pytest")
def test_a_document_is_followed_and_renewed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(checkout, tmp_path / "home")
    document = Document.read(checkout, "page.md")
    steps = reader.follow(document)
    assert [(s.command.text.split()[0], s.code, s.wrong) for s in steps] == [
        ("python3", 0, ""), ("test", 0, ""), ("mkdir", 0, ""),
        ("python3", 5, "another output"), ("echo", 0, ""), ("python3", 5, ""),
    ]  # fmt: skip
    assert "venv" not in (tmp_path / "home" / "adtool" / "prefix").read_text()
    assert not (tmp_path / "home" / "adtool" / "made").exists()
    monkeypatch.setattr("tools.run_documents.ROOT", checkout)
    update(document, steps)
    assert (checkout / "page.md").read_text() == PAGE.replace("\ntwo\n", "\none\n")


def test_a_command_that_fails_ends_a_document(checkout: Path, tmp_path: Path) -> None:
    document = Document("page.md", "```sh\ntrue\nfalse\ntrue\n```\n")
    steps = Reader(checkout, tmp_path / "home").follow(document)
    assert [s.wrong for s in steps] == ["", "exit code 1, the document says 0"]


def test_blocks_of_other_forms_are_errors() -> None:
    for text in ("```sh\ntrue\n", "```console\ntrue\n```\n", "```sh\n$ a\n...\nb\n...\n```\n"):
        with pytest.raises(ValueError):
            [b.commands() for b in Document("page.md", text).blocks()]
