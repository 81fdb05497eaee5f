// What atomic updates make of an element and a value.
#pragma once
#include "bits.h"

namespace eng {

// Componentwise for vectors and matrices.
template <class T> struct update_t {
    ENG_MEMBER static T add(T a, T b) { return T(a + b); }
    ENG_MEMBER static T sub(T a, T b) { return T(a - b); }
    // What is there stays, unless the value is less, or what is there is no number.
    ENG_MEMBER static T min(T a, T b) { return eng::min(b, a); }
    ENG_MEMBER static T max(T a, T b) { return eng::max(b, a); }
    ENG_MEMBER static T and_(T a, T b) { return T(a & b); }
    ENG_MEMBER static T or_(T a, T b) { return T(a | b); }
    ENG_MEMBER static T xor_(T a, T b) { return T(a ^ b); }
};
template <class V> struct updates_t {
    ENG_MEMBER static V add(const V& a, const V& b) { return a + b; }
    ENG_MEMBER static V sub(const V& a, const V& b) { return a - b; }
    ENG_MEMBER static V min(const V& a, const V& b) { return min_vec(b, a); }
    ENG_MEMBER static V max(const V& a, const V& b) { return max_vec(b, a); }
    ENG_MEMBER static V and_(const V& a, const V& b) { return bitand_vec(a, b); }
    ENG_MEMBER static V or_(const V& a, const V& b) { return bitor_vec(a, b); }
    ENG_MEMBER static V xor_(const V& a, const V& b) { return bitxor_vec(a, b); }
};
template <int N, class T> struct update_t<vec_t<N, T>> : updates_t<vec_t<N, T>> {};
template <int R, int C, class T> struct update_t<mat_t<R, C, T>> : updates_t<mat_t<R, C, T>> {};

}  // namespace eng
