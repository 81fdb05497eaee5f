// Scalar arithmetic without traps: integers wrap, division by zero gives zero,
// comparisons treat NaN as the operation table says.
#pragma once
#include "half.h"

namespace eng {

template <class T> ENG_INLINE T neg(T x) {
    if constexpr (is_float<T>) return -x;
    else return T(unsigned_t<T>(0) - unsigned_t<T>(x));
}

template <class T> ENG_INLINE T div(T a, T b) {
    if constexpr (is_float<T>) return a / b;
    else {
        if (b == 0) return T(0);
        if (is_signed<T> && b == T(-1)) return neg(a);
        return T(a / b);
    }
}

ENG_INLINE float mod(float a, float b) { return ENG_LIB(fmodf)(a, b); }
ENG_INLINE double mod(double a, double b) { return ENG_LIB(fmod)(a, b); }
ENG_INLINE half_t mod(half_t a, half_t b) { return half_t(mod(float(a), float(b))); }
ENG_INLINE bfloat_t mod(bfloat_t a, bfloat_t b) { return bfloat_t(mod(float(a), float(b))); }
template <class T> ENG_INLINE T mod(T a, T b) {
    if (b == 0 || (is_signed<T> && b == T(-1))) return T(0);
    return T(a % b);
}

ENG_INLINE float floordiv(float a, float b) { return ENG_LIB(floorf)(a / b); }
ENG_INLINE double floordiv(double a, double b) { return ENG_LIB(floor)(a / b); }
ENG_INLINE half_t floordiv(half_t a, half_t b) { return half_t(ENG_LIB(floorf)(float(a / b))); }
ENG_INLINE bfloat_t floordiv(bfloat_t a, bfloat_t b) {
    return bfloat_t(ENG_LIB(floorf)(float(a / b)));
}
template <class T> ENG_INLINE T floordiv(T a, T b) {
    const T q = div(a, b);
    if constexpr (is_signed<T>) {
        const T r = mod(a, b);
        return r != 0 && is_negative(r) != is_negative(b) ? T(q - 1) : q;
    } else {
        return q;
    }
}

template <class T> ENG_INLINE T replayed(const T& forward, const T&) { return forward; }

ENG_INLINE bool land(bool a, bool b) { return a & b; }
ENG_INLINE bool lor(bool a, bool b) { return a | b; }
ENG_INLINE bool lnot(bool a) { return !a; }

template <class T> ENG_INLINE T bit_and(T a, T b) { return T(a & b); }
template <class T> ENG_INLINE T bit_or(T a, T b) { return T(a | b); }
template <class T> ENG_INLINE T bit_xor(T a, T b) { return T(a ^ b); }
template <class T> ENG_INLINE T bit_not(T a) { return T(~a); }
template <class T> ENG_INLINE T shl(T a, T b) {
    return T(unsigned_t<T>(a) << (unsigned_t<T>(b) & unsigned_t<T>(bits<T> - 1)));
}
template <class T> ENG_INLINE T shr(T a, T b) {
    return T(a >> (unsigned_t<T>(b) & unsigned_t<T>(bits<T> - 1)));
}

template <class T> ENG_INLINE T sign(T x) { return is_negative(x) ? T(-1) : T(1); }
template <class T> ENG_INLINE T step(T x) { return is_negative(x) ? T(1) : T(0); }
template <class T> ENG_INLINE T nonzero(T x) { return x != T(0) ? T(1) : T(0); }

// NaN counts as missing; of equals the second is the result.
template <class T> ENG_INLINE T min(T a, T b) { return ((a < b) | (b != b)) ? a : b; }
template <class T> ENG_INLINE T max(T a, T b) { return ((a > b) | (b != b)) ? a : b; }
template <class T> ENG_INLINE T clamp(T x, T lo, T hi) { return eng::min(eng::max(lo, x), hi); }

template <class T> ENG_INLINE T select(bool c, const T& a, const T& b) { return c ? a : b; }
template <class I, class T> ENG_INLINE T where_int(I c, const T& a, const T& b) {
    return c != 0 ? a : b;
}

// Casts truncate towards zero and saturate; NaN becomes 0; integers wrap.
template <class R, class T> struct cast_to {
    ENG_MEMBER static R of(T x) {
        if constexpr (is_float<T> && !is_float<R>) {
            constexpr T above = T(int_max<R> / 2 + 1) * T(2);
            if (!(x == x)) return R(0);
            if (x >= above) return int_max<R>;
            if (x <= T(int_min<R>)) return int_min<R>;
        }
        return R(x);
    }
};
template <class T> struct cast_to<bool, T> {
    ENG_MEMBER static bool of(T x) { return x != T(0); }
};
template <class R> struct cast_to<R, half_t> {
    ENG_MEMBER static R of(half_t x) { return cast_to<R, float>::of(float(x)); }
};
template <> struct cast_to<bool, half_t> {
    ENG_MEMBER static bool of(half_t x) { return float(x) != 0.0f; }
};
template <class R> struct cast_to<R, bfloat_t> {
    ENG_MEMBER static R of(bfloat_t x) { return cast_to<R, float>::of(float(x)); }
};
template <> struct cast_to<bool, bfloat_t> {
    ENG_MEMBER static bool of(bfloat_t x) { return float(x) != 0.0f; }
};
template <class R, class T> ENG_INLINE R cast(const T& x) { return cast_to<R, T>::of(x); }

}  // namespace eng
