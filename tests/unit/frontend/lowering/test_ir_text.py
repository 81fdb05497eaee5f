"""The IR of statements and places, as text."""

from __future__ import annotations

import engine as wp
from tests.unit.frontend.ir_text import Floats, Matrices, Vectors, check, lowered


def test_signature() -> None:
    @wp.kernel
    def k(x1: Floats, x2: Matrices, n_1: int, v: wp.vec3, flag: bool, d: wp.float64):
        pass

    text = str(lowered(k)).splitlines()[0]
    assert text == (
        "kernel k(%x1: array<float32,1>, %x2: array<mat<2,2,float32>,2>, %n_1: int32, "
        "%v: vec<3,float32>, %flag: bool, %d: float64) {"
    )


def test_plain_names_need_no_variables() -> None:
    @wp.kernel
    def k(a: Floats):
        i = wp.tid()
        x = a[i]
        y = x * 2.0
        a[i] = y + x

    check(
        k,
        """
        %i: int32 = tid(0:int32, 1:int32)
        %x: float32 = load %a[%i]
        %y: float32 = mul(%x, 2.0:float32)
        %t_3: float32 = add(%y, %x)
        store %a[%i] <- %t_3
        """,
    )


def test_elements_components_and_rows() -> None:
    @wp.kernel
    def k(v: Vectors, m: Matrices):
        i, j = wp.tid()
        x = v[i].y
        v[i][2] = x
        v[-1].x += x
        m[i, j][0, 1] = x
        m[i][j][1][0] = x
        m[i, j][1] = wp.vec2(x, x)

    check(
        k,
        """
        %t: int32 = tid(0:int32, 2:int32)
        %t_1: int32 = tid(1:int32, 2:int32)
        %x: float32 = load %v[%t].(1:int32)
        store %v[%t].(2:int32) <- %x
        %t_3: int32 = shape(%v, 0:int32)
        %t_4: int32 = add(%t_3, -1:int32)
        atomic_add %v[%t_4].(0:int32) <- %x
        store %m[%t, %t_1].(0:int32, 1:int32) <- %x
        store %m[%t, %t_1].(1:int32, 0:int32) <- %x
        %t_5: vec<2,float32> = construct(%x, %x)
        %t_6: mat<2,2,float32> = load %m[%t, %t_1]
        %t_7: mat<2,2,float32> = insert_row(%t_6, 1:int32, %t_5)
        store %m[%t, %t_1] <- %t_7
        """,
    )


def test_augmented_elements() -> None:
    @wp.kernel
    def k(a: Floats, x: float):
        a[0] += x
        a[0] -= x
        a[0] *= x
        a[0] /= 2

    check(
        k,
        """
        atomic_add %a[0:int32] <- %x
        atomic_sub %a[0:int32] <- %x
        %t: float32 = load %a[0:int32]
        %t_1: float32 = mul(%t, %x)
        store %a[0:int32] <- %t_1
        %t_2: float32 = load %a[0:int32]
        %t_3: float32 = div(%t_2, 2.0:float32)
        store %a[0:int32] <- %t_3
        """,
    )


def test_atomics_with_and_without_result() -> None:
    @wp.kernel
    def k(a: Floats, m: wp.array2d(dtype=int)):
        wp.atomic_add(a, 0, 1)
        old = wp.atomic_max(m, 1, 2, 3)
        wp.atomic_min(m, (1, 2), old)
        wp.atomic_sub(a, -1, 1.0)

    check(
        k,
        """
        atomic_add %a[0:int32] <- 1.0:float32
        %t: int32 = atomic_max %m[1:int32, 2:int32] <- 3:int32
        atomic_min %m[1:int32, 2:int32] <- %t
        %t_1: int32 = shape(%a, 0:int32)
        %t_2: int32 = add(%t_1, -1:int32)
        atomic_sub %a[%t_2] <- 1.0:float32
        """,
    )


