// Values of several threads at once, one lane a thread, component after component.
#pragma once
#include "mat.h"
#include "saved.h"

namespace eng {

template <class T, int W> struct lanes_t {
    alignas(64) T v[W];
    ENG_MEMBER T get(int64_t l) const { return v[l]; }
    ENG_MEMBER void set(int64_t l, T x) { v[l] = x; }
};
template <class R, class S, int W> struct parts_t {
    alignas(64) S c[R::count][W];
    ENG_MEMBER R get(int64_t l) const {
        R r;
        ENG_UNROLL for (int i = 0; i < R::count; ++i) r.c[i] = c[i][l];
        return r;
    }
    ENG_MEMBER void set(int64_t l, const R& x) {
        ENG_UNROLL for (int i = 0; i < R::count; ++i) c[i][l] = x.c[i];
    }
};
template <int N, class T, int W>
struct lanes_t<vec_t<N, T>, W> : parts_t<vec_t<N, T>, T, W> {};
template <int R, int C, class T, int W>
struct lanes_t<mat_t<R, C, T>, W> : parts_t<mat_t<R, C, T>, T, W> {};

// The sum of the first n, in an order that n alone decides: 16 sums side by side, then these.
template <class T, int W> ENG_INLINE T sum_of(const T (&v)[W], int64_t n) {
    T s[16];
    // What changes nothing where it is added.
    for (int l = 0; l < 16; ++l) s[l] = is_float<T> ? T(-0.0) : T(0);
    int64_t b = 0;
    for (; b + 16 <= n; b += 16) {
        for (int l = 0; l < 16; ++l) s[l] = T(s[l] + v[b + l]);
    }
    for (int64_t l = b; l < n; ++l) s[l - b] = T(s[l - b] + v[l]);
    for (int l = 0; l < 8; ++l) s[l] = T(s[l] + s[l + 8]);
    for (int l = 0; l < 4; ++l) s[l] = T(s[l] + s[l + 4]);
    return T(T(s[0] + s[2]) + T(s[1] + s[3]));
}
template <class T, int W> ENG_INLINE T sum(const lanes_t<T, W>& x, int64_t n) {
    return sum_of(x.v, n);
}
template <class R, class S, int W> ENG_INLINE R sum_parts(const parts_t<R, S, W>& x, int64_t n) {
    R r;
    ENG_UNROLL for (int i = 0; i < R::count; ++i) r.c[i] = sum_of(x.c[i], n);
    return r;
}
template <int N, class T, int W>
ENG_INLINE vec_t<N, T> sum(const lanes_t<vec_t<N, T>, W>& x, int64_t n) { return sum_parts(x, n); }
template <int R, int C, class T, int W>
ENG_INLINE mat_t<R, C, T> sum(const lanes_t<mat_t<R, C, T>, W>& x, int64_t n) {
    return sum_parts(x, n);
}

// Whether n lanes say the same.
template <int W> ENG_INLINE bool agree(const lanes_t<bool, W>& x, int64_t n) {
    int64_t count = 0;
    for (int64_t l = 0; l < n; ++l) count += x.v[l];
    return count == 0 || count == n;
}

template <class L, class T> ENG_INLINE L same(const T& value, int64_t width) {
    L r{};
    for (int64_t l = 0; l < width; ++l) r.set(l, value);
    return r;
}

// What was pushed last.
template <class L> ENG_INLINE void take(ctx_t& c, L& value) {
    if (ENG_LIKELY(c.stack.size >= slot_bytes<L>)) {
        c.stack.size -= slot_bytes<L>;
        ENG_LIB(memcpy)(&value, c.stack.data + c.stack.size, sizeof(L));
    } else {
        c.error = error_journal;
    }
}

}  // namespace eng
