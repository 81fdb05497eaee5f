// Functions of real numbers, in the precision of their argument.
#pragma once
#include "floats.h"

namespace eng {

#define ENG_MATH_1(name, single, twice) \
    ENG_INLINE float name(float x) { return single(x); } \
    ENG_INLINE double name(double x) { return twice(x); } \
    ENG_INLINE half_t name(half_t x) { return half_t(name(float(x))); } \
    ENG_INLINE bfloat_t name(bfloat_t x) { return bfloat_t(name(float(x))); }
#define ENG_MATH_2(name, single) \
    ENG_INLINE float name(float x, float y) { return single(x, y); } \
    ENG_INLINE double name(double x, double y) { return ENG_LIB(name)(x, y); } \
    ENG_INLINE half_t name(half_t x, half_t y) { return half_t(name(float(x), float(y))); } \
    ENG_INLINE bfloat_t name(bfloat_t x, bfloat_t y) { return bfloat_t(name(float(x), float(y))); }

ENG_MATH_1(sin, ENG_FLOAT(sin), ENG_DOUBLE(sin))
ENG_MATH_1(cos, ENG_FLOAT(cos), ENG_DOUBLE(cos))
ENG_MATH_1(tan, ENG_FLOAT(tan), ENG_LIB(tan))
// Clamped, since rounding takes sines and cosines past 1; NaN stays NaN.
template <class T> ENG_INLINE T unit_clamp(T x) { return x < T(-1) ? T(-1) : x > T(1) ? T(1) : x; }
ENG_INLINE float asin(float x) { return ENG_FLOAT(asin)(unit_clamp(x)); }
ENG_INLINE double asin(double x) { return ENG_LIB(asin)(unit_clamp(x)); }
ENG_INLINE float acos(float x) { return ENG_FLOAT(acos)(unit_clamp(x)); }
ENG_INLINE double acos(double x) { return ENG_LIB(acos)(unit_clamp(x)); }
ENG_INLINE bfloat_t asin(bfloat_t x) { return bfloat_t(asin(float(x))); }
ENG_INLINE bfloat_t acos(bfloat_t x) { return bfloat_t(acos(float(x))); }
ENG_INLINE half_t asin(half_t x) { return half_t(asin(float(x))); }
ENG_INLINE half_t acos(half_t x) { return half_t(acos(float(x))); }
ENG_MATH_1(atan, ENG_FLOAT(atan), ENG_LIB(atan))
ENG_MATH_1(sinh, ENG_FLOAT(sinh), ENG_LIB(sinh))
ENG_MATH_1(cosh, ENG_FLOAT(cosh), ENG_LIB(cosh))
ENG_MATH_1(tanh, ENG_FLOAT(tanh), ENG_DOUBLE(tanh))
ENG_MATH_1(exp, ENG_FLOAT(exp), ENG_DOUBLE(exp))
ENG_MATH_1(log, ENG_FLOAT(log), ENG_DOUBLE(log))
ENG_MATH_1(log2, ENG_FLOAT(log2), ENG_LIB(log2))
ENG_MATH_1(log10, ENG_FLOAT(log10), ENG_LIB(log10))
ENG_MATH_1(sqrt, ENG_LIB(sqrtf), ENG_LIB(sqrt))
ENG_MATH_1(cbrt, ENG_FLOAT(cbrt), ENG_LIB(cbrt))
ENG_MATH_1(erf, ENG_LIB(erff), ENG_LIB(erf))
ENG_MATH_1(erfc, ENG_LIB(erfcf), ENG_LIB(erfc))
ENG_MATH_1(floor, ENG_LIB(floorf), ENG_LIB(floor))
ENG_MATH_1(ceil, ENG_LIB(ceilf), ENG_LIB(ceil))
ENG_MATH_1(trunc, ENG_LIB(truncf), ENG_LIB(trunc))
ENG_MATH_1(round, ENG_LIB(roundf), ENG_LIB(round))
ENG_MATH_1(rint, ENG_LIB(rintf), ENG_LIB(rint))
ENG_MATH_1(fabs, ENG_LIB(fabsf), ENG_LIB(fabs))
ENG_MATH_2(pow, ENG_FLOAT(pow))
ENG_MATH_2(atan2, ENG_FLOAT(atan2))
ENG_MATH_2(copysign, ENG_LIB(copysignf))

#undef ENG_MATH_1
#undef ENG_MATH_2

template <class T> ENG_INLINE T abs(T x) {
    if constexpr (is_float<T>) return fabs(x);
    else return is_negative(x) ? neg(x) : x;
}

template <class T> ENG_INLINE T frac(T x) { return x - trunc(x); }
template <class T> ENG_INLINE T degrees(T x) { return x * T(57.29577951308232); }
template <class T> ENG_INLINE T radians(T x) { return x * T(0.017453292519943295); }
template <class T> ENG_INLINE bool isnan(T x) { return x != x; }
template <class T> ENG_INLINE bool isinf(T x) { return fabs(x) == infinity<T>(); }
template <class T> ENG_INLINE bool isfinite(T x) { return fabs(x) < infinity<T>(); }
template <class T> ENG_INLINE T lerp(T a, T b, T t) { return a * (T(1) - t) + b * t; }
template <class T> ENG_INLINE T smoothstep(T a, T b, T x) {
    const T t = clamp((x - a) / (b - a), T(0), T(1));
    return (t * t) * (T(3) - T(2) * t);
}

}  // namespace eng
