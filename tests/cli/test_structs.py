"""`adtool check` on a program whose kernels take structs."""

from __future__ import annotations

from typing import Any

SCRIPT = """
import engine as wp

@wp.struct
class Body:
    mass: float
    pos: wp.vec3

@wp.struct
class World:
    bodies: wp.array(dtype=Body)
    pull: float

@wp.func
def cube(x: float):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret

@wp.kernel
def weigh(world: World, out: wp.array(dtype=float)):
    i = wp.tid()
    b = world.bodies[i]
    out[i] = cube(b.mass) * world.pull + b.pos.y

bodies = wp.array([Body(1.0 + i) for i in range(3)], dtype=Body, requires_grad=True)
out = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(weigh, dim=3, inputs=[World(bodies, 2.0)], outputs=[out])
"""


def test_leaves_are_named(adtool: Any) -> None:
    adtool.script(SCRIPT)
    report = adtool.report("script.py")
    (launch,) = report["launches"]
    verdicts = {(p["input"], p["output"]): p["verdict"] for p in launch["pairs"]}
    assert verdicts == {("world.bodies.mass", "out"): "fail", ("world.bodies.pos", "out"): "pass"}
    (finding,) = report["findings"]
    assert finding["code"] == "G001" and "world.bodies.mass[" in finding["message"]
    text = adtool("check", "script.py").stdout
    assert "world.bodies.mass" in text
