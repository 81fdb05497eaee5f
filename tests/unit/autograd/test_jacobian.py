"""jacobian, jacobian_fd: values, keys, shapes, masks, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import (
    FunctionMetadata,
    check_function,
    gradcheck_tape,
    jacobian,
    jacobian_fd,
)
from tests.unit.autograd import jacobian_kernels as k
from tests.unit.autograd.jacobian_kernels import bodies_arguments, floats, mixed_arguments


def test_keys_and_shapes() -> None:
    inputs, outputs = mixed_arguments()
    jacs = jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs)
    assert list(jacs) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert [j.shape for j in jacs.values()] == [(4, 2), (8, 2), (4, 2), (8, 2)]
    assert jacs[2, 1].dtype is wp.vec3 and jacs[2, 1].numpy().shape == (8, 2, 3)
    assert jacs["b", "out2"] is jacs[2, 1] and jacs["b", 1] is jacs[2, 1]
    with pytest.raises(KeyError):
        jacs["n", "out1"]


def test_values_against_mathematics() -> None:
    (a, n, b), outputs = mixed_arguments()
    jacs = jacobian(k.mixed, dim=2, inputs=[a, n, b], outputs=outputs)
    x, v = a.numpy().astype(float), b.numpy().astype(float)
    w = np.array([0.1, 1.0, -0.1])
    by_a, by_b = np.zeros((4, 2)), np.zeros((4, 2, 3))
    for i in range(2):
        length = np.linalg.norm(v[i])
        by_a[2 * i : 2 * i + 2, i] = length, -v[i] @ w
        by_b[2 * i : 2 * i + 2, i] = x[i] * v[i] / length, -x[i] * w
    np.testing.assert_allclose(jacs[0, 0].numpy(), by_a, rtol=1e-6)
    np.testing.assert_allclose(jacs[2, 0].numpy(), by_b, rtol=1e-6, atol=1e-7)


def test_adjoint_and_differences_agree() -> None:
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    ad, fd = jacobian(k.mixed, **given), jacobian_fd(k.mixed, **given)
    assert list(ad) == list(fd) and fd[2, 0].dtype is wp.vec3d
    for key in ad:
        np.testing.assert_allclose(ad[key].numpy(), fd[key].numpy(), rtol=2e-6, atol=1e-7)


def test_a_given_step_is_the_plain_formula() -> None:
    x, y, eps = floats(1.0, 2.0, 3.0), wp.zeros(3, dtype=float, requires_grad=True), 0.25

    def cubed(v: float) -> float:
        return v**3 + 1.0

    fd = jacobian_fd(k.spoiled, dim=3, inputs=[x, floats(1, 1, 1)], outputs=[y], eps=eps)
    expected = [(cubed(v + eps) - cubed(v - eps)) / (2 * eps) for v in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(np.diag(fd[0, 0].numpy()), expected, rtol=1e-12)


def test_matrices_and_two_dimensions() -> None:
    rng = np.random.default_rng(1)
    m = wp.array(rng.normal(size=(3, 2, 2)), dtype=wp.mat22, requires_grad=True)
    v = wp.array(rng.normal(size=(2, 3, 2)), dtype=wp.vec2, requires_grad=True)
    out = wp.zeros((2, 3), dtype=wp.vec2, requires_grad=True)
    jacs = jacobian(k.matrices, dim=(2, 3), inputs=[m, v], outputs=[out])
    assert jacs[0, 0].shape == (12, 3) and jacs[0, 0].dtype is wp.mat22
    # d out[i, j, r] / d m[j, r, c] = v[i, j, c]
    expected = np.zeros((2, 3, 2, 3, 2, 2))
    for i, j, r in np.ndindex(2, 3, 2):
        expected[i, j, r, j, r] = v.numpy()[i, j]
    np.testing.assert_allclose(jacs[0, 0].numpy(), expected.reshape(12, 3, 2, 2), rtol=1e-6)


def test_structs() -> None:
    (a, box), outputs = bodies_arguments()
    given = {"dim": 2, "inputs": [a, box], "outputs": outputs}
    ad, fd = jacobian(k.bodies, **given), jacobian_fd(k.bodies, **given)
    # Three components and a mass each; of the box two floats, then two vectors.
    assert ad[0, 0].shape == (8, 8) and ad[1, 0].shape == (8, 6)
    record = a.numpy()[0]
    column = [*(2.0 * record["position"]), 2.0 * record["mass"] * box.x.numpy()[0]]
    np.testing.assert_allclose(ad[0, 0].numpy()[:4, 3], column, rtol=1e-6)
    np.testing.assert_allclose(ad[1, 0].numpy()[3, 0], record["mass"] ** 2, rtol=1e-6)
    np.testing.assert_array_equal(ad[1, 0].numpy()[:3, 2:4], [[0, 0], [1, 0], [0, 1]])
    for key in ad:
        np.testing.assert_allclose(ad[key].numpy(), fd[key].numpy(), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("how", [jacobian, jacobian_fd])
def test_arguments_in_any_order(how) -> None:
    x, y = floats(1.0, 2.0), wp.zeros(2, dtype=float, requires_grad=True)
    for given, key in (
        ({"inputs": [x, 3.0], "outputs": [y]}, (0, 0)),  # by what the kernel does
        ({"inputs": [y, x, 3.0]}, (1, 0)),  # as `launch` takes them
    ):
        jacs = how(k.output_first, dim=2, **given)
        np.testing.assert_allclose(jacs[key].numpy(), np.diag([6.0, 12.0]), rtol=1e-6)
    b = floats(5.0, 7.0)
    jacs = how(k.output_between, dim=2, inputs=[x, b], outputs=[y])
    np.testing.assert_allclose(jacs[0, 0].numpy(), np.diag([5.0, 7.0]), rtol=1e-6)
    np.testing.assert_allclose(jacs["b", "y"].numpy(), np.diag([1.0, 2.0]), rtol=1e-6)


def test_an_array_that_is_input_and_output() -> None:
    y, x = floats(2.0, 3.0), floats(5.0, 7.0)
    for how in (jacobian, jacobian_fd):
        jacs = how(k.in_place, dim=2, inputs=[y, x])
        np.testing.assert_allclose(jacs["y", "y"].numpy(), np.diag([5.0, 7.0]), rtol=1e-6)
        np.testing.assert_allclose(jacs["x", "y"].numpy(), np.diag([2.0, 3.0]), rtol=1e-6)
        whole = how(k.running_sum, dim=2, inputs=[y])[0, 0].numpy()
        np.testing.assert_allclose(whole, [[1.0, 0.0], [1.0, 6.0]], rtol=1e-6)


@pytest.mark.parametrize("how", [jacobian, jacobian_fd])
@pytest.mark.host("the order of threads")
def test_arguments_that_overlap_in_memory(how) -> None:
    z = floats(1.0, 2.0, 3.0, 4.0)
    before = z.numpy().tobytes()
    jacs = how(k.output_first, dim=3, inputs=[z[:3], z[1:], 1.0])
    # z[i] = z[i + 1]^2, one thread after the other
    expected = np.zeros((3, 3))
    expected[0, 1], expected[1, 2] = 4.0, 6.0
    np.testing.assert_allclose(jacs[0, 0].numpy(), expected, rtol=1e-3, atol=1e-3)
    assert z.numpy().tobytes() == before


def test_masks() -> None:
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    every = jacobian(k.mixed, **given)
    for mask in ([("a", "out1"), ("b", "out2")], [(0, 0), (2, 1)], [("a", 0), (2, "out2")]):
        jacs = jacobian(k.mixed, **given, input_output_mask=mask)
        assert list(jacs) == [(0, 0), (2, 1)]
        np.testing.assert_array_equal(jacs[2, 1].numpy(), every[2, 1].numpy())


def test_what_was_not_evaluated_is_nan() -> None:
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    jacs = jacobian(k.mixed, **given, max_outputs_per_var=3)
    whole = jacobian(k.mixed, **given)
    for key, j in jacs.items():
        assert np.isnan(j.numpy()[3:]).all()
        np.testing.assert_array_equal(j.numpy()[:3], whole[key].numpy()[:3])
    fd = jacobian_fd(k.mixed, **given, max_inputs_per_var=4)[2, 0].numpy().reshape(4, 6)
    assert np.isnan(fd[:, 4:]).all() and np.isfinite(fd[:, :4]).all()


def test_elements_that_are_not_finite_have_no_derivative() -> None:
    x, y = floats(1.0, np.nan, 4.0, 9.0), wp.zeros(4, dtype=float, requires_grad=True)
    fd = jacobian_fd(k.roots, dim=4, inputs=[x], outputs=[y])[0, 0].numpy()
    assert np.isnan(fd[:, 1]).all() and np.isfinite(fd[:, 2]).all()


def test_a_float64_input() -> None:
    x = wp.array([0.5, 1.0], dtype=wp.float64, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    j = jacobian(k.wide, dim=2, inputs=[x], outputs=[y])[0, 0]
    assert j.dtype is wp.float64
    np.testing.assert_allclose(j.numpy(), np.diag(np.exp([0.5, 1.0])), rtol=1e-7)


# ---- functions


def of_function(a, n, b):
    out1 = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
    out2 = wp.zeros(2, dtype=wp.quat, requires_grad=True)
    wp.launch(k.mixed, dim=2, inputs=[a, n, b], outputs=[out1, out2])
    return out1, out2


def test_functions() -> None:
    inputs, outputs = mixed_arguments()
    of_kernel = jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs)
    jacs = jacobian(of_function, inputs=inputs)
    assert list(jacs) == list(of_kernel)
    fd = jacobian_fd(of_function, inputs=inputs)
    for key, j in jacs.items():
        np.testing.assert_array_equal(j.numpy(), of_kernel[key].numpy())
        np.testing.assert_allclose(j.numpy(), fd[key].numpy(), rtol=1e-4, atol=1e-4)
    masked = jacobian(of_function, inputs=inputs, input_output_mask=[("b", "output_1")])
    assert list(masked) == [(2, 1)]
    assert np.isnan(
        jacobian(of_function, inputs=inputs, max_outputs_per_var=1)[0, 0].numpy()[1:]
    ).all()


def test_functions_with_state_and_structs() -> None:
    (a, box), outputs = bodies_arguments()
    count = wp.zeros(1, dtype=float)

    def step(a, box):
        count.fill_(count.numpy()[0] + 1.0)
        wp.launch(k.bodies, dim=2, inputs=[a, box], outputs=outputs)

    expected = jacobian(k.bodies, dim=2, inputs=[a, box], outputs=outputs)
    jacs = jacobian(step, inputs=[a, box], outputs=outputs)
    fd = jacobian_fd(step, inputs=[a, box], outputs=outputs)
    for key, j in expected.items():
        np.testing.assert_array_equal(j.numpy(), jacs[key].numpy())
        np.testing.assert_allclose(j.numpy(), fd[key].numpy(), rtol=1e-3, atol=1e-3)
    assert count.numpy()[0] == 0.0


def test_a_function_inside_a_tape_is_not_recorded() -> None:
    x = floats(1.0, 2.0)

    def squared(x):
        y = wp.zeros_like(x)
        wp.launch(k.output_first, dim=2, inputs=[y, x, 1.0])
        return y

    with wp.capturing() as capture, wp.Tape() as tape:
        j = jacobian(squared, inputs=[x])[0, 0]
        y = squared(x)
    np.testing.assert_array_equal(j.numpy(), np.diag([2.0, 4.0]))
    assert len(tape.records) == 1 and len(capture.tapes) == 1
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


# ---- what stays as it was


def contents(*arrays):
    return [(a.numpy().tobytes(), a.grad.numpy().tobytes()) for a in arrays]


@pytest.mark.parametrize("how", [jacobian, jacobian_fd])
def test_arrays_and_gradients_stay_bit_for_bit(how) -> None:
    (a, n, b), outputs = mixed_arguments()
    for i, x in enumerate((a, b, *outputs)):
        x.grad.fill_(0.5 + i)
        x.numpy().reshape(-1)[0] = -0.0
    before = contents(a, b, *outputs)
    how(k.mixed, dim=2, inputs=[a, n, b], outputs=outputs)
    assert contents(a, b, *outputs) == before
    how(of_function, inputs=[a, n, b])
    assert contents(a, b, *outputs) == before

    def fails(a, n, b):
        wp.launch(k.mixed, dim=2, inputs=[a, n, b], outputs=outputs)
        a.fill_(7.0)
        a.grad.fill_(9.0)
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        how(fails, inputs=[a, n, b])
    assert contents(a, b, *outputs) == before


# ---- errors


def test_nothing_to_differentiate_is_an_error() -> None:
    x, y = wp.zeros(2, dtype=float), wp.zeros(2, dtype=float, requires_grad=True)
    for how in (jacobian, jacobian_fd):
        with pytest.raises(ValueError, match="E404"):
            how(k.output_first, dim=2, inputs=[x, 1.0], outputs=[y])


def test_an_empty_mask_means_all() -> None:
    inputs, outputs = mixed_arguments()
    given = {"dim": 2, "inputs": inputs, "outputs": outputs}
    for how in (jacobian, jacobian_fd):
        assert list(how(k.mixed, **given, input_output_mask=[])) == list(how(k.mixed, **given))
    result = check_function(k.mixed, **given, input_output_mask=[])
    assert len(result.launches[0].pairs) == 4
    with wp.Tape() as tape:
        wp.launch(k.mixed, dim=2, inputs=inputs, outputs=outputs)
    assert gradcheck_tape(tape, input_output_masks={"mixed": []}, show_summary=False)


def test_masks_name_the_labels_of_metadata() -> None:
    inputs, outputs = mixed_arguments()
    names = FunctionMetadata("f", ["p", "q", "r"], ["s", "t"])
    for how in (jacobian, jacobian_fd):
        found = how(k.mixed, 2, inputs, outputs, [("r", "t"), (0, "s")], metadata=names)
        assert list(found) == [(2, 1), (0, 0)] and found.metadata is names
        assert found["r", "t"] is found[2, 1]
        with pytest.raises(ValueError, match="E405"):
            how(k.mixed, 2, inputs, outputs, [("z", "t")], metadata=names)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ([("z", "out1")], "has no input 'z'"),
        ([("a", 2)], "has no output 2"),
        ([("n", "out1")], "'n' of 'mixed' has no gradient"),
        (["ab"], "takes pairs"),
        ("ab", "is a list of pairs"),
        (5, "is a list of pairs"),
        ([(0, 0, 0)], "takes pairs"),
    ],
)
def test_masks_that_name_nothing(mask, said) -> None:
    inputs, outputs = mixed_arguments()
    with pytest.raises(wp.LaunchError, match="E405") as error:
        jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs, input_output_mask=mask)
    assert said in str(error.value) and __file__ in str(error.value)


def test_arguments_that_do_not_fit() -> None:
    inputs, outputs = mixed_arguments()
    with pytest.raises(wp.LaunchError, match="E205"):
        jacobian(k.mixed, inputs=inputs, outputs=outputs)
    with pytest.raises(wp.LaunchError, match="E201"):
        jacobian(k.mixed, dim=2, inputs=inputs)
    with pytest.raises(wp.LaunchError, match="E202"):
        jacobian(7, inputs=inputs)
    with pytest.raises(wp.LaunchError, match="E202"):
        jacobian(lambda a: 3.0, inputs=[inputs[0]])
    with pytest.raises(wp.LaunchError, match="E405"):
        jacobian_fd(k.mixed, dim=2, inputs=inputs, outputs=outputs, eps=-1.0)


def test_metadata_is_filled_in() -> None:
    inputs, outputs = mixed_arguments()
    data = FunctionMetadata()
    jacs = jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs, metadata=data)
    assert jacs.metadata is data and data.key == "mixed"
    assert data.input_labels == ["a", "n", "b"] and data.output_labels == ["out1", "out2"]
    assert data.input_strides == [(1,), None, (3,)] and data.output_strides == [(2,), (4,)]
    named = FunctionMetadata(input_labels=["p", "q", "r"])
    jacobian(k.mixed, dim=2, inputs=inputs, outputs=outputs, metadata=named)
    assert named.input_labels == ["p", "q", "r"] and named.output_labels == ["out1", "out2"]


def test_functions_whose_kernels_have_no_adjoint() -> None:
    def squares(x: wp.array) -> wp.array:
        y = wp.zeros_like(x)
        wp.launch(k.no_backward, 2, [x], [y])
        return y

    x = wp.array([1.0, 3.0], dtype=float, requires_grad=True)
    with pytest.raises(wp.TapeError, match=r"E401.*backward pass enabled.*'no_backward'"):
        jacobian(squares, inputs=[x])
    with pytest.raises(ValueError, match="enable_backward"):  # as Warp raises it
        jacobian(k.no_backward, dim=2, inputs=[x], outputs=[wp.zeros_like(x)])
    found = jacobian_fd(squares, inputs=[x])
    np.testing.assert_allclose(found[0, 0].numpy(), [[2.0, 0.0], [0.0, 6.0]], atol=1e-3)
