"""Struct values and arrays of structs on the host."""

import copy
import ctypes
import math
import pickle

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError


@wp.struct
class Inner:
    a: wp.vec3
    k: int


@wp.struct
class Outer:
    """Documented."""

    x: float
    inner: Inner
    data: wp.array(dtype=float)
    m: wp.mat22
    flag: bool
    big: wp.float64

    def doubled(self) -> float:
        return self.x * 2.0


@wp.struct
class Holder:
    data: wp.array(dtype=float)
    by: float


def refused(action, code: str, *words: str) -> None:
    with pytest.raises((LaunchError, KernelError)) as caught:
        action()
    d = caught.value.diagnostics[0]
    assert d.code == code
    text = str(caught.value)
    assert all(w in text for w in words), text
    assert d.span is None or d.span.file == __file__


def test_construction_and_fields():
    s = Outer()
    assert (s.x, s.inner.k, s.data, s.flag) == (0.0, 0, None, False)
    assert s.inner.a == wp.vec3()
    s = Outer(1, Inner((1, 2, 3), 4), flag=True)
    assert s.inner.a == wp.vec3(1.0, 2.0, 3.0)
    assert s.doubled() == 2.0
    assert isinstance(s, Outer) and Outer.__doc__ == "Documented."
    s.inner.k = 5
    s.inner.a.y = 7.0
    s.inner.a += wp.vec3(1.0)
    assert repr(s.inner) == "Inner(a=vec3f([2.0, 8.0, 4.0]), k=5)"
    s.m = np.eye(2)
    s.x = np.float32(2.5)
    assert type(s.x) is float and type(s.big) is wp.float64 and type(s.inner.k) is int
    s.x = wp.float32(2.5)
    assert type(s.x) is wp.float32
    assert s.m == wp.mat22(1.0, 0.0, 0.0, 1.0) and s.x == 2.5


def test_a_field_that_is_a_struct_or_vector_is_a_copy():
    s, inner, v = Outer(), Inner(k=1), wp.vec3(1.0)
    s.inner = inner
    inner.k = 2
    s.inner.a = v
    v.x = 9.0
    assert s.inner.k == 1 and s.inner.a.x == 1.0
    again = copy.copy(s)
    again.inner.k = 3
    assert s.inner.k == 1
    a = wp.zeros(2, dtype=float)
    s.data = a
    assert s.data is a and copy.copy(s).data is a
    deep = copy.deepcopy(s)
    assert deep.data is not a and deep.data.shape == (2,)
    back = pickle.loads(pickle.dumps(s))
    assert back.inner.k == 1 and back.data.shape == (2,)
    other = Outer(x=4.0)
    s.assign(other)
    assert s.x == 4.0 and s.data is None


def test_wrong_values_are_told():
    s = Outer()
    refused(lambda: setattr(s, "y", 1), "E202", "no field 'y'", "its fields are x, inner")
    refused(lambda: setattr(s, "flog", 1), "E202", "did you mean 'flag'")
    refused(
        lambda: setattr(s, "x", "a"), "E202", "Struct field 'x' expects float32", "a field of Outer"
    )
    refused(lambda: setattr(s.inner, "k", 2.5), "E202", "expects int32")
    refused(lambda: setattr(s.inner, "k", 2**40), "E202", "outside")
    refused(lambda: setattr(s.inner, "a", (1.0, 2.0)), "E202", "expects vec3f")
    refused(lambda: setattr(s, "inner", Outer()), "E202", "expects Inner")
    refused(lambda: setattr(s, "m", 1.5), "E202", "expects mat22f but got a single value")
    refused(lambda: setattr(s, "data", wp.zeros((3, 3))), "E202", "with 1 dimension(s), got 2")
    refused(lambda: setattr(s, "data", np.zeros(3)), "E202", "make an array of it")
    refused(
        lambda: setattr(s, "data", wp.zeros(3, dtype=int)),
        "E202",
        "expects dtype float32, got int32",
    )
    refused(lambda: Inner(wp.vec3(), 1, 2), "E201", "2 fields, got 3")
    refused(lambda: Inner(kk=1), "E202", "did you mean 'k'")
    refused(lambda: Inner(wp.vec3(), a=wp.vec3()), "E201", "given twice")
    with pytest.raises(AttributeError, match="did you mean 'k'"):
        _ = s.inner.kk
    assert not hasattr(s, "nothing")


def test_wrong_definitions_are_told():
    def untyped():
        @wp.struct
        class A:
            x: str

    def derived():
        @wp.struct
        class A(Inner):
            x: float

    def reserved():
        @wp.struct
        class A:
            assign: float

    def unknown():
        @wp.struct
        class A:
            x: "Nothing"  # noqa: F821

    refused(untyped, "E103", "field 'x' of struct A: str is not a type")
    refused(reserved, "E103", "reserved")
    refused(derived, "E103", "cannot inherit from struct Inner")
    refused(unknown, "E103", "cannot be evaluated")
    refused(lambda: wp.struct(3), "E103", "takes a class")


