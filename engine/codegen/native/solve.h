// Determinants and inverses of 2x2, 3x3 and 4x4 matrices by cofactors.
#pragma once
#include "mat.h"

namespace eng {

template <class T> ENG_INLINE T determinant(const mat_t<2, 2, T>& m) {
    return m(0, 0) * m(1, 1) - m(0, 1) * m(1, 0);
}
template <class T> ENG_INLINE T determinant(const mat_t<3, 3, T>& m) {
    return dot(extract_row(m, 0), cross(extract_row(m, 1), extract_row(m, 2)));
}

// 2x2 minors of the upper (s) and lower (c) two rows: Laplace expansion by row pairs.
template <class T> struct minors_t {
    T s0, s1, s2, s3, s4, s5, c0, c1, c2, c3, c4, c5;
    ENG_MEMBER explicit minors_t(const mat_t<4, 4, T>& m)
        : s0(of(m, 0, 0, 1)), s1(of(m, 0, 0, 2)), s2(of(m, 0, 0, 3)), s3(of(m, 0, 1, 2)),
          s4(of(m, 0, 1, 3)), s5(of(m, 0, 2, 3)), c0(of(m, 2, 0, 1)), c1(of(m, 2, 0, 2)),
          c2(of(m, 2, 0, 3)), c3(of(m, 2, 1, 2)), c4(of(m, 2, 1, 3)), c5(of(m, 2, 2, 3)) {}
    ENG_MEMBER static T of(const mat_t<4, 4, T>& m, int row, int p, int q) {
        return m(row, p) * m(row + 1, q) - m(row + 1, p) * m(row, q);
    }
    ENG_MEMBER T determinant() const {
        return ((((s0 * c5 - s1 * c4) + s2 * c3) + s3 * c2) - s4 * c1) + s5 * c0;
    }
};

template <class T> ENG_INLINE T determinant(const mat_t<4, 4, T>& m) {
    return minors_t<T>(m).determinant();
}

// A singular matrix has the inverse zero.
template <class T> ENG_INLINE mat_t<2, 2, T> inverse(const mat_t<2, 2, T>& m) {
    const T d = determinant(m);
    if (d == T(0)) return fill<mat_t<2, 2, T>>(T(0));
    return scale(mat_t<2, 2, T>{{m(1, 1), -m(0, 1), -m(1, 0), m(0, 0)}}, T(1) / d);
}
template <class T> ENG_INLINE mat_t<3, 3, T> inverse(const mat_t<3, 3, T>& m) {
    const T d = determinant(m);
    if (d == T(0)) return fill<mat_t<3, 3, T>>(T(0));
    const vec_t<3, T> r0 = extract_row(m, 0), r1 = extract_row(m, 1), r2 = extract_row(m, 2);
    const vec_t<3, T> a = cross(r1, r2), b = cross(r2, r0), c = cross(r0, r1);
    return scale(mat_t<3, 3, T>{{a.c[0], b.c[0], c.c[0], a.c[1], b.c[1], c.c[1], a.c[2], b.c[2],
                                 c.c[2]}},
                 T(1) / d);
}
template <class T> ENG_INLINE mat_t<4, 4, T> inverse(const mat_t<4, 4, T>& m) {
    const minors_t<T> k(m);
    const T d = k.determinant();
    if (d == T(0)) return fill<mat_t<4, 4, T>>(T(0));
    return scale(
        mat_t<4, 4, T>{{
            m(1, 1) * k.c5 - m(1, 2) * k.c4 + m(1, 3) * k.c3,
            m(0, 2) * k.c4 - m(0, 1) * k.c5 - m(0, 3) * k.c3,
            m(3, 1) * k.s5 - m(3, 2) * k.s4 + m(3, 3) * k.s3,
            m(2, 2) * k.s4 - m(2, 1) * k.s5 - m(2, 3) * k.s3,
            m(1, 2) * k.c2 - m(1, 0) * k.c5 - m(1, 3) * k.c1,
            m(0, 0) * k.c5 - m(0, 2) * k.c2 + m(0, 3) * k.c1,
            m(3, 2) * k.s2 - m(3, 0) * k.s5 - m(3, 3) * k.s1,
            m(2, 0) * k.s5 - m(2, 2) * k.s2 + m(2, 3) * k.s1,
            m(1, 0) * k.c4 - m(1, 1) * k.c2 + m(1, 3) * k.c0,
            m(0, 1) * k.c2 - m(0, 0) * k.c4 - m(0, 3) * k.c0,
            m(3, 0) * k.s4 - m(3, 1) * k.s2 + m(3, 3) * k.s0,
            m(2, 1) * k.s2 - m(2, 0) * k.s4 - m(2, 3) * k.s0,
            m(1, 1) * k.c1 - m(1, 0) * k.c3 - m(1, 2) * k.c0,
            m(0, 0) * k.c3 - m(0, 1) * k.c1 + m(0, 2) * k.c0,
            m(3, 1) * k.s1 - m(3, 0) * k.s3 - m(3, 2) * k.s0,
            m(2, 0) * k.s3 - m(2, 1) * k.s1 + m(2, 2) * k.s0,
        }},
        T(1) / d);
}

}  // namespace eng
