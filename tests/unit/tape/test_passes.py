"""Results of passes are noted without a change of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import engine as wp
from engine.accel.launcher import maker
from engine.tape.pass_log import PassLog, noting
spoiling = sys.argv[1]
if spoiling:
    from tests.spoiling import install
    install(spoiling)

@wp.kernel
def square(a: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a[i] * a[i]

a = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
b, z = (wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2))
one = wp.ones(4, dtype=float)

def passes(after):
    wp.config.native_after = after
    log, ran = PassLog(wanted=5), 0
    with noting(log):
        for _ in range(6):
            a.grad.zero_()
            with wp.Tape() as tape:
                wp.launch(square, dim=4, inputs=[a, b])
                wp.launch(square, dim=4, inputs=[b, z])
            ready = maker.functions is not None and maker.functions.ready(tape.records)
            tape.backward(grads={z: one})
            ran += ready is True
    return log.notes(), ran

plain, none = passes(-1)
native, some = passes(0)
assert none == 0 and some >= 3, (none, some)
assert plain.count == native.count == 6 and plain.layouts == native.layouts
assert "argument `a` of kernel `square" in plain.given[0].name, plain.given
import numpy as np
got = np.frombuffer(bytes.fromhex(plain.given[0].contents), "f4")
assert got.tolist() == [4.0, 32.0, 108.0, 256.0], got
print("same" if plain.values == native.values else "differ")
"""


@pytest.mark.host("native launches are of the CPU")
@pytest.mark.parametrize("spoiling", ["", "record-reused"])
def test_native_passes_are_noted_as_they_ran(tmp_path: Path, spoiling: str) -> None:
    pytest.importorskip("engine.accel", reason="engine.accel is not there")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), spoiling], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("differ" if spoiling else "same")
