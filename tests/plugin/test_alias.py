"""`pytest --adtool` of tests that are written for Warp."""

from __future__ import annotations

from tests.plugin.project import Project

TESTS = """
import warp as wp

@wp.kernel
def energy(x: wp.array(dtype=float), e: wp.array(dtype=float)):
    wp.atomic_add(e, 0, x[wp.tid()] * x[wp.tid()])

@wp.kernel
def reset(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

def record(overwritten):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    e = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, dim=2, inputs=[x], outputs=[e])
        if overwritten:
            wp.launch(reset, dim=2, outputs=[x])
    tape.backward(e)

def test_right(): record(False)
def test_overwritten(): record(True)
"""


def test_by_option_and_by_settings(project: Project) -> None:
    project.write("test_x.py", TESTS)
    done = project.run("pytest", "--adtool", "--adtool-alias", "warp")
    assert done.returncode == 1
    assert "G003" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    project.write("pyproject.toml", "[tool.adtool]\nalias = 'warp'\n")
    done = project.run("pytest", "--adtool")
    assert "1 failed, 1 passed" in done.stdout
    done = project.run("pytest", "--adtool-alias", "json")
    assert done.returncode != 0
    assert "has been imported before" in done.stdout + done.stderr
