// Matrices: fixed shape, stored row by row.
#pragma once
#include "vec.h"

namespace eng {

template <int R, int C, class T> struct mat_t {
    using scalar = T;
    static constexpr int count = R * C;
    static constexpr int cols = C;
    T c[R * C];
    template <class I, class J> ENG_MEMBER T& operator()(I i, J j) { return c[i * C + j]; }
    template <class I, class J> ENG_MEMBER T operator()(I i, J j) const { return c[i * C + j]; }
};

#define ENG_MAT template <int R, int C, class T> ENG_HEAVY

template <class V, int R, int C, class T> struct cast_to<V, mat_t<R, C, T>> {
    ENG_MEMBER static V of(const mat_t<R, C, T>& m) {
        ENG_EACH(V, (cast_to<typename V::scalar, T>::of(m.c[i])))
    }
};

template <int R, int C, class T, class I, class J>
ENG_INLINE T extract(const mat_t<R, C, T>& m, I i, J j) {
    return m(inside<R>(i), inside<C>(j));
}
template <int R, int C, class T, class I>
ENG_INLINE vec_t<C, T> extract_row(const mat_t<R, C, T>& m, I row) {
    using V = vec_t<C, T>;
    const auto at = inside<R>(row);
    ENG_EACH(V, m(at, i))
}
template <int R, int C, class T, class I, class J>
ENG_INLINE mat_t<R, C, T> insert(mat_t<R, C, T> m, I i, J j, T s) {
    m(inside<R>(i), inside<C>(j)) = s;
    return m;
}
template <int R, int C, class T, class I>
ENG_INLINE mat_t<R, C, T> insert_row(mat_t<R, C, T> m, I row, const vec_t<C, T>& v) {
    const auto at = inside<R>(row);
    ENG_UNROLL for (int j = 0; j < C; ++j) m(at, j) = v.c[j];
    return m;
}
template <int R, int C, class T, class I, class J>
ENG_INLINE T& item(mat_t<R, C, T>& m, I i, J j) {
    return m(inside<R>(i), inside<C>(j));
}

ENG_MAT mat_t<R, C, T> operator+(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, a.c[i] + b.c[i])
}
ENG_MAT mat_t<R, C, T> operator-(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, a.c[i] - b.c[i])
}
ENG_MAT mat_t<R, C, T> neg(const mat_t<R, C, T>& a) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, neg(a.c[i]))
}
ENG_MAT mat_t<R, C, T> scale(const mat_t<R, C, T>& a, T s) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, a.c[i] * s)
}
ENG_MAT mat_t<R, C, T> unscale(const mat_t<R, C, T>& a, T s) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, div(a.c[i], s))
}
ENG_MAT mat_t<R, C, T> cw_mul(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, a.c[i] * b.c[i])
}
ENG_MAT mat_t<R, C, T> cw_div(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, div(a.c[i], b.c[i]))
}
ENG_MAT mat_t<R, C, T> min_vec(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, eng::min(a.c[i], b.c[i]))
}
ENG_MAT mat_t<R, C, T> max_vec(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, eng::max(a.c[i], b.c[i]))
}

ENG_MAT mat_t<R, C, T> lerp_vec(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b, T t) {
    using M = mat_t<R, C, T>;
    ENG_EACH(M, lerp(a.c[i], b.c[i], t))
}