def test_local_components() -> None:
    @wp.kernel
    def k(v: wp.vec3, m: wp.mat22, a: Floats):
        v.x = 1.0
        v[1] *= 2.0
        m[0, 1] -= v.x
        m[1][0] = v[-1]
        m[0] = m[1]
        a[0] = m[0, 0]

    check(
        k,
        """
        %v_1: vec<3,float32> := %v
        %m_1: mat<2,2,float32> := %m
        %t: vec<3,float32> = insert(%v_1, 0:int32, 1.0:float32)
        %v_1: vec<3,float32> := %t
        %t_1: float32 = extract(%v_1, 1:int32)
        %t_2: float32 = mul(%t_1, 2.0:float32)
        %t_3: vec<3,float32> = insert(%v_1, 1:int32, %t_2)
        %v_1: vec<3,float32> := %t_3
        %t_4: float32 = extract(%m_1, 0:int32, 1:int32)
        %t_5: float32 = extract(%v_1, 0:int32)
        %t_6: float32 = sub(%t_4, %t_5)
        %t_7: mat<2,2,float32> = insert(%m_1, 0:int32, 1:int32, %t_6)
        %m_1: mat<2,2,float32> := %t_7
        %t_8: float32 = extract(%v_1, 2:int32)
        %t_9: mat<2,2,float32> = insert(%m_1, 1:int32, 0:int32, %t_8)
        %m_1: mat<2,2,float32> := %t_9
        %t_10: vec<2,float32> = extract_row(%m_1, 1:int32)
        %t_11: mat<2,2,float32> = insert_row(%m_1, 0:int32, %t_10)
        %m_1: mat<2,2,float32> := %t_11
        %t_12: float32 = extract(%m_1, 0:int32, 0:int32)
        store %a[0:int32] <- %t_12
        """,
    )


def test_a_copied_vector_is_a_value() -> None:
    @wp.kernel
    def k(v: Vectors):
        p = v[0]
        q = p
        p[0] = 1.0
        v[1] = q

    check(
        k,
        """
        %t: vec<3,float32> = load %v[0:int32]
        %p: vec<3,float32> := %t
        %t_1: vec<3,float32> = copy(%p)
        %t_2: vec<3,float32> = insert(%p, 0:int32, 1.0:float32)
        %p: vec<3,float32> := %t_2
        store %v[1:int32] <- %t_1
        """.replace("%t_1", "%q"),
    )


def test_short_circuit_only_where_it_shows() -> None:
    @wp.kernel
    def k(a: Floats, n: int):
        if n > 0 and n < 5:
            a[0] = 1.0
        if n > 0 or a[n] > 1.0:
            a[0] = 2.0

    check(
        k,
        """
        %t: bool = gt(%n, 0:int32)
        %t_1: bool = lt(%n, 5:int32)
        %t_2: bool = land(%t, %t_1)
        if %t_2 {
          store %a[0:int32] <- 1.0:float32
        }
        %t_3: bool = gt(%n, 0:int32)
        if %t_3 {
          %r: bool := True:bool
        } else {
          %t_4: int32 = shape(%a, 0:int32)
          %t_5: int32 = wrap_index(%n, %t_4)
          %t_6: float32 = load %a[%t_5]
          %t_7: bool = gt(%t_6, 1.0:float32)
          %r: bool := %t_7
        }
        if %r {
          store %a[0:int32] <- 2.0:float32
        }
        """,
    )


def test_conditional_expressions() -> None:
    @wp.kernel
    def k(a: Floats, x: float, n: int):
        a[0] = x if n > 0 else -x
        a[1] = wp.sqrt(x) if x > 0.0 else 0

    check(
        k,
        """
        %t: bool = gt(%n, 0:int32)
        %t_1: float32 = neg(%x)
        %t_2: float32 = select(%t, %x, %t_1)
        store %a[0:int32] <- %t_2
        %t_3: bool = gt(%x, 0.0:float32)
        if %t_3 {
          %t_4: float32 = sqrt(%x)
          %r: float32 := %t_4
        } else {
          %r: float32 := 0.0:float32
        }
        store %a[1:int32] <- %r
        """,
    )


def test_loops() -> None:
    @wp.kernel
    def k(a: Floats, n: int, big: wp.int64):
        for i in range(n, 0, -2):
            a[i] = 0.0
        for j in range(big):
            if j > 3:
                continue
            a[j] = 1.0
        while n > 0:
            n -= 1

    check(
        k,
        """
        %n_1: int32 := %n
        for %i = %n_1 to 0:int32 by -2:int32 {
          store %a[%i] <- 0.0:float32
        }
        for %j = 0:int64 to %big by 1:int64 {
          %t: bool = gt(%j, 3:int64)
          if %t {
            continue
          }
          store %a[%j] <- 1.0:float32
        }
        while {
          %t_1: bool = gt(%n_1, 0:int32)
        } %t_1 {
          %t_2: int32 = sub(%n_1, 1:int32)
          %n_1: int32 := %t_2
        }
        """,
    )


def test_a_loop_test_that_writes_memory() -> None:
    @wp.kernel
    def k(c: wp.array(dtype=int)):
        while wp.atomic_add(c, 0, 1) < 5:
            c[1] = 0

    check(
        k,
        """
        while {
        } True:bool {
          %t: int32 = atomic_add %c[0:int32] <- 1:int32
          %t_1: bool = lt(%t, 5:int32)
          %t_2: bool = lnot(%t_1)
          if %t_2 {
            break
          }
          store %c[1:int32] <- 0:int32
        }
        """,
    )
