// Functions of float64 without branches and without fma, as vmath.h has of float32.
#pragma once
#include "vmath.h"

namespace eng {
namespace vm {

constexpr int64_t SIGN64 = int64_t(0x8000000000000000ull);
ENG_INLINE double magnitude(double x) { return double_of(bits_of(x) & ~SIGN64); }

// Up to here two parts of pi / 2 of 33 bits, times a count, are exact.
constexpr double FAST64 = 1e6;

// sin(x + quarters * pi / 2) for |x| <= FAST64. `rest` is what rounding takes from the reduced
// argument r, and the last part of pi / 2.
template <class V> ENG_INLINE V sine64(V x, int32_t quarters) {
    const V t = madd(x, all<V>(0.6366197723675814), all<V>(ROUND64));
    const V k = t - ROUND64;
    const V high = x - k * 1.5707963267341256;
    const V low = k * 6.077100506303966e-11;
    const V r = high - low;
    const V rest = ((high - r) - low) - k * 2.0222662487959506e-21;
    const ints_of<V> n = bits_of(t) + quarters;
    const V s = r * r;
    const V c = 1.0 - 0.5 * s;
    const V lost = (1.0 - c) - 0.5 * s;  // what rounding took from c
    const V q = (r * s) * poly(s, -0.16666666666666666, 0.008333333333333321,
                               -0.00019841269841253608, 2.755731921342411e-06,
                               -2.5052104709781917e-08, 1.6058340666525266e-10,
                               -7.577399757890263e-13);
    const V odd = r + madd(rest, c, q);
    const V p = poly(s, 0.04166666666666659, -0.0013888888888872607, 2.4801587288496827e-05,
                     -2.755731405798558e-07, 2.0875682075698697e-09, -1.135745901586002e-11);
    const V even = c + (madd(s * s, p, -rest * (r + q)) + lost);
    const ints_of<V> y = (n & 1) != 0 ? bits_of(even) : bits_of(odd);
    return value_of(V{}, y ^ ((n << 62) & SIGN64));
}

template <class V> ENG_INLINE V sin64_fast(V x) {
    const V y = sine64(x, 0);
    return x == 0.0 ? x : y;
}
template <class V> ENG_INLINE V cos64_fast(V x) { return sine64(x, 1); }

ENG_INLINE bool is_near(double x) { return magnitude(x) <= FAST64; }
ENG_INLINE double sin64_any(double x) { return is_near(x) ? sin64_fast(x) : ENG_LIB(sin)(x); }
ENG_INLINE double cos64_any(double x) { return is_near(x) ? cos64_fast(x) : ENG_LIB(cos)(x); }

#if defined(ENG_SIMD)
extern "C" {
__attribute__((simd("notinbranch"), const)) double eng_vm_sin64(double x);
__attribute__((simd("notinbranch"), const)) double eng_vm_cos64(double x);
}
ENG_INLINE double sin(double x) { return eng_vm_sin64(x); }
ENG_INLINE double cos(double x) { return eng_vm_cos64(x); }
#else
ENG_INLINE double sin(double x) { return sin64_any(x); }
ENG_INLINE double cos(double x) { return cos64_any(x); }
#endif

ENG_INLINE double power_of_two(int64_t n) { return double_of(int64_t(uint64_t(n + 1023) << 52)); }

ENG_INLINE double exp(double x) {
    const double floor = x < -746.0 ? -746.0 : x;
    const double c = x > 710.0 ? 710.0 : floor;
    const double t = madd(c, 1.4426950408889634, ROUND64);
    const double k = t - ROUND64;
    const double high = c - k * 0.6931471803691238, low = k * 1.9082149292705877e-10;
    const double r = high - low;
    const double rest = (high - r) - low;
    const double p = poly(r, 0.5, 0.16666666666666666, 0.04166666666664996, 0.008333333333331049,
                          0.0013888888896544402, 0.00019841269859422682, 2.4801573412630758e-05,
                          2.7557273339188195e-06, 2.756827811222858e-07, 2.5098263361503953e-08,
                          1.7745325550753402e-09);
    const double y = 1.0 + (r + madd(r * r, p, rest));
    // Halved as what is not negative, where no shift keeps a sign.
    const int64_t n = bits_of(t) - bits_of(ROUND64);
    const int64_t half = int64_t(uint64_t(n + 4096) >> 1) - 2048;
    return y * power_of_two(half) * power_of_two(n - half);
}

ENG_INLINE double log(double x) {
    const bool small = x < 2.2250738585072014e-308;
    const double scaled = small ? x * 18014398509481984.0 : x;  // 2^54
    const int64_t high = bits_of(scaled) - 0x3fe6a09e667f3bcdll;
    const int32_t e = int32_t(uint64_t(high) >> 52 << 20) >> 20;
    const double f = double_of(bits_of(scaled) - int64_t(uint64_t(int64_t(e)) << 52)) - 1.0;
    const double k = double(e) - (small ? 54.0 : 0.0);
    const double s = f / (2.0 + f), z = s * s, h = 0.5 * (f * f);
    const double p = z * poly(z, 0.6666666666666666, 0.4000000000000377, 0.2857142856969544,
                              0.22222222572433803, 0.1818178065404786, 0.1538690338120577,
                              0.1325381416417312, 0.13221512846505265);
    // log(1 + f) = f - (h - s * (h + p)): atanh(s) by its series, without the loss of 2 s.
    const double y = k * 0.6931471803691238 -
                     ((h - (s * (h + p) + k * 1.9082149292705877e-10)) - f);
    const double end = x == 0.0 ? -infinity<double>() : x < 0.0 ? quiet_nan<double>() : x;
    return ((x > 0.0) & (x < infinity<double>())) ? y : end;
}

ENG_INLINE double tanh(double x) {
    const double s = x * x;
    const double small = madd(
        x * s, poly(s, -0.3333333333333333, 0.1333333333333307, -0.053968253968045984,
                    0.021869488527896774, -0.008863235337468965, 0.003592125175820371,
                    -0.001455805937305148, 0.0005898334247129157, -0.0002382150786855742,
                    9.396847064125942e-05, -3.2966278821457665e-05, 7.4482989185958165e-06), x);
    const double a = magnitude(x);
    const double large = 1.0 - 2.0 / (vm::exp(2.0 * a) + 1.0);
    const double signed_large = double_of(bits_of(large) | (bits_of(x) & SIGN64));
    const double y = a < 0.55 ? small : signed_large;
    return x == 0.0 ? x : x == x ? y : x;
}

}  // namespace vm
}  // namespace eng
