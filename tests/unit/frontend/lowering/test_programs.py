"""Control flow and assignment mean in the IR what they mean in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.frontend import lower_function
from engine.ir.interp import evaluate
from engine.ir.verify import verify
from engine.lang.types import FLOAT64, INT32, ArrayType
from tests.unit.frontend import loop_programs, update_programs
from tests.unit.frontend.programs import programs

PROGRAMS = {**programs(), **loop_programs.programs(), **update_programs.programs()}

_INPUTS = (
    [0.5, 1.5, -2.0, 3.0, 0.25, 1.0],
    [4.0, 0.1, 0.2, 1.25, -1.0, 2.5],
    [-1.0, -0.5, 6.0, 0.0, 2.0, 0.75],
)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("n", [1, 3, 5, 6])
def test_python_is_the_oracle(name: str, n: int) -> None:
    function: Any = PROGRAMS[name]
    fn = lower_function(function, (ArrayType(FLOAT64, 1), INT32))
    verify(fn)
    for data in _INPUTS:
        expected, got = np.array(data), np.array(data)
        function(expected, n)
        evaluate(fn, (got, n))
        np.testing.assert_array_equal(got, expected)
