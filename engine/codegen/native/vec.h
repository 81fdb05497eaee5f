// Vectors: a fixed number of components, stored one after the other.
#pragma once
#include "math.h"

namespace eng {

template <int N, class T> struct vec_t {
    using scalar = T;
    static constexpr int count = N;
    T c[N];
};

#define ENG_VEC template <int N, class T> ENG_INLINE
// r.c[i] = EXPR for every component, where EXPR names i.
#define ENG_EACH(R, EXPR)                       \
    R r;                                        \
    ENG_UNROLL for (int i = 0; i < R::count; ++i) r.c[i] = typename R::scalar(EXPR); \
    return r;

// Components of vectors and matrices alike, in order.
template <class R, class... S> ENG_INLINE R construct(S... s) {
    static_assert(sizeof...(S) == R::count, "one scalar a component");
    return R{{typename R::scalar(s)...}};
}
template <class R> ENG_INLINE R fill(typename R::scalar s) { ENG_EACH(R, s) }

template <class R, int N, class T> struct cast_to<R, vec_t<N, T>> {
    ENG_MEMBER static R of(const vec_t<N, T>& v) {
        ENG_EACH(R, (cast_to<typename R::scalar, T>::of(v.c[i])))
    }
};

// The place of one of N components. An index outside is taken as the nearest: what lies beside a
// value in memory is neither read nor written.
template <int N, class I> ENG_INLINE auto inside(I i) -> decltype(+i) {
    using K = decltype(+i);
    const K k = i;
    if (ENG_LIKELY(unsigned_t<K>(k) < unsigned_t<K>(N))) return k;  // one test: a branch that holds
    return k < K(0) ? K(0) : K(N - 1);
}

template <int N, class T, class I> ENG_INLINE T extract(const vec_t<N, T>& v, I i) {
    return v.c[inside<N>(i)];
}
template <int N, class T, class I> ENG_INLINE vec_t<N, T> insert(vec_t<N, T> v, I i, T s) {
    v.c[inside<N>(i)] = s;
    return v;
}
// The component itself, to be written to.
template <int N, class T, class I> ENG_INLINE T& item(vec_t<N, T>& v, I i) {
    return v.c[inside<N>(i)];
}

ENG_VEC vec_t<N, T> operator+(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, a.c[i] + b.c[i])
}
ENG_VEC vec_t<N, T> operator-(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, a.c[i] - b.c[i])
}
ENG_VEC vec_t<N, T> neg(const vec_t<N, T>& a) {
    using R = vec_t<N, T>;
    ENG_EACH(R, neg(a.c[i]))
}
ENG_VEC vec_t<N, T> scale(const vec_t<N, T>& a, T s) {
    using R = vec_t<N, T>;
    ENG_EACH(R, a.c[i] * s)
}
ENG_VEC vec_t<N, T> unscale(const vec_t<N, T>& a, T s) {
    using R = vec_t<N, T>;
    ENG_EACH(R, div(a.c[i], s))
}
ENG_VEC vec_t<N, T> cw_mul(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, a.c[i] * b.c[i])
}
ENG_VEC vec_t<N, T> cw_div(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, div(a.c[i], b.c[i]))
}
ENG_VEC vec_t<N, T> abs_vec(const vec_t<N, T>& a) {
    using R = vec_t<N, T>;
    ENG_EACH(R, abs(a.c[i]))
}
ENG_VEC vec_t<N, T> sign_vec(const vec_t<N, T>& a) {
    using R = vec_t<N, T>;
    ENG_EACH(R, sign(a.c[i]))
}
ENG_VEC vec_t<N, T> min_vec(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, eng::min(a.c[i], b.c[i]))
}
ENG_VEC vec_t<N, T> max_vec(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    using R = vec_t<N, T>;
    ENG_EACH(R, eng::max(a.c[i], b.c[i]))
}

// Sums start with the first product and go left to right.
ENG_VEC T dot(const vec_t<N, T>& a, const vec_t<N, T>& b) {
    T s = T(a.c[0] * b.c[0]);
    ENG_UNROLL for (int i = 1; i < N; ++i) s = T(s + T(a.c[i] * b.c[i]));
    return s;
}
ENG_VEC T length_sq(const vec_t<N, T>& v) { return dot(v, v); }
ENG_VEC T length(const vec_t<N, T>& v) { return sqrt(dot(v, v)); }
ENG_VEC vec_t<N, T> normalize(const vec_t<N, T>& v) {
    using R = vec_t<N, T>;
    const T l = length(v);
    ENG_EACH(R, l == T(0) ? T(0) : v.c[i] / l)
}
ENG_VEC vec_t<N, T> lerp_vec(const vec_t<N, T>& a, const vec_t<N, T>& b, T t) {
    using R = vec_t<N, T>;
    ENG_EACH(R, lerp(a.c[i], b.c[i], t))
}
template <class T> ENG_INLINE vec_t<3, T> cross(const vec_t<3, T>& a, const vec_t<3, T>& b) {
    return vec_t<3, T>{{T(a.c[1] * b.c[2] - a.c[2] * b.c[1]), T(a.c[2] * b.c[0] - a.c[0] * b.c[2]),
                        T(a.c[0] * b.c[1] - a.c[1] * b.c[0])}};
}

ENG_VEC T min_of(const vec_t<N, T>& v) {
    T r = v.c[0];
    ENG_UNROLL for (int i = 1; i < N; ++i) r = eng::min(r, v.c[i]);
    return r;
}
ENG_VEC T max_of(const vec_t<N, T>& v) {
    T r = v.c[0];
    ENG_UNROLL for (int i = 1; i < N; ++i) r = eng::max(r, v.c[i]);
    return r;
}
// The first extreme component; NaN loses against any number.
ENG_VEC uint32_t argmin(const vec_t<N, T>& v) {
    uint32_t at = 0;
    T r = v.c[0];
    ENG_UNROLL for (int i = 1; i < N; ++i) {
        if (v.c[i] < r || (r != r && v.c[i] == v.c[i])) at = uint32_t(i), r = v.c[i];
    }
    return at;
}
ENG_VEC uint32_t argmax(const vec_t<N, T>& v) {
    uint32_t at = 0;
    T r = v.c[0];
    ENG_UNROLL for (int i = 1; i < N; ++i) {
        if (v.c[i] > r || (r != r && v.c[i] == v.c[i])) at = uint32_t(i), r = v.c[i];
    }
    return at;
}

ENG_VEC bool isnan(const vec_t<N, T>& v) {
    bool r = false;
    ENG_UNROLL for (int i = 0; i < N; ++i) r |= isnan(v.c[i]);
    return r;
}
ENG_VEC bool isinf(const vec_t<N, T>& v) {
    bool r = false;
    ENG_UNROLL for (int i = 0; i < N; ++i) r |= isinf(v.c[i]);
    return r;
}
ENG_VEC bool isfinite(const vec_t<N, T>& v) {
    bool r = true;
    ENG_UNROLL for (int i = 0; i < N; ++i) r &= isfinite(v.c[i]);
    return r;
}

}  // namespace eng
