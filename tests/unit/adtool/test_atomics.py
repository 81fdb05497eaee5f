"""The atomic update that a line of a kernel means."""

from __future__ import annotations

from pathlib import Path

import pytest

from adtool.atomics import atomic_updates

MEANT = [
    ("g[k] = g[k] + v", "wp.atomic_add(g, k, v)"),
    ("g[k] = v * 2.0 + g[k]", "wp.atomic_add(g, k, v * 2.0)"),
    ("g[k] = g[k] - v", "wp.atomic_sub(g, k, v)"),
    ("g[i, k + 1] = g[i, k + 1] + h[i, k]", "wp.atomic_add(g, i, k + 1, h[i, k])"),
    ("s.g[k] = s.g[k] + v", "wp.atomic_add(s.g, k, v)"),
    ("g[k] = wp.min(v, g[k])", "wp.atomic_min(g, k, v)"),
    ("g[k] = max(g[k], v)", "wp.atomic_max(g, k, v)"),
    ("old = g[k]\n    g[k] = old + v", "wp.atomic_add(g, k, v)"),
    ("if v > g[k]:\n        g[k] = v", "wp.atomic_max(g, k, v)"),
    ("if g[k] >= v:\n        g[k] = v", "wp.atomic_min(g, k, v)"),
]
OTHER = [
    "max = smooth\n    g[k] = max(g[k], v)",
    "g[k] = np.maximum(g[k], v)",
    "g[k] = np.max(g[k], v)",
    "g[k] = fast.math.min(g[k], v)",
    "g[k] = v - g[k]",
    "g[k] = g[k] * v",
    "g[k] = g[k] + g[k] * v",
    "g[k] = g[k + 1] + v",
    "g[k] = g[k] + v * g[k - 1]",
    "s.g[k] = s.g[k] + v * s.g[0]",
    "g[k] = wp.min(g[k], g[k + 1])",
    "g[k][0] = g[k][0] + g[k + 1][0]",
    "g[k] = v",
    "old = g[k]\n    old = v\n    g[k] = old + 1.0",
    "if v > g[k]:\n        g[k] = w",
    "g[k] += v",
    "g[k] = g[k] + " + " + ".join(f"a_long_name_{i}" for i in range(9)),
    "g[k][0] = g[k][1] + v",
    "g[k][0] = wp.max(g[k][0], v)",
    "g[k].x = v - g[k].x",
    "g.x = g.x + v",
]
PARTS = [
    ("g[k][0] = g[k][0] + v", "wp.vec2", "wp.atomic_add(g, k, wp.vec2(v, 0.0))"),
    ("g[k].z = g[k].z - v", "wp.vec3", "wp.atomic_sub(g, k, wp.vec3(0.0, 0.0, v))"),
    ("g[k][v] = g[k][v] + 1.0", "wp.vec3", "g[k][v] += 1.0"),
    ("g[k][0, 1] = v + g[k][0, 1]", "wp.mat22", "g[k][0, 1] += v"),
    ("g[k].mass = g[k].mass + v", "Body", "g[k].mass += v"),
    ("g[k, 1][0] = g[k, 1][0] + v", "wp.vec2", "g[k, 1][0] += v"),
    ("s.g[k][1] = s.g[k][1] + v", "wp.vec2", "wp.atomic_add(s.g, k, wp.vec2(0.0, v))"),
]


def asked(folder: Path, body: str, head: str = "import engine as wp") -> tuple[str, ...]:
    """What the last line of a kernel means."""
    path = folder / f"kernel_{len(list(folder.iterdir()))}.py"
    path.write_text(f"{head}\n\ndef kernel(g, k, v):\n    {body}\n")
    return atomic_updates(str(path), [len(path.read_text().splitlines())])


@pytest.mark.parametrize(("body", "update"), MEANT)
def test_updates_that_a_statement_means(body: str, update: str, tmp_path: Path) -> None:
    assert asked(tmp_path, body) == (update,)


@pytest.mark.parametrize(("body", "dtype", "update"), PARTS)
def test_updates_of_a_part_of_an_element(
    body: str, dtype: str, update: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        f"import engine as wp\n\nclass S:\n    g: wp.array(dtype={dtype})\n\n"
        f"def kernel(g: wp.array(dtype={dtype}), s: S, k: int, v: float):\n    {body}\n"
    )
    assert atomic_updates(str(path), [7]) == (update,)
    other = path.with_name("flat.py")
    other.write_text(path.read_text().replace("wp.array(", "wp.array2d("))
    if "[k, 1]" not in body:  # then it is an element of a view
        assert not atomic_updates(str(other), [7])[0].startswith("wp.atomic")


@pytest.mark.parametrize("body", OTHER)
def test_other_statements_mean_none(body: str, tmp_path: Path) -> None:
    assert asked(tmp_path, body) == ()


def test_all_lines_where_threads_meet_have_to_be_updates(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        "import engine as wp\n\ndef kernel(g, i, j, v):\n"
        "    g[i] = g[i] + v\n    g[j] = g[j] - v\n    h = g[i + 1]\n"
        "    old = g[i]\n    g[i] = old + h\n"
    )
    both = ("wp.atomic_add(g, i, v)", "wp.atomic_sub(g, j, v)")
    assert atomic_updates(str(path), [4, 5]) == both
    assert atomic_updates(str(path), [4, 6]) == ()
    assert atomic_updates(str(path), [7, 8]) == ("wp.atomic_add(g, i, h)",)


def test_the_engine_has_the_name_that_the_file_gives_it(tmp_path: Path) -> None:
    line = "g[k] = g[k] + v"
    assert asked(tmp_path, line, "import engine") == ("engine.atomic_add(g, k, v)",)
    assert asked(tmp_path, line, "import engine as e") == ("e.atomic_add(g, k, v)",)


def test_files_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    assert atomic_updates(str(tmp_path / "no.py"), [1]) == ()
    (tmp_path / "bad.py").write_text("g[k] = = 1\n")
    assert atomic_updates(str(tmp_path / "bad.py"), [1]) == ()


@pytest.mark.parametrize(
    ("head", "meant"),
    [
        ("import engine as wp", True),
        ("import engine as wp\nfrom engine import max", True),
        ("import engine as wp\n@wp.func\ndef max(a: float, b: float):\n    return a + b", False),
        ("import engine as wp\nfrom smooth import soft_max as max", False),
        ("import engine as wp\nfrom engine import min as max", False),
        ("import engine as wp\nfrom smooth import *", False),
        ("import engine as wp\nmax = wp.func(soft)", False),
    ],
)
def test_a_maximum_of_the_file_is_none_of_the_engine(
    tmp_path: Path, head: str, meant: bool
) -> None:
    file = tmp_path / "k.py"
    text = f"{head}\ndef k(g, v):\n    g[0] = max(g[0], v)\n"
    file.write_text(text)
    line = text.count("\n")
    assert atomic_updates(str(file), [line]) == (("wp.atomic_max(g, 0, v)",) if meant else ())