// Sums start with the first product and go left to right.
ENG_MAT vec_t<R, T> matvec(const mat_t<R, C, T>& m, const vec_t<C, T>& v) {
    vec_t<R, T> r;
    ENG_UNROLL for (int i = 0; i < R; ++i) {
        T s = T(m(i, 0) * v.c[0]);
        ENG_UNROLL for (int j = 1; j < C; ++j) s = T(s + T(m(i, j) * v.c[j]));
        r.c[i] = s;
    }
    return r;
}
ENG_MAT vec_t<C, T> vecmat(const vec_t<R, T>& v, const mat_t<R, C, T>& m) {
    vec_t<C, T> r;
    ENG_UNROLL for (int j = 0; j < C; ++j) {
        T s = T(v.c[0] * m(0, j));
        ENG_UNROLL for (int i = 1; i < R; ++i) s = T(s + T(v.c[i] * m(i, j)));
        r.c[j] = s;
    }
    return r;
}
template <int R, int K, int C, class T>
ENG_HEAVY mat_t<R, C, T> matmul(const mat_t<R, K, T>& a, const mat_t<K, C, T>& b) {
    mat_t<R, C, T> r;
    ENG_UNROLL for (int i = 0; i < R; ++i) {
        ENG_UNROLL for (int j = 0; j < C; ++j) {
            T s = T(a(i, 0) * b(0, j));
            ENG_UNROLL for (int k = 1; k < K; ++k) s = T(s + T(a(i, k) * b(k, j)));
            r(i, j) = s;
        }
    }
    return r;
}
ENG_MAT T ddot(const mat_t<R, C, T>& a, const mat_t<R, C, T>& b) {
    T s = T(a.c[0] * b.c[0]);
    ENG_UNROLL for (int i = 1; i < R * C; ++i) s = T(s + T(a.c[i] * b.c[i]));
    return s;
}

ENG_MAT mat_t<C, R, T> transpose(const mat_t<R, C, T>& m) {
    mat_t<C, R, T> r;
    ENG_UNROLL for (int i = 0; i < R; ++i) {
        ENG_UNROLL for (int j = 0; j < C; ++j) r(j, i) = m(i, j);
    }
    return r;
}
ENG_MAT mat_t<R, C, T> outer(const vec_t<R, T>& a, const vec_t<C, T>& b) {
    mat_t<R, C, T> r;
    ENG_UNROLL for (int i = 0; i < R; ++i) {
        ENG_UNROLL for (int j = 0; j < C; ++j) r(i, j) = T(a.c[i] * b.c[j]);
    }
    return r;
}
ENG_VEC T trace(const mat_t<N, N, T>& m) {
    T s = m(0, 0);
    ENG_UNROLL for (int i = 1; i < N; ++i) s = T(s + m(i, i));
    return s;
}
ENG_VEC mat_t<N, N, T> diag(const vec_t<N, T>& v) {
    mat_t<N, N, T> r;
    ENG_UNROLL for (int i = 0; i < N; ++i) {
        ENG_UNROLL for (int j = 0; j < N; ++j) r(i, j) = i == j ? v.c[i] : T(0);
    }
    return r;
}
ENG_VEC vec_t<N, T> get_diag(const mat_t<N, N, T>& m) {
    using V = vec_t<N, T>;
    ENG_EACH(V, m(i, i))
}
template <class M> ENG_INLINE M identity() {
    static_assert(M::cols * M::cols == M::count, "square");
    using T = typename M::scalar;
    ENG_EACH(M, i % (M::cols + 1) == 0 ? T(1) : T(0))
}
template <class T> ENG_INLINE mat_t<3, 3, T> skew(const vec_t<3, T>& v) {
    return mat_t<3, 3, T>{{T(0), neg(v.c[2]), v.c[1], v.c[2], T(0), neg(v.c[0]), neg(v.c[1]),
                           v.c[0], T(0)}};
}

ENG_MAT bool isnan(const mat_t<R, C, T>& m) {
    bool r = false;
    ENG_UNROLL for (int i = 0; i < R * C; ++i) r |= isnan(m.c[i]);
    return r;
}
ENG_MAT bool isinf(const mat_t<R, C, T>& m) {
    bool r = false;
    ENG_UNROLL for (int i = 0; i < R * C; ++i) r |= isinf(m.c[i]);
    return r;
}
ENG_MAT bool isfinite(const mat_t<R, C, T>& m) {
    bool r = true;
    ENG_UNROLL for (int i = 0; i < R * C; ++i) r &= isfinite(m.c[i]);
    return r;
}

}  // namespace eng
