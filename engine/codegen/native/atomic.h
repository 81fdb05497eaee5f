// Atomic updates of an element; each gives the value before it. A launch runs on one
// thread of the CPU, so that these are plain updates here.
#pragma once
#include "mat.h"

namespace eng {

// Componentwise for vectors and matrices.
template <class T> struct update_t {
    ENG_MEMBER static T add(T a, T b) { return T(a + b); }
    ENG_MEMBER static T sub(T a, T b) { return T(a - b); }
    ENG_MEMBER static T min(T a, T b) { return eng::min(a, b); }
    ENG_MEMBER static T max(T a, T b) { return eng::max(a, b); }
};
template <class V> struct updates_t {
    ENG_MEMBER static V add(const V& a, const V& b) { return a + b; }
    ENG_MEMBER static V sub(const V& a, const V& b) { return a - b; }
    ENG_MEMBER static V min(const V& a, const V& b) { return min_vec(a, b); }
    ENG_MEMBER static V max(const V& a, const V& b) { return max_vec(a, b); }
};
template <int N, class T> struct update_t<vec_t<N, T>> : updates_t<vec_t<N, T>> {};
template <int R, int C, class T> struct update_t<mat_t<R, C, T>> : updates_t<mat_t<R, C, T>> {};

#define ENG_ATOMIC(kind)                                                \
    template <class T> ENG_INLINE T atomic_##kind(T& place, const T& value) { \
        const T before = place;                                         \
        place = update_t<T>::kind(before, value);                       \
        return before;                                                  \
    }
ENG_ATOMIC(add)
ENG_ATOMIC(sub)
ENG_ATOMIC(min)
ENG_ATOMIC(max)
#undef ENG_ATOMIC

}  // namespace eng
