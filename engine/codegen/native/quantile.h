// Inverse error functions; see engine/builtins/quantile.py for the source.
#pragma once
#include "math.h"

namespace eng {

// Numerator over denominator of degree 7, the highest powers first.
struct ratio_t {
    double top, bottom;
    ENG_MEMBER ratio_t() : top(0.0), bottom(0.0) {}
    ENG_MEMBER ratio_t& of(double r, double a, double b) {
        top = top * r + a;
        bottom = bottom * r + b;
        return *this;
    }
};

ENG_FN double quantile(double q, double tail) {
    constexpr double root_half = 0.70710678118654757;
    ratio_t f;
    if (ENG_LIB(fabs)(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        f.of(r, 2.5090809287301226727e3, 5.2264952788528545610e3)
            .of(r, 3.3430575583588128105e4, 2.8729085735721942674e4)
            .of(r, 6.7265770927008700853e4, 3.9307895800092710610e4)
            .of(r, 4.5921953931549871457e4, 2.1213794301586595867e4)
            .of(r, 1.3731693765509461125e4, 5.3941960214247511077e3)
            .of(r, 1.9715909503065514427e3, 6.8718700749205790830e2)
            .of(r, 1.3314166789178437745e2, 4.2313330701600911252e1)
            .of(r, 3.3871328727963666080e0, 1.0);
        return q * f.top / f.bottom * root_half;
    }
    if (!(tail > 0.0)) return tail == 0.0 ? ENG_LIB(copysign)(infinity<double>(), q) : quiet_nan<double>();
    double r = ENG_LIB(sqrt)(-ENG_LIB(log)(tail));
    if (r <= 5.0) {
        r = r - 1.6;
        f.of(r, 7.74545014278341407640e-4, 1.05075007164441684324e-9)
            .of(r, 2.27238449892691845833e-2, 5.47593808499534494600e-4)
            .of(r, 2.41780725177450611770e-1, 1.51986665636164571966e-2)
            .of(r, 1.27045825245236838258e0, 1.48103976427480074590e-1)
            .of(r, 3.64784832476320460504e0, 6.89767334985100004550e-1)
            .of(r, 5.76949722146069140550e0, 1.67638483018380384940e0)
            .of(r, 4.63033784615654529590e0, 2.05319162663775882187e0)
            .of(r, 1.42343711074968357734e0, 1.0);
    } else {
        r = r - 5.0;
        f.of(r, 2.01033439929228813265e-7, 2.04426310338993978564e-15)
            .of(r, 2.71155556874348757815e-5, 1.42151175831644588870e-7)
            .of(r, 1.24266094738807843860e-3, 1.84631831751005468180e-5)
            .of(r, 2.65321895265761230930e-2, 7.86869131145613259100e-4)
            .of(r, 2.96560571828504891230e-1, 1.48753612908506148525e-2)
            .of(r, 1.78482653991729133580e0, 1.36929880922735805310e-1)
            .of(r, 5.46378491116411436990e0, 5.99832206555887937690e-1)
            .of(r, 6.65790464350110377720e0, 1.0);
    }
    return ENG_LIB(copysign)(f.top / f.bottom * root_half, q);
}

// In double precision for every type, then rounded.
template <class T> ENG_INLINE T erfinv(T x) {
    const double v = double(x);
    return T(quantile(0.5 * v, 0.5 * (1.0 - ENG_LIB(fabs)(v))));
}
template <class T> ENG_INLINE T erfcinv(T x) {
    const double v = double(x);
    return T(quantile(0.5 * (1.0 - v), v < 1.0 ? 0.5 * v : 0.5 * (2.0 - v)));
}

}  // namespace eng
