// Singular values, eigenvalues and QR of small matrices; see engine/builtins/decompose.py, which
// does the same operation by operation. Results are packed one after the other, row by row.
#pragma once
#include "mat.h"

namespace eng {

template <class T> constexpr T epsilon = T(sizeof(T) == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16);
constexpr int jacobi_sweeps = 15;

ENG_INLINE float ldexp(float x, int e) { return ENG_LIB(ldexpf)(x, e); }
ENG_INLINE double ldexp(double x, int e) { return ENG_LIB(ldexp)(x, e); }

// Parts of packed results: the R whose components start at k.
template <class R, int N, class T, class I> ENG_INLINE R part(const vec_t<N, T>& p, I k) {
    ENG_EACH(R, p.c[k + i])
}
template <int N, class T, class I, class X>
ENG_INLINE vec_t<N, T> put_part(vec_t<N, T> p, I k, const X& x) {
    ENG_UNROLL for (int i = 0; i < X::count; ++i) p.c[k + i] = x.c[i];
    return p;
}

template <int N, class T> ENG_INLINE vec_t<N, T> column(const mat_t<N, N, T>& m, int j) {
    using V = vec_t<N, T>;
    ENG_EACH(V, m(i, j))
}

// v divided by its length, which is given too; the first axis for zero.
template <int N, class T> ENG_INLINE vec_t<N, T> unit(const vec_t<N, T>& v, T& size) {
    using V = vec_t<N, T>;
    size = length(v);
    const bool none = size == T(0);
    const T by = none ? T(1) : size;
    ENG_EACH(V, none ? T(i == 0) : v.c[i] / by)
}

template <class T> ENG_INLINE vec_t<3, T> perpendicular(const vec_t<3, T>& u) {
    int k = 0;
    for (int i = 1; i < 3; ++i) {
        if (fabs(u.c[i]) < fabs(u.c[k])) k = i;
    }
    const T at = u.c[k];
    vec_t<3, T> v{{-u.c[0] * at, -u.c[1] * at, -u.c[2] * at}};
    v.c[k] = T(1) + v.c[k];
    T size;
    return unit(v, size);
}

template <class T>
ENG_INLINE vec_t<3, T> beside(const vec_t<3, T>& u, vec_t<3, T> v, T& along, T& size) {
    const T least = T(2) * epsilon<T> * length(v);
    along = T(0);
    for (int k = 0; k < 3; ++k) {
        const T d = dot(u, v);
        along = along + d;
        for (int i = 0; i < 3; ++i) v.c[i] = v.c[i] - u.c[i] * d;
    }
    const vec_t<3, T> w = unit(v, size);
    if (size > least) return w;
    size = T(0);
    return perpendicular(u);
}

// Divides the matrix by 2^e, which makes the largest entry one of [1/2, 1). False for Inf and NaN.
template <int N, class T> ENG_INLINE bool rescale(mat_t<N, N, T>& m, int& e) {
    T top = T(0);
    bool ok = true;
    for (int i = 0; i < N * N; ++i) {
        const T size = fabs(m.c[i]);
        ok &= size < infinity<T>();
        top = size > top ? size : top;
    }
    e = 0;
    if (!ok) return false;
    if (sizeof(T) == 4) (void)ENG_LIB(frexpf)(float(top), &e);
    else (void)ENG_LIB(frexp)(double(top), &e);
    for (int i = 0; i < N * N; ++i) m.c[i] = ldexp(m.c[i], -e);
    return true;
}

template <class T> struct rotation_t {
    T t, c, s;
    ENG_MEMBER explicit rotation_t(T zeta) {
        t = copysign(T(1), zeta) / (fabs(zeta) + sqrt(T(1) + zeta * zeta));
        c = T(1) / sqrt(T(1) + t * t);
        s = c * t;
    }
    template <int N> ENG_MEMBER void turn(mat_t<N, N, T>& m, int p, int q) const {
        for (int i = 0; i < N; ++i) {
            const T x = m(i, p), y = m(i, q);
            m(i, p) = c * x - s * y;
            m(i, q) = s * x + c * y;
        }
    }
};

template <int N, class T> ENG_INLINE void swap_columns(mat_t<N, N, T>& m, int p, int q) {
    for (int i = 0; i < N; ++i) {
        const T x = m(i, p);
        m(i, p) = m(i, q);
        m(i, q) = -x;
    }
}

// Rotates the columns of b until they are orthogonal, the longest first; gives the rotation.
template <int N, class T> ENG_FN mat_t<N, N, T> orthogonal_columns(mat_t<N, N, T>& b) {
    mat_t<N, N, T> v = identity<mat_t<N, N, T>>();
    for (int sweep = 0; sweep < jacobi_sweeps; ++sweep) {
        bool done = true;
        for (int p = 0; p < N - 1; ++p) {
            for (int q = p + 1; q < N; ++q) {
                const vec_t<N, T> x = column(b, p), y = column(b, q);
                const T alpha = dot(x, x), beta = dot(y, y), gamma = dot(x, y);
                if (fabs(gamma) <= epsilon<T> * (sqrt(alpha) * sqrt(beta))) continue;
                const rotation_t<T> r((beta - alpha) / (T(2) * gamma));
                r.turn(b, p, q);
                r.turn(v, p, q);
                done = false;
            }
        }
        if (done) break;
    }
    for (int p = 0; p < N - 1; ++p) {
        for (int q = p + 1; q < N; ++q) {
            const vec_t<N, T> x = column(b, p), y = column(b, q);
            if (dot(x, x) < dot(y, y)) {
                swap_columns(b, p, q);
                swap_columns(v, p, q);
            }
        }
    }
    return v;
}

template <class T> ENG_FN vec_t<10, T> svd2(mat_t<2, 2, T> b) {
    int e;
    if (!rescale(b, e)) return fill<vec_t<10, T>>(quiet_nan<T>());
    const mat_t<2, 2, T> v = orthogonal_columns(b);
    T size;
    const vec_t<2, T> u = unit(column(b, 0), size);
    vec_t<2, T> w{{-u.c[1], u.c[0]}};
    T small = dot(w, column(b, 1));
    if (small < T(0)) {
        w = neg(w);
        small = -small;
    }
    return vec_t<10, T>{{u.c[0], w.c[0], u.c[1], w.c[1], ldexp(size, e), ldexp(small, e), v.c[0],
                         v.c[1], v.c[2], v.c[3]}};
}

template <class T> ENG_FN vec_t<21, T> svd3(mat_t<3, 3, T> b) {
    int e;
    if (!rescale(b, e)) return fill<vec_t<21, T>>(quiet_nan<T>());
    const mat_t<3, 3, T> v = orthogonal_columns(b);
    T size, along, middle;
    const vec_t<3, T> u0 = unit(column(b, 0), size);
    const vec_t<3, T> u1 = beside(u0, column(b, 1), along, middle);
    const vec_t<3, T> u2 = cross(u0, u1);
    vec_t<21, T> r;
    for (int i = 0; i < 3; ++i) {
        r.c[3 * i] = u0.c[i];
        r.c[3 * i + 1] = u1.c[i];
        r.c[3 * i + 2] = u2.c[i];
    }
    r.c[9] = ldexp(size, e);
    r.c[10] = ldexp(middle, e);
    r.c[11] = ldexp(dot(u2, column(b, 2)), e);
    return put_part(r, 12, v);
}

// A rotation that makes a symmetric matrix nearly diagonal.
template <class T> ENG_FN mat_t<3, 3, T> first_axes(mat_t<3, 3, T> s) {
    const T limit = T(5.82842712474619), wide_c = T(0.9238795325112867), wide_s = T(0.3826834323650898);
    T v[3] = {T(0), T(0), T(0)}, w = T(1);
    for (int sweep = 0; sweep < 4; ++sweep) {
        for (int turn = 0; turn < 3; ++turn) {
            const int i = turn, j = (turn + 1) % 3, k = (turn + 2) % 3;
            const T off = s(i, j);
            if (off == T(0)) continue;
            T c = T(2) * (s(i, i) - s(j, j)), h = off;
            if (limit * h * h < c * c) {
                const T size = sqrt(c * c + h * h);
                c = c / size;
                h = h / size;
            } else {
                c = wide_c;
                h = wide_s;
            }
            const T cs = c * c - h * h, sn = T(2) * h * c;
            const T x = s(i, i), y = s(j, j);
            s(i, i) = cs * (cs * x + sn * off) + sn * (cs * off + sn * y);
            s(j, j) = cs * (cs * y - sn * off) - sn * (cs * off - sn * x);
            s(i, j) = s(j, i) = cs * (cs * off - sn * x) + sn * (cs * y - sn * off);
            const T p = s(k, i), q = s(k, j);
            s(k, i) = s(i, k) = cs * p + sn * q;
            s(k, j) = s(j, k) = cs * q - sn * p;
            const T vi = v[i], vj = v[j], vk = v[k];
            v[i] = vi * c + vj * h;
            v[j] = vj * c - vi * h;
            v[k] = vk * c + w * h;
            w = w * c - vk * h;
        }
    }
    const T size = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + w * w);
    const T x = v[0] / size, y = v[1] / size, z = v[2] / size;
    w = w / size;
    return {{T(1) - T(2) * (y * y + z * z), T(2) * (x * y - w * z), T(2) * (x * z + w * y),
             T(2) * (x * y + w * z), T(1) - T(2) * (x * x + z * z), T(2) * (y * z - w * x),
             T(2) * (x * z - w * y), T(2) * (y * z + w * x), T(1) - T(2) * (x * x + y * y)}};
}

