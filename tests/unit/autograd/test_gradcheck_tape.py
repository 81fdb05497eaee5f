"""gradcheck_tape: wrong gradients are caught, right ones pass, arrays stay as they are."""

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck_tape

N = 7


@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(-x[i] * x[i]) + wp.sqrt(x[i] * x[i] + 1.0)


@wp.kernel
def reduce(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i])


@wp.kernel
def overwrite(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = -3.0


@wp.kernel
def scale_in_place(x: wp.array(dtype=float), w: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * w[i]


@wp.kernel
def root(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) * 2.0


@wp.kernel
def magnitude(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.abs(x[i])


def spoiled(factor: float):
    """A kernel whose function has a custom adjoint that is off by a factor."""

    @wp.func
    def cube(v: float):
        return v * v * v

    @wp.func_grad(cube)
    def adj_cube(v: float, adj_ret: float):
        wp.adjoint[v] += 3.0 * v * v * adj_ret * factor

    @wp.kernel
    def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = cube(x[i]) + x[i]

    return cubes


def ramp(n: int = N) -> wp.array:
    return wp.array(np.linspace(0.3, 1.7, n), dtype=float, requires_grad=True)


def two_launches():
    x, y = ramp(), wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(smooth, dim=N, inputs=[x], outputs=[y])
        wp.launch(reduce, dim=N, inputs=[y], outputs=[loss])
    return tape, x, y, loss


def test_right_gradients_pass(capsys) -> None:
    tape, *_ = two_launches()
    assert gradcheck_tape(tape) is True
    out = capsys.readouterr().out
    assert "smooth" in out and "reduce" in out and "passed" in out


def test_every_entry_is_compared() -> None:
    tape, *_ = two_launches()
    result = check_tape(tape)
    assert [p.checked for launch in result.launches for p in launch.pairs] == [N * N, N]


@pytest.mark.parametrize("factor", [1.0001, 1.001, 1.5, -1.0, 0.0])
def test_spoiled_gradients_are_caught(factor: float) -> None:
    x, y = ramp(), wp.zeros(N, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(spoiled(factor), dim=N, inputs=[x], outputs=[y])
    assert gradcheck_tape(tape, raise_exception=False, show_summary=False) is False
    with pytest.raises(ValueError, match="cubes") as error:
        gradcheck_tape(tape, show_summary=False)
    assert "'y' with respect to 'x'" in str(error.value)
    (launch,) = check_tape(tape).launches
    assert launch.culprits[0][0] == "cube" and launch.culprits[0][1].file == __file__


def test_a_right_custom_gradient_passes() -> None:
    x, y = ramp(), wp.zeros(N, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(spoiled(1.0), dim=N, inputs=[x], outputs=[y])
    assert gradcheck_tape(tape, show_summary=False)


def test_user_arrays_stay_bit_for_bit() -> None:
    tape, x, y, loss = two_launches()
    tape.backward(loss)
    arrays = [x, y, loss, x.grad, y.grad, loss.grad]
    before = [a.numpy().tobytes() for a in arrays]
    gradcheck_tape(tape, show_summary=False)
    assert [a.numpy().tobytes() for a in arrays] == before


def test_values_at_record_time_are_used() -> None:
    x, y = ramp(), wp.zeros(N, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(root, dim=N, inputs=[x], outputs=[y])
        wp.launch(overwrite, dim=N, inputs=[], outputs=[x])
    x.zero_()
    # At the present contents (zero) and at -3 the derivative of sqrt is not finite.
    (first, *_) = check_tape(tape).launches
    assert [p.verdict for p in first.pairs] == ["pass"]
    assert np.all(x.numpy() == 0.0)


def test_in_place_launches_pass() -> None:
    x, w = ramp(), ramp()
    tape = wp.Tape()
    with tape:
        wp.launch(scale_in_place, dim=N, inputs=[x, w])
    (launch,) = check_tape(tape).launches
    assert {(p.input, p.output, p.verdict) for p in launch.pairs} == {
        ("x", "x", "pass"),
        ("w", "x", "pass"),
    }


def test_the_same_array_twice_is_one_variable() -> None:
    x = ramp()
    tape = wp.Tape()
    with tape:
        wp.launch(scale_in_place, dim=N, inputs=[x, x])
    (launch,) = check_tape(tape).launches
    assert [(p.input, p.output, p.verdict) for p in launch.pairs] == [("x", "x", "pass")]


def test_a_nan_names_line_and_operand() -> None:
    x = wp.array([1.0, 0.0, 4.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(root, dim=3, inputs=[x], outputs=[y])
    (launch,) = check_tape(tape).launches
    (pair,) = launch.pairs
    assert pair.verdict == "nan"
    assert pair.nonfinite is not None and pair.nonfinite.element == (1,)
    assert pair.nonfinite.span is not None and pair.nonfinite.span.file == __file__
    assert pair.nonfinite.operation == "sqrt" and pair.nonfinite.operands[0][1].startswith("0")


@wp.kernel
def root_of_difference(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) - 3.0 * wp.sqrt(x[i + 1])


def test_an_infinity_has_the_sign_for_a_positive_cotangent() -> None:
    for kernel, values, expected in (
        (root, [1.0, 0.0, 4.0], np.inf),
        (root_of_difference, [1.0, 1.0, 1.0, 0.0], -np.inf),
    ):
        for seed in range(4):
            x = wp.array(values, dtype=float, requires_grad=True)
            y = wp.zeros(3, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(kernel, dim=3, inputs=[x], outputs=[y])
            (pair,) = check_tape(tape, seed=seed).launches[0].pairs
            assert pair.nonfinite is not None and pair.nonfinite.value == expected


def test_errors_beside_a_zero_reference_are_not_relative() -> None:
    x = wp.array([3.0, 0.0, 1e-25, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=4, inputs=[x], outputs=[y])
    (pair,) = check_tape(tape).launches[0].pairs
    assert pair.verdict == "pass"
    assert pair.max_rel_error < 1e-3


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_a_kink_is_not_a_failure() -> None:
    x = wp.array([-1.0, 0.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(magnitude, dim=3, inputs=[x], outputs=[y])
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["kink"]


def test_nothing_checked_is_an_error() -> None:
    x, y = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)
    tape = wp.Tape()
    with tape:
        wp.launch(smooth, dim=N, inputs=[x], outputs=[y])
    assert gradcheck_tape(tape, raise_exception=False, show_summary=False) is False
    with pytest.raises(ValueError, match="E404"):
        gradcheck_tape(tape, show_summary=False)
    with pytest.raises(ValueError, match="E404"):
        gradcheck_tape(wp.Tape(), show_summary=False)


def test_nothing_checked_names_the_real_reason() -> None:
    x = wp.array(np.ones((3, 2)), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(smooth, dim=0, inputs=[x[:, 0]], outputs=[x[:, 1]])
    with pytest.raises(ValueError, match=r"no threads|overlap") as error:
        gradcheck_tape(tape, show_summary=False)
    assert "requires_grad" not in str(error.value)
    x, y = wp.full(3, np.nan, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(smooth, dim=3, inputs=[x], outputs=[y])
    with pytest.raises(ValueError, match="d y / d x of kernel smooth, launch 0: incon") as error:
        gradcheck_tape(tape, show_summary=False)
    assert "requires_grad" not in str(error.value)


@pytest.mark.host("memory of the host")
def test_what_may_have_changed_unseen_is_kept_on_request(monkeypatch) -> None:
    data = np.full(N, 2.0, np.float32)
    x, y = wp.array(data, copy=False, requires_grad=True), wp.zeros(N, requires_grad=True)
    monkeypatch.setattr(wp.config, "snapshot_exposed_bytes", 4 * N)
    with wp.Tape() as tape:
        wp.launch(root, dim=N, inputs=[x], outputs=[y])
    data[:] = -1.0  # where the root has no derivative
    assert gradcheck_tape(tape, show_summary=False)
    data[:] = 2.0
    monkeypatch.setattr(wp.config, "snapshot_exposed_bytes", 0)
    with wp.Tape() as tape:
        wp.launch(root, dim=N, inputs=[x], outputs=[y])
    data[:] = -1.0
    with pytest.raises(wp.GradcheckError):
        gradcheck_tape(tape, show_summary=False)


@pytest.mark.parametrize(
    ("setting", "value"), [("tape_snapshots", "off"), ("snapshot_limit_bytes", 0)]
)
def test_lost_contents_name_the_setting(monkeypatch, setting: str, value: object) -> None:
    monkeypatch.setattr(wp.config, setting, value)
    tape, _, y, _ = two_launches()
    y.zero_()
    with pytest.raises(wp.GradcheckError, match=f"launch time are lost: .*{setting}"):
        gradcheck_tape(tape, show_summary=False, whitelist_kernels="reduce")


def test_kernel_lists_masks_and_order() -> None:
    tape, *_ = two_launches()
    assert gradcheck_tape(tape, whitelist_kernels=["reduce"], show_summary=False)
    assert gradcheck_tape(tape, blacklist_kernels=["reduce"], show_summary=False)
    assert gradcheck_tape(tape, reverse_launches=True, show_summary=False)
    assert gradcheck_tape(tape, skip_to_launch_index=1, show_summary=False)
    for mask in ([("x", "y")], [(0, 0)], [("x", 0)]):
        assert gradcheck_tape(tape, input_output_masks={"smooth": mask}, show_summary=False)
    with pytest.raises(ValueError, match="nope"):
        gradcheck_tape(tape, whitelist_kernels=["nope"], show_summary=False)
    with pytest.raises(ValueError, match="zz"):
        gradcheck_tape(tape, input_output_masks={"smooth": [("zz", "y")]}, show_summary=False)
    with pytest.raises(ValueError, match="E404"):
        gradcheck_tape(tape, blacklist_kernels=["reduce", "smooth"], show_summary=False)


def test_a_kernel_list_may_be_one_name() -> None:
    tape, x, *_ = two_launches()
    bad = spoiled(2.0)
    with tape:
        wp.launch(bad, dim=N, inputs=[x], outputs=[wp.zeros_like(x, requires_grad=True)])
    assert gradcheck_tape(tape, blacklist_kernels=bad.key, show_summary=False)
    assert gradcheck_tape(tape, whitelist_kernels="smooth", show_summary=False)
    assert gradcheck_tape(tape, blacklist_kernels=[bad.key, "absent"], show_summary=False)
    with pytest.raises(wp.LaunchError, match="'absent'"):
        gradcheck_tape(tape, whitelist_kernels="absent", show_summary=False)
    for option in ("whitelist_kernels", "blacklist_kernels"):
        with pytest.raises(wp.LaunchError, match=f"{option} takes names"):
            gradcheck_tape(tape, show_summary=False, **{option: [smooth]})


def test_limits_on_entries() -> None:
    tape, *_ = two_launches()
    result = check_tape(tape, max_inputs=3, max_outputs=2)
    assert [p.checked for launch in result.launches for p in launch.pairs] == [6, 3]


def test_given_tolerances_mean_the_formula() -> None:
    x, y = ramp(), wp.zeros(N, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(spoiled(1.001), dim=N, inputs=[x], outputs=[y])
    # Off by 0.1 %: within rtol=1e-2, outside of rtol=1e-4.
    assert gradcheck_tape(tape, eps=1e-4, atol=1e-3, rtol=1e-2, show_summary=False)
    assert not gradcheck_tape(
        tape, eps=1e-4, atol=1e-6, rtol=1e-4, raise_exception=False, show_summary=False
    )


def test_recorded_functions_are_named_as_unchecked() -> None:
    tape, x, *_ = two_launches()
    tape.record_func(lambda: None, [x])
    result = check_tape(tape)
    assert any("record_func" in u.what for u in result.unchecked)


def large(kernel):
    n = 100_000
    x = wp.array(np.random.default_rng(0).uniform(0.5, 1.5, n), dtype=float, requires_grad=True)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=n, inputs=[x], outputs=[y])
    return tape


def test_large_arrays_are_covered_by_directions() -> None:
    (launch,) = check_tape(large(smooth)).launches
    (pair,) = launch.pairs
    assert (pair.verdict, pair.checked, pair.directional) == ("pass", 0, 3)
    (launch,) = check_tape(large(smooth), max_inputs=5, max_outputs=5).launches
    assert launch.pairs[0].checked == 25


def test_a_wrong_gradient_of_a_large_array_is_caught_and_shown() -> None:
    (launch,) = check_tape(large(spoiled(1.001))).launches
    (pair,) = launch.pairs
    assert pair.verdict == "fail" and pair.worst is not None and pair.worst.row >= 0


@wp.func
def right(v: float):
    return wp.sin(v)


@wp.func_grad(right)
def adj_right(v: float, adj_ret: float):
    wp.adjoint[v] += wp.cos(v) * adj_ret


@wp.func
def product(v: float, w: wp.vec2):
    return v * w[0] + w[1]


@wp.func_grad(product)
def adj_product(v: float, w: wp.vec2, adj_ret: float):
    wp.adjoint[v] += w[1] * adj_ret  # should be w[0]
    wp.adjoint[w] += wp.vec2(v, 1.0) * adj_ret


@wp.kernel
def both(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = right(x[i]) + product(x[i], wp.vec2(2.0, 5.0 + x[i]))


def test_the_wrong_one_of_two_derivatives_is_named_with_its_operands() -> None:
    x, y = wp.array([0.5, 0.25], dtype=float, requires_grad=True), wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(both, dim=2, inputs=[x], outputs=[y])
    (launch,) = check_tape(tape).launches
    assert {name for name, _ in launch.culprits} == {"right", "product"}
    (wrong,) = launch.blame
    assert (wrong.function, wrong.derivative) == ("product", "adj_product")
    assert wrong.span.file == __file__
    assert wrong.operands == (("v", "0.5"), ("w", "[2, 5.5]"))
    assert wrong.parts == (("v", "5.5", "2"),)