def test_what_a_class_says_beside_types():
    with pytest.warns(UserWarning, match=r"struct A: values .* \(x, v\) mean nothing"):

        @wp.struct
        class A:
            KIND = 7
            x: float = 1.0
            v: wp.vec3 = wp.vec3(1.0)
            y: int

    assert (A.KIND, A().x, A(x=2.0).x, A().v) == (7, 0.0, 2.0, wp.vec3())
    assert A.cls is A and A.key == "A" and list(A.vars) == ["x", "v", "y"]
    assert isinstance(A(), A.cls)


@wp.struct
class Vacant:
    pass


@wp.struct
class Nested:
    before: Vacant
    z: int
    after: Vacant


@wp.kernel
def pass_vacant(one: Vacant, many: wp.array(dtype=Vacant), s: Nested, out: wp.array(dtype=Nested)):
    i = wp.tid()
    here = Vacant()
    here = many[i]
    out[i].before = here
    many[i] = one
    t = s
    t.z += many.shape[0]
    out[i] = t


def test_structs_may_have_no_fields():
    empty = Vacant()
    assert repr(empty) == "Vacant()" and Vacant.numpy_dtype().itemsize == 1
    many = wp.array([empty, empty, empty], dtype=Vacant)
    assert many.shape == (3,) and repr(many[0]) == "Vacant()" and wp.clone(many).shape == (3,)
    many.zero_()
    out = wp.zeros(2, dtype=Nested)
    wp.launch(pass_vacant, dim=2, inputs=[empty, many, Nested(z=4)], outputs=[out])
    assert out.numpy()["z"].tolist() == [7, 7]


def test_none_is_zero_and_handles_have_ids():
    @wp.struct
    class A:
        x: float
        v: wp.vec3
        inner: Inner
        handle: wp.uint64

    class Host:
        id = 12

    s = A(1.0, (1, 2, 3), Inner(k=3), Host())
    assert s.handle == 12
    s.x = s.v = s.inner = s.handle = None
    assert (s.x, s.v, s.inner.k, s.handle) == (0.0, wp.vec3(), 0, 0)
    refused(lambda: setattr(s, "handle", object()), "E202", "expects uint64")


def test_text_annotations():
    T = wp.float64

    @wp.struct
    class A:
        x: "T"
        y: "wp.array(dtype=T)"

    assert A.numpy_dtype()["x"] == np.float64


def test_numpy_records():
    assert Inner.numpy_dtype() == np.dtype([("a", "f4", (3,)), ("k", "i4")])

    class Own(ctypes.Structure):
        _fields_ = (
            ("x", ctypes.c_float),
            ("inner", ctypes.c_int32 * 4),
            ("data", ctypes.c_int64 * 7),
            ("m", ctypes.c_float * 4),
            ("flag", ctypes.c_bool),
            ("big", ctypes.c_double),
        )

    dtype = Outer.numpy_dtype()
    assert dtype.itemsize == ctypes.sizeof(Own)
    assert all(dtype.fields[f][1] == getattr(Own, f).offset for f in dtype.names)
    s = Inner((1, 2, 3), 4)
    record = np.array(s.numpy_value(), dtype=Inner.numpy_dtype())
    assert record["a"].tolist() == [1.0, 2.0, 3.0] and record["k"] == 4
    data = wp.zeros(5, dtype=float)
    assert Outer(data=data).numpy_value()[2][0] == data.ptr


@pytest.mark.host("memory of the host")
def test_arrays_of_structs():
    a = wp.array([Inner(k=1), Inner((1, 2, 3), 2)], dtype=Inner)
    assert a.dtype is Inner and a.shape == (2,) and a.numpy()["k"].tolist() == [1, 2]
    assert repr(wp.array([Inner(k=3)])) == "array(shape=(1,), dtype=Inner)"
    assert a[1].a == wp.vec3(1.0, 2.0, 3.0) and [x.k for x in a] == [1, 2]
    b = wp.array(a.numpy(), dtype=Inner)
    b.numpy()["k"] = 7
    assert a.numpy()["k"].tolist() == [1, 2]
    shared = wp.array(b.numpy(), dtype=Inner, copy=False)
    shared[0] = Inner(k=9)
    assert b[0].k == 9
    packed = np.zeros(2, [("a", "f8", 3), ("k", "i8")])
    packed["k"] = 5
    assert wp.array(packed, dtype=Inner)[1].k == 5
    c = wp.full((2, 2), Inner(k=3))
    assert c.numpy()["k"].tolist() == [[3, 3], [3, 3]]
    c[0] = a
    c[1, 1] = Inner()
    assert c.numpy()["k"].tolist() == [[1, 2], [3, 0]]
    c.fill_(Inner(k=4))
    assert c.reshape(4)[1:].transpose()[0].k == 4
    c.zero_()
    c.assign([[Inner(k=1), Inner(k=2)], [Inner(k=3), Inner(k=4)]])
    assert c.numpy()["k"].tolist() == [[1, 2], [3, 4]]
    back = pickle.loads(pickle.dumps(a))
    assert back[1].k == 2 and copy.deepcopy(a)[1].k == 2
    assert wp.zeros_like(a).shape == (2,) and wp.clone(a)[1].k == 2
    assert str(a).startswith("[([0., 0., 0.], 1)")


