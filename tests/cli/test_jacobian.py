"""adtool jacobian: plots, summaries, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.sweeps import reduced

KERNELS = """
import numpy as np
import engine as wp

@wp.func
def cube(v: float):
    return v * v * v

@wp.func_grad(cube)
def adj_cube(v: float, adj_ret: float):
    wp.adjoint[v] += 3.0 * v * v * adj_ret * 1.01

@wp.kernel
def scale(x: wp.array(dtype=float), w: wp.array(dtype=wp.vec2), y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = w[i] * x[i] * float(i)

@wp.kernel
def wrong(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

@wp.kernel
def root(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])

print("hello")
n = 4
x = wp.array(np.arange(n) + 1.0, dtype=float, requires_grad=True)
w = wp.array(np.ones((n, 2)), dtype=wp.vec2, requires_grad=True)
y = wp.zeros(n, dtype=wp.vec2, requires_grad=True)
z = wp.zeros(n, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(scale, dim=n, inputs=[x, w], outputs=[y])
    wp.launch(wrong, dim=n, inputs=[x], outputs=[z])
x.fill_(0.0)
with wp.Tape() as tape:
    wp.launch(root, dim=n, inputs=[x], outputs=[z])
    wp.launch(scale, dim=2, inputs=[x, w], outputs=[y])
"""

HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", HEADS)
def test_plots_and_summary(adtool, kind) -> None:
    adtool.script(KERNELS)
    plot = adtool.folder / f"out.{kind}"
    done = adtool("jacobian", "--kernel", "scale", "--out", plot.name, "script.py")
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(HEADS[kind]) and plot.stat().st_size > 2000
    out = done.stdout
    assert "hello" in out and "launch 0:0, one of 2 of `scale`" in out
    assert "8 x 4" in out and "8 x 8" in out
    assert "\nlargest entries for each input and output\n" in out
    # d y / d x: w[i] i, of which the first pair is zero; d y / d w: x[i] i.
    assert "d y[1, 0] / d x[1] = 1\n" in out and "d y[3, 0] / d w[3, 0] = 12\n" in out
    assert "called at script.py:35\n" in out
    assert not any(line.endswith(" ") for line in out.splitlines())
    assert f"plot written to {plot.name}" in out


def test_json(adtool) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", "--kernel", "scale", "--format", "json", "script.py")
    assert done.returncode == 0 and "hello" in done.stderr
    data = json.loads(done.stdout)
    assert (data["schema"], data["ok"], data["exit_code"], data["plot"]) == (1, True, 0, "")
    report = data["jacobian"]
    assert (report["tape"], report["launch"], report["launches"]) == (0, 0, 2)
    first, second = report["matrices"]
    assert first["shape"] == [8, 4] and first["nonzeros"] == 6 and first["rank"] == 3
    assert second["shape"] == [8, 8] and second["rank"] == 6
    # Singular values are x[i] i, each twice: from 2 to 12.
    assert second["condition"] == pytest.approx(6.0)
    assert second["largest"][0] == [6, 6, 12.0] and second["names"][0] == ["y[3, 0]", "w[3, 0]"]


def test_choice_of_arguments_and_launch(adtool) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", "--kernel", "scale", "--input", "w", "--output", "y",
                  "--launch", "1:1", "--format", "json", "script.py")  # fmt: skip
    report = json.loads(done.stdout)["jacobian"]
    assert [m["input"] for m in report["matrices"]] == ["w"]
    assert (report["tape"], report["launch"], report["dim"]) == (1, 1, [2])
    assert report["matrices"][0]["nonzeros"] == 0 and report["matrices"][0]["rank"] == 0


def test_kernels_are_chosen_by_pattern(adtool) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", "--kernel", "w*", "--format", "json", "script.py")
    report = json.loads(done.stdout)["jacobian"]
    assert (report["kernel"], report["pattern"], report["launches"]) == ("wrong", "w*", 1)
    done = adtool("jacobian", "--kernel", "*", "script.py")
    assert done.returncode == 0 and "launch 0:0, one of 4 of `*`" in done.stdout
    done = adtool("jacobian", "--kernel", "*", "--launch", "1:0", "script.py")
    assert "kernel `root`" in done.stdout


def test_errors_find_a_wrong_gradient(adtool) -> None:
    adtool.script(KERNELS)
    for kind in ("relative", "absolute"):
        plot = adtool.folder / "e.png"
        done = adtool("jacobian", "--kernel", "wrong", "--error", kind,
                      "--out", "e.png", "script.py")  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        assert "fail" in done.stdout and f"{kind} errors written to e.png" in done.stdout
        assert plot.read_bytes().startswith(HEADS["png"])
    done = adtool("jacobian", "--kernel", "scale", "--error", "relative", "script.py")
    assert done.returncode == 0 and done.stdout.count("pass") == 2


def test_entries_that_are_not_finite(adtool) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", "--kernel", "root", "--out", "r.svg", "script.py")
    assert done.returncode == 1
    assert "4 not finite" in done.stdout and "it is not finite" in done.stdout


@pytest.mark.parametrize(
    ("args", "said", "help"),
    [
        (["--kernel", "nothing"], "no launch of a kernel `nothing` was recorded", "`scale`"),
        (["--kernel", "n*"], "no launch of a kernel `n*` was recorded", "`scale`"),
        (["--kernel", "scale", "--input", "q"], "has no input 'q'", "0: x, 1: w"),
        (["--kernel", "scale", "--input", "q"], "--> script.py:35:5", "wp.launch(scale"),
        (
            ["--kernel", "sc*", "--input", "q"],
            "error: --input or --output names no array with a gradient",
            "'scale' has no input 'q'",
        ),
        (["--kernel", "sc*", "--output", "q"], "has no output 'q'", "its outputs are 0: y"),
        (
            ["--kernel", "scale", "--launch", "0:1"],
            "launch 0:1 is not a launch of kernel",
            "0:0, 1:1",
        ),
        (["--kernel", "scale", "--launch", "one"], "is not TAPE:LAUNCH", "write 0:3"),
        (["--kernel", "scale", "--out", "a.gif"], "`a.gif` cannot be written: its name", ".svg"),
        (["--kernel", "scale", "--out", "no/a.png"], "the folder `no` does not exist", ""),
        (
            [],
            ("no kernel was chosen: 3 were launched, and 2 of them fail a check"),
            "choose one with",
        ),
        (["--launch", "3:0"], "the launch 3:0 does not exist", "choose one of these kernels"),
    ],
)
def test_what_cannot_be_done(adtool, args, said, help) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", *args, "script.py")
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr and help in done.stderr
    assert "Traceback" not in done.stderr and not list(adtool.folder.glob("*.png"))


@pytest.mark.parametrize("error", reduced([[], ["--error", "relative"]], bool))
def test_columns_of_a_capture_are_shared_out(adtool, error) -> None:
    """The same bytes whatever runs them, and the same words where it cannot be done."""
    adtool.script(KERNELS)
    assert adtool("capture", "--out", "run.adt", "script.py").returncode == 0

    def run(*more, kernel="wrong"):
        options = ("--kernel", kernel, "--format", "json", "--out", "p.svg", *error, *more)
        done = adtool("jacobian", *options, "run.adt")
        plot = adtool.folder / "p.svg"
        picture = plot.read_bytes() if plot.exists() else b""
        plot.unlink(missing_ok=True)
        return done.returncode, done.stdout, done.stderr, picture

    alone = run()
    assert alone[0] == (1 if error else 0) and alone[3].startswith(b"<?xml")
    assert run("--jobs", "1") == run("--jobs", "3") == alone
    none = run(kernel="no*")
    assert run("--jobs", "2", kernel="no*") == none and none[0] == 2
    done = adtool("jacobian", "--kernel", "wrong", "--jobs", "2", "script.py")
    assert done.returncode == 2 and "adtool capture script.py" in done.stderr


def test_scripts_that_fail(adtool) -> None:
    adtool.script("import engine\nraise ValueError('no')\n")
    done = adtool("jacobian", "--kernel", "scale", "--out", "a.png", "script.py")
    assert done.returncode == 2 and "ValueError" in done.stderr
    done = adtool("jacobian", "--kernel", "scale", "--format", "json", "missing.py")
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["message"]
    adtool.script("x = 1\n")
    done = adtool("jacobian", "--kernel", "scale", "script.py")
    assert done.returncode == 2 and "no launch was recorded on a tape" in done.stderr
    assert not list(adtool.folder.glob("*.png"))


def test_one_thread_is_one(adtool) -> None:
    adtool.script(
        "import engine as wp\n"
        "@wp.kernel\n"
        "def energy(x: wp.array(dtype=float), e: wp.array(dtype=float)):\n"
        "    e[0] = x[0] * x[0]\n"
        "x, e = wp.ones(1, requires_grad=True), wp.zeros(1, requires_grad=True)\n"
        "with wp.Tape():\n"
        "    wp.launch(energy, 1, [x], [e])\n"
    )
    done = adtool("jacobian", "script.py")
    assert done.returncode == 0 and "kernel `energy`, 1 thread," in done.stdout


ONE = KERNELS.split("x.fill_(0.0)")[0]


def test_a_kernel_that_need_not_be_named(adtool) -> None:
    """The only one; the one of a launch; the only one that a check fails; else a list of all."""
    first, second = ONE[: ONE.rindex("    wp.launch(wrong")], ONE
    adtool.script(first)
    done = adtool("jacobian", "script.py")
    assert done.returncode == 0 and "kernel `scale`, 4 threads" in done.stdout
    assert "launch 0:0, the only one of `scale`, the only kernel\n" in done.stdout
    adtool.script(second)
    done = adtool("jacobian", "script.py", "--launch", "0:0")
    assert done.returncode == 0 and "kernel `scale`, 4 threads" in done.stdout
    done = adtool("jacobian", "script.py")
    assert done.returncode == 0 and "kernel `wrong`, 4 threads" in done.stdout
    assert (
        "launch 0:1, the only one of `wrong`, the only kernel that fails a check: "
        "`d y / d x`: fail, relative error 0.0" in done.stdout
    )
    adtool.script(second.replace(" * 1.01", ""))
    done = adtool("jacobian", "script.py", "3", "--kernel", "wrong")
    assert done.returncode == 2 and "none of them fails a check" in done.stderr
    rows = [line.split(maxsplit=3) for line in done.stderr.splitlines()]
    assert ["scale", "1", "0:0", "4 (x 4, w 4, y 4)"] in rows
    assert ["wrong", "1", "0:1", "4 (x 4, y 4)"] in rows
    assert "`--kernel` after `script.py` went to the script" in done.stderr
    adtool.script(KERNELS)
    done = adtool("jacobian", "--format", "json", "script.py")
    assert json.loads(done.stdout)["error"]["detail"] in done.stderr and done.returncode == 2


def test_the_old_name_of_the_picture(adtool) -> None:
    adtool.script(KERNELS)
    done = adtool("jacobian", "--kernel", "scale", "--plot", "old.svg", "script.py")
    assert done.returncode == 0 and (adtool.folder / "old.svg").read_bytes().startswith(b"<?xml")


SIGNS = """
import numpy as np
import engine as wp

@wp.func
def square(v: float):
    return v * v

@wp.func_grad(square)
def adj_square(v: float, adj_ret: float):
    wp.adjoint[v] -= 2.0 * v * adj_ret

@wp.kernel
def power(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i])

x = wp.array(VALUES, dtype=float, requires_grad=True)
y = wp.zeros(len(VALUES), dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(power, dim=len(VALUES), inputs=[x], outputs=[y])
"""


def test_errors_of_one_relative_size_are_shown_by_the_largest(adtool) -> None:
    """`check` and `jacobian` name the same error: that of the largest entry, by hand 4 max |x|."""
    for values in ([0.05, 0.3, 2.0, 0.7], [1.9, 0.2, 0.31], [0.4, 0.1, 0.2, 1.5]):
        adtool.script(SIGNS.replace("VALUES", str(values)))
        report = json.loads(adtool("check", "--format", "json", "script.py").stdout)
        (pair,) = report["launches"][0]["pairs"]
        worst = pair["worst"]
        assert worst["col"] == int(np.argmax(values))
        assert abs(worst["ad"] - worst["oracle"]) == pytest.approx(4.0 * max(values), rel=1e-5)
        told = adtool("jacobian", "--kernel", "power", "--error", "relative", "script.py").stdout
        (row,) = (x for x in told.splitlines() if x.endswith("fail"))
        assert row.split() == ["x", "y", f"{4.0 * max(values):.3g}", "2", "fail"]
