"""Powers and quotients of constants: computed in double precision, before a type is asked."""

import numpy as np
import pytest

import engine as wp

EXPECTED = (
    3.0 * 2.0**2.0, 0.1**0.3, np.inf, np.inf, np.nan, 3.0 * 2**0.5, np.inf, np.nan, -np.inf,
)  # fmt: skip


@wp.kernel
def constants(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    y[0] = x[0] * (2.0**2.0)
    y[1] = wp.float64(0.1**0.3)
    y[2] = x[0] * (1.0 / 0.0)
    y[3] = x[0] * (0.0**-1.0)
    y[4] = x[0] * ((-8.0) ** 0.5)
    y[5] = x[0] * (2**0.5)
    y[6] = x[0] * (10.0**400.0)
    y[7] = x[0] * (0.0 / 0.0)
    y[8] = x[0] * (1.0 / -0.0)


def test_they_are_exact_and_follow_ieee_where_python_raises() -> None:
    x = wp.array([3.0], dtype=wp.float64)
    y = wp.zeros(len(EXPECTED), dtype=wp.float64)
    wp.launch(constants, dim=1, inputs=[x, y])
    np.testing.assert_array_equal(y.numpy(), EXPECTED)


def test_a_power_of_constants_is_a_constant_of_every_float_type() -> None:
    @wp.kernel
    def halves(y: wp.array(dtype=wp.float16)):
        y[0] = 2.0**0.5

    y = wp.zeros(1, dtype=wp.float16)
    wp.launch(halves, dim=1, inputs=[y])
    assert y.numpy()[0] == pytest.approx(np.float16(2**0.5), abs=0.0)