template <class T> ENG_FN vec_t<12, T> eig3(mat_t<3, 3, T> m) {
    int e;
    if (!rescale(m, e)) return fill<vec_t<12, T>>(quiet_nan<T>());
    mat_t<3, 3, T> a, turned;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) a(i, j) = T(0.5) * (m(i, j) + m(j, i));
    }
    mat_t<3, 3, T> q = first_axes(a);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) m(i, j) = dot(column(q, i), column(a, j));
    }
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            const vec_t<3, T> row{{m(i, 0), m(i, 1), m(i, 2)}};
            turned(i, j) = dot(row, column(q, j));
        }
    }
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) a(i, j) = T(0.5) * (turned(i, j) + turned(j, i));
    }
    for (int sweep = 0; sweep < jacobi_sweeps; ++sweep) {
        bool done = true;
        for (int i = 0; i < 2; ++i) {
            for (int j = i + 1; j < 3; ++j) {
                const T off = a(i, j);
                if (fabs(off) <= epsilon<T> * T(0.125)) continue;
                const rotation_t<T> r((a(j, j) - a(i, i)) / (T(2) * off));
                a(i, i) = a(i, i) - r.t * off;
                a(j, j) = a(j, j) + r.t * off;
                const int k = 3 - i - j;
                const T x = a(k, i), y = a(k, j);
                a(k, i) = a(i, k) = r.c * x - r.s * y;
                a(k, j) = a(j, k) = r.s * x + r.c * y;
                a(i, j) = a(j, i) = T(0);
                r.turn(q, i, j);
                done = false;
            }
        }
        if (done) break;
    }
    vec_t<12, T> r;
    for (int i = 0; i < 3; ++i) r.c[9 + i] = ldexp(a(i, i), e);
    return put_part(r, 0, q);
}