def test_arrays_of_structs_refuse():
    refused(lambda: wp.array([Inner(), 1], dtype=Inner), "E206", "got 1")
    refused(lambda: wp.array([1.0], dtype=Inner), "E206", "pass a list of Inner")
    refused(lambda: wp.array(np.zeros(2, [("x", "f4")]), dtype=Inner), "E206", "expected fields")
    refused(lambda: wp.zeros(2, dtype=Inner).fill_(1.5), "E202", "pass a Inner")
    refused(lambda: wp.zeros(2, dtype=Inner).view(float), "E206", "cannot be viewed")
    refused(lambda: wp.copy(wp.zeros(2, dtype=Inner), wp.zeros(2, dtype=int)), "E206", "do not fit")

    @wp.struct
    class Whole:
        n: int

    with pytest.warns(UserWarning, match="type Whole have no gradient"):
        assert not wp.zeros(2, dtype=Whole, requires_grad=True).requires_grad


@wp.kernel
def scale(s: Inner, data: wp.array(dtype=Inner), by: float):
    i = wp.tid()
    data[i].a = data[i].a * by + s.a


@wp.kernel
def in_place(data: wp.array(dtype=Inner)):
    i = wp.tid()
    data[i].a *= data[i].a[0]


@pytest.mark.host("memory of the host")
def test_launches_take_structs():
    data = wp.zeros(3, dtype=Inner)
    s = Inner((1, 2, 3))
    wp.launch(scale, dim=3, inputs=[s, data, 2.0])
    assert data[2].a == wp.vec3(1.0, 2.0, 3.0)
    records = np.zeros(3, Inner.numpy_dtype())
    wp.launch(scale, dim=3, inputs=[s, records, 2.0])
    assert records["a"][1].tolist() == [1.0, 2.0, 3.0]
    command = wp.launch(scale, dim=3, inputs=[s, data, 2.0], record_cmd=True)
    command.launch()
    assert data[0].a == wp.vec3(3.0, 6.0, 9.0)
    s.a = wp.vec3(0.0)  # the struct as it is at each launch, as in Warp
    command.launch()
    assert data[0].a == wp.vec3(6.0, 12.0, 18.0)


def test_launches_refuse_what_does_not_fit():
    data = wp.zeros(3, dtype=Inner)
    refused(lambda: wp.launch(scale, dim=1, inputs=[Inner(), data]), "E201", "(s, data, by), got 2")
    refused(lambda: wp.launch(scale, dim=1, inputs=[Outer(), data, 1.0]), "E202", "'s'", "Inner()")
    refused(lambda: wp.launch(scale, dim=1, inputs=[Inner(), data.numpy()["a"], 1.0]), "E202")
    refused(
        lambda: wp.launch(scale, dim=1, inputs=[Inner(), data.reshape((1, 3)), 1.0]),
        "E203", "ndim=2",
    )  # fmt: skip
    refused(lambda: wp.launch(scale, dim=1, inputs=[Inner(), None, 1.0]), "E202", "data.a")


def test_gradients_of_struct_arrays():
    data = wp.array([Inner((1, 2, 3), 5)], dtype=Inner, requires_grad=True)
    start = wp.clone(data)
    with wp.Tape() as tape:
        moved = wp.clone(start)
        wp.launch(in_place, dim=1, inputs=[moved])
    seed = np.ones(1, Inner.numpy_dtype())
    tape.backward(grads={moved: seed})
    assert start.grad.dtype is Inner
    assert start.grad.numpy()["a"].tolist() == [[2.0 + 2.0 + 3.0, 1.0, 1.0]]
    assert start.grad.numpy()["k"].tolist() == [0]
    assert set(map(id, tape.gradients)) == {id(start), id(moved)}
    tape.zero()
    assert not start.grad.numpy()["a"].any()


@wp.kernel
def between(src: wp.array(dtype=Inner), s: Holder, dst: wp.array(dtype=Inner)):
    i = wp.tid()
    dst[i].a = src[i].a * s.data[i] * s.by


