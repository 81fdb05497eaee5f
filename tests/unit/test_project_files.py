"""The project's own tools and documents."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """Imports a script of tools/ by its path."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git_tree(path: Path, lines: dict[str, int]) -> Path:
    """A git repository with files of so many lines."""
    subprocess.run(["git", "init", "-q", str(path)], check=True, capture_output=True)
    for name, count in lines.items():
        (path / name).write_text("x = 1\n" * count)
    return path


@pytest.mark.parametrize(("lines", "code"), [(300, 0), (301, 0), (500, 0), (501, 1)])
def test_file_size_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: int, code: int
) -> None:
    tree = git_tree(tmp_path, {"short.py": 3, "long.py": lines})
    assert load("check_file_sizes").main(tree) == code
    printed = capsys.readouterr().out
    assert ("long.py" in printed) == (lines > 300)
    assert "short.py" not in printed


def test_file_size_check_fails_where_it_finds_nothing(tmp_path: Path) -> None:
    assert load("check_file_sizes").main(git_tree(tmp_path, {})) == 1


@pytest.mark.parametrize(("name", "word"), [("check", "adtool check"), ("test", "pytest")])
def test_readme_has_its_two_commands(name: str, word: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "readme_command.py"), name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert word in done.stdout
    assert len(done.stdout.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_links_of_documents_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert [t for t in targets if "://" not in t and not (ROOT / t).exists()] == []


def test_every_picture_of_the_documents_is_there_and_made_by_the_script() -> None:
    made = {f"pictures/{row[0]}" for row in load("make_pictures").PICTURES}
    shown = {
        name
        for page in (ROOT / "docs").glob("*.md")
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown
    assert shown == made
    assert all((ROOT / "docs" / name).is_file() for name in shown)


FOLDERS = ("engine", "adtool", "tests", "benchmarks", "tools")
NO_MODULES = {"engine.NAME", "engine.py"}  # what stands for any name, and a file of a program


def files_of(*suffixes: str) -> list[Path]:
    return [
        p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*"))
        if p.suffix in suffixes and "__pycache__" not in p.parts
    ]  # fmt: skip


def is_there(name: str) -> bool:
    """Whether a name is a module, a package, or a name in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.exists() or (path.is_dir() and count == len(parts)):
            return count == len(parts) or bool(
                re.search(rf"\b{re.escape(parts[count])}\b", file.read_text(encoding="utf-8"))
            )
    return False


def test_modules_that_sources_name_are_there() -> None:
    """In backticks, also in C++: moved modules leave no old names."""
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in files_of(".py", ".h", ".cpp")
        for name in re.findall(r"`((?:engine|adtool)(?:\.\w+)+)`", path.read_text(encoding="utf-8"))
        if name not in NO_MODULES
    }
    assert len(named) > 100
    assert not [where for where in sorted(named) if not is_there(where[1])]
    assert not is_there("engine.runtime.quick") and not is_there("engine.runtime.launch.nothing_")


def test_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+)(?:\.\w+)?`", text))
    hidden = {".git", ".venv", "__pycache__"}
    files = [
        p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if not hidden & set(p.parts)
    ]  # fmt: skip
    ends = {"/".join(f.rsplit(".", 1)[0].split("/")[-k:]) for f in files for k in range(1, 8)}
    assert len(named) > 100
    assert not sorted(named - ends)
