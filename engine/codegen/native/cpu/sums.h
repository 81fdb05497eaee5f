// Sums of many threads: each of some threads that follow each other has a number of its own, a lane,
// and these are added up in an order that the launch decides.
#pragma once
#include "bits.h"

namespace eng {

// What changes nothing when it is added, not even -0. Its bits tell that nothing was added, or
// nothing that shows.
template <class T> struct sum_t {
    static constexpr int count = 1;
    using scalar = T;
    using word = T;  // as wide as it
    ENG_MEMBER static T blank() { return is_float<T> ? T(-0.0) : T(0); }
    ENG_MEMBER static bool is_blank(T x) { return x == T(0); }
};
template <> struct sum_t<float> {
    static constexpr int count = 1;
    using scalar = float;
    using word = uint32_t;
    ENG_MEMBER static float blank() { return -0.0f; }
    ENG_MEMBER static bool is_blank(float x) { return reinterpret<uint32_t>(x) == 0x80000000u; }
};
template <> struct sum_t<double> {
    static constexpr int count = 1;
    using scalar = double;
    using word = uint64_t;
    ENG_MEMBER static double blank() { return -0.0; }
    ENG_MEMBER static bool is_blank(double x) {
        return reinterpret<uint64_t>(x) == 0x8000000000000000u;
    }
};
template <int N, class T> struct sum_t<vec_t<N, T>> {
    static constexpr int count = N;
    using scalar = T;
    ENG_MEMBER static vec_t<N, T> blank() { return fill<vec_t<N, T>>(sum_t<T>::blank()); }
};
template <int R, int C, class T> struct sum_t<mat_t<R, C, T>> {
    static constexpr int count = R * C;
    using scalar = T;
    ENG_MEMBER static mat_t<R, C, T> blank() { return fill<mat_t<R, C, T>>(sum_t<T>::blank()); }
};

ENG_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Of scalars, and not inlined: they are the same for all arrays of a type.
template <class S> ENG_ALONE void clear_all(S* ENG_ONLY at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) at[i] = sum_t<S>::blank();
}
template <class S> ENG_ALONE void add_all(S* ENG_ONLY to, const S* ENG_ONLY from, int64_t n) {
    using W = typename sum_t<S>::word;
    W gaps = 0;
    for (int64_t i = 0; i < n; ++i) gaps = W(gaps | W(sum_t<S>::is_blank(from[i])));
    if (!gaps) {  // mostly, and processors are slow at stores of parts of a vector
        for (int64_t i = 0; i < n; ++i) to[i] = S(to[i] + from[i]);
        return;
    }
    for (int64_t i = 0; i < n; ++i)
        if (!sum_t<S>::is_blank(from[i])) to[i] = S(to[i] + from[i]);
}

template <class S> ENG_ALONE void fold_all(S* ENG_ONLY to, S* ENG_ONLY from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        to[i] = S(to[i] + from[i]);
        from[i] = sum_t<S>::blank();
    }
}

template <class T> ENG_INLINE void clear(T* lanes, int64_t n) {
    using S = typename sum_t<T>::scalar;
    clear_all(reinterpret_cast<S*>(lanes), n * sum_t<T>::count);
}

// Adds lanes to the elements from `place` on, one to each. What was not touched, is not now.
template <class T> ENG_INLINE void spread(T& place, const T* lanes, int64_t n) {
    using S = typename sum_t<T>::scalar;
    add_all(reinterpret_cast<S*>(&place), reinterpret_cast<const S*>(lanes), n * sum_t<T>::count);
}

// Adds lanes to others, and clears them.
template <class T> ENG_INLINE void fold(T* to, T* lanes, int64_t n) {
    using S = typename sum_t<T>::scalar;
    fold_all(reinterpret_cast<S*>(to), reinterpret_cast<S*>(lanes), n * sum_t<T>::count);
}

// Adds all lanes to one element, as a tree: the second half to the first, and so on.
template <class T> ENG_INLINE void gather(T& place, T* lanes, int64_t n) {
    for (int64_t half = 0; n > 1; n = half) {
        half = (n + 1) / 2;
        spread(lanes[0], lanes + half, n - half);
    }
    if (n == 1) spread(place, lanes, 1);
}

// Asks for the memory of as many elements as `from` is the first of, some way on: processors foresee
// less, and nothing beyond a page. There may be none.
template <int N, class T> ENG_INLINE void ask_on(const T& from) {
    constexpr uint64_t far = 1 << 14, bytes = uint64_t(N) * sizeof(T);
    const uint64_t at = reinterpret_cast<uint64_t>(&from) + far;
    ENG_UNROLL
    for (uint64_t k = 0; k < bytes; k += 64) __builtin_prefetch(reinterpret_cast<const void*>(at + k));
}

}  // namespace eng