def test_the_adjoint_of_structs_by_hand():
    src = wp.array([Inner((1, 2, 3), 5)], dtype=Inner)
    s = Holder(wp.array([3.0], dtype=float), 2.0)
    dst, adj_dst = wp.zeros(1, dtype=Inner), wp.array([Inner((1, 1, 1), 0)], dtype=Inner)
    adj_src, adj_s = wp.zeros(1, dtype=Inner), Holder(wp.zeros(1, dtype=float))
    wp.launch(
        between, dim=1, inputs=[src, s], outputs=[dst], adj_inputs=[adj_src, adj_s],
        adj_outputs=[adj_dst], adjoint=True,
    )  # fmt: skip
    assert adj_src[0].a == wp.vec3(6.0)
    assert adj_s.data.list() == [12.0]


def test_a_view_of_a_struct_array_shares_its_gradient():
    data = wp.array([Inner(), Inner((1, 2, 3)), Inner()], dtype=Inner, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(in_place, dim=2, inputs=[data[1:]])
    seed = np.zeros(3, Inner.numpy_dtype())
    seed["a"] = 1.0
    tape.backward(grads={data: seed})
    assert data.grad.numpy()["a"].tolist() == [[1, 1, 1], [7, 1, 1], [0, 0, 0]]


def test_fields_side_by_side_do_not_overlap():
    from engine.runtime.base import may_meet
    from engine.runtime.leaves import leaf_arrays

    a, k = leaf_arrays(wp.zeros(4, dtype=Inner))
    assert a.lo < k.lo < a.hi and not may_meet(a, k) and may_meet(a, a[1:])
    assert may_meet(a[::2], a[2:]) and not may_meet(a[:2], a[2:])


class Holding:
    """Nothing to kernels but for its functions."""

    @wp.func
    def tripled(x: float):
        return x * 3.0


holding = Holding()


@wp.func
def first_of(s: Outer, i: int):
    if i >= s.data.shape[0]:
        return -1.0
    return s.data[i] * 2.0


@wp.kernel
def of_none(out: wp.array(dtype=int)):
    s = Outer()
    out[0] = s.data.shape[0] + s.data.size + len(s.data) + s.data.ndim * 10
    out[1] = wp.int(s.data.dtype(2.0) + holding.tripled(1.5))
    out[2] = wp.int(first_of(s, 0))


def test_fields_without_arrays_and_functions_of_objects():
    out = wp.zeros(3, dtype=int)
    wp.launch(of_none, dim=1, outputs=[out])
    assert out.list() == [10, 6, -1]


@wp.struct
class Mixed:
    v: wp.vec3
    d: wp.vec3d
    h: wp.vec2h
    m: wp.mat22
    q: wp.quat
    t: wp.transform
    _fill: wp.vec2i
    inner: Inner


def test_values_have_their_own_zeros():
    a, b = Mixed(), Mixed()
    for f in Mixed.vars:
        assert getattr(a, f) is not getattr(b, f)
        if f != "inner":
            assert getattr(a, f) == type(getattr(a, f))()
    a.v[0], a.inner.k = 1.0, 2
    assert (b.v[0], Mixed().v[0], b.inner.k) == (0.0, 0.0, 0)
    assert Mixed((1.0, 2.0, 3.0), _fill=(1, 2)).v == wp.vec3(1.0, 2.0, 3.0)


def test_vectors_are_copied_into_fields_however_they_come(monkeypatch):
    class Mine(wp.vec3):
        pass

    given = {
        "v": [wp.vec3(1.0, math.nan, -0.0), Mine(1.0, 2.0, 3.0), wp.vec3d(1.0, 2.0, 3.0), (1, 2, 3),
              np.ones(3), 1.0, None, wp.vec2(1.0, 2.0), "a"],
        "d": [wp.vec3d(0.1, 0.2, 0.3), wp.vec3(0.1, 0.2, 0.3)], "h": [wp.vec2h(0.1, 0.2)],
        "m": [wp.mat22(1.0, 2.0, 3.0, 4.0)], "q": [wp.quat(1.0, 2.0, 3.0, 4.0), wp.vec4(1.0)],
        "t": [wp.transform((1.0, 2.0, 3.0), wp.quat_identity())],
    }  # fmt: skip

    def put(field, value):
        s = Mixed()
        try:
            setattr(s, field, value)
        except LaunchError as e:
            return e.diagnostics[0].code, e.diagnostics[0].message
        got = getattr(s, field)
        assert got is not value
        return type(got), np.asarray(got).tobytes()

    for field, values in given.items():
        for value in values:
            found = put(field, value)
            with monkeypatch.context() as m:
                m.setattr(Mixed, "__copied__", {})
                assert put(field, value) == found, (field, value)