template <class T> ENG_FN vec_t<18, T> qr3(mat_t<3, 3, T> a) {
    int e;
    if (!rescale(a, e)) return fill<vec_t<18, T>>(quiet_nan<T>());
    T size, along, across;
    const vec_t<3, T> q0 = unit(column(a, 0), size);
    const vec_t<3, T> q1 = beside(q0, column(a, 1), along, across);
    const vec_t<3, T> q2 = cross(q0, q1), last = column(a, 2);
    vec_t<18, T> r;
    for (int i = 0; i < 3; ++i) {
        r.c[3 * i] = q0.c[i];
        r.c[3 * i + 1] = q1.c[i];
        r.c[3 * i + 2] = q2.c[i];
    }
    const mat_t<3, 3, T> upper{{ldexp(size, e), ldexp(along, e), ldexp(dot(q0, last), e), T(0),
                                ldexp(across, e), ldexp(dot(q1, last), e), T(0), T(0),
                                ldexp(dot(q2, last), e)}};
    return put_part(r, 9, upper);
}

// Half precision is too coarse to iterate in.
#define ENG_OF_HALF(T, name, n, packed)                                          \
    ENG_INLINE vec_t<packed, T> name(const mat_t<n, n, T>& m) {                  \
        return cast<vec_t<packed, T>>(name(cast<mat_t<n, n, float>>(m)));        \
    }
#define ENG_OF_HALVES(name, n, packed)        \
    ENG_OF_HALF(half_t, name, n, packed)      \
    ENG_OF_HALF(bfloat_t, name, n, packed)
ENG_OF_HALVES(svd2, 2, 10)
ENG_OF_HALVES(svd3, 3, 21)
ENG_OF_HALVES(eig3, 3, 12)
ENG_OF_HALVES(qr3, 3, 18)
#undef ENG_OF_HALVES
#undef ENG_OF_HALF

}  // namespace eng
