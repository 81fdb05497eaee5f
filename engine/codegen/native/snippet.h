// What native snippets (`func_native`) see: types, arrays and functions in the namespace wp,
// under the names that snippets written for Warp use.
#pragma once
#include "libm.h"

#include "engine.h"

namespace eng {

// The type of the scalars of V, in a place that argument deduction does not look at.
template <class V> using scalar_of = typename V::scalar;

#define ENG_OPERATORS(HEAD, V)                                                               \
    HEAD V operator-(const V& a) { return neg(a); }                                          \
    HEAD V operator*(const V& a, scalar_of<V> s) { return scale(a, s); }                     \
    HEAD V operator*(scalar_of<V> s, const V& a) { return scale(a, s); }                     \
    HEAD V operator/(const V& a, scalar_of<V> s) { return unscale(a, s); }                   \
    HEAD V& operator+=(V& a, const V& b) { return a = a + b; }                               \
    HEAD V& operator-=(V& a, const V& b) { return a = a - b; }                               \
    HEAD V& operator*=(V& a, scalar_of<V> s) { return a = scale(a, s); }                     \
    HEAD V& operator/=(V& a, scalar_of<V> s) { return a = unscale(a, s); }                   \
    HEAD bool operator==(const V& a, const V& b) {                                           \
        bool r = true;                                                                       \
        for (int i = 0; i < V::count; ++i) r &= a.c[i] == b.c[i];                            \
        return r;                                                                            \
    }                                                                                        \
    HEAD bool operator!=(const V& a, const V& b) { return !(a == b); }
#define ENG_COMMA ,
ENG_OPERATORS(ENG_VEC, vec_t<N ENG_COMMA T>)
ENG_OPERATORS(ENG_MAT, mat_t<R ENG_COMMA C ENG_COMMA T>)
#undef ENG_COMMA
#undef ENG_OPERATORS
ENG_MAT vec_t<R, T> operator*(const mat_t<R, C, T>& m, const vec_t<C, T>& v) { return matvec(m, v); }
template <int R, int K, int C, class T>
ENG_INLINE mat_t<R, C, T> operator*(const mat_t<R, K, T>& a, const mat_t<K, C, T>& b) {
    return matmul(a, b);
}

}  // namespace eng

namespace wp {

using int8 = int8_t;
using int16 = int16_t;
using int32 = int32_t;
using int64 = int64_t;
using uint8 = uint8_t;
using uint16 = uint16_t;
using uint32 = uint32_t;
using uint64 = uint64_t;
using float32 = float;
using float64 = double;

template <bool HOLDS> struct require {};
template <> struct require<true> { using type = int; };

// The engine's values with constructors and subscripts; they convert to and fro.
template <int N, class T> struct vec_t : eng::vec_t<N, T> {
    using base = eng::vec_t<N, T>;
    ENG_MEMBER vec_t() : base{} {}
    ENG_MEMBER vec_t(const base& v) : base(v) {}
    ENG_MEMBER explicit vec_t(T s) : base(eng::fill<base>(s)) {}
    template <class... S, typename require<(N > 1 && sizeof...(S) == N)>::type = 0>
    ENG_MEMBER vec_t(S... s) : base{{T(s)...}} {}
    template <class I> ENG_MEMBER T& operator[](I i) { return this->c[i]; }
    template <class I> ENG_MEMBER const T& operator[](I i) const { return this->c[i]; }
};
template <int R, int C, class T> struct mat_t : eng::mat_t<R, C, T> {
    using base = eng::mat_t<R, C, T>;
    ENG_MEMBER mat_t() : base{} {}
    ENG_MEMBER mat_t(const base& m) : base(m) {}
    ENG_MEMBER explicit mat_t(T s) : base(eng::fill<base>(s)) {}
    template <class... S, typename require<(R * C > 1 && sizeof...(S) == R * C)>::type = 0>
    ENG_MEMBER mat_t(S... s) : base{{T(s)...}} {}
    template <class I> ENG_MEMBER T* operator[](I row) { return this->c + row * C; }
    template <class I> ENG_MEMBER const T* operator[](I row) const { return this->c + row * C; }
};

#define WP_NAMES(SUFFIX, T)            \
    using vec2##SUFFIX = vec_t<2, T>;  \
    using vec3##SUFFIX = vec_t<3, T>;  \
    using vec4##SUFFIX = vec_t<4, T>;
#define WP_FLOAT_NAMES(SUFFIX, T)                \
    WP_NAMES(SUFFIX, T)                          \
    using mat22##SUFFIX = mat_t<2, 2, T>;        \
    using mat33##SUFFIX = mat_t<3, 3, T>;        \
    using mat44##SUFFIX = mat_t<4, 4, T>;        \
    using quat##SUFFIX = vec_t<4, T>;            \
    using transform##SUFFIX = vec_t<7, T>;       \
    using spatial_vector##SUFFIX = vec_t<6, T>;  \
    using spatial_matrix##SUFFIX = mat_t<6, 6, T>;
WP_FLOAT_NAMES(, float)
WP_FLOAT_NAMES(f, float)
WP_FLOAT_NAMES(d, double)
WP_NAMES(b, int8_t)
WP_NAMES(s, int16_t)
WP_NAMES(i, int32_t)
WP_NAMES(l, int64_t)
WP_NAMES(ub, uint8_t)
WP_NAMES(us, uint16_t)
WP_NAMES(ui, uint32_t)
WP_NAMES(ul, uint64_t)
#undef WP_FLOAT_NAMES
#undef WP_NAMES

// How a snippet sees a value of the engine.
template <class T> struct seen_t { using type = T; };
template <int N, class T> struct seen_t<eng::vec_t<N, T>> { using type = vec_t<N, T>; };
template <int R, int C, class T> struct seen_t<eng::mat_t<R, C, T>> { using type = mat_t<R, C, T>; };
template <class T> using seen = typename seen_t<T>::type;

struct shape_t {
    int dims[4];
    ENG_MEMBER int operator[](int d) const { return dims[d]; }
};

// What stands in for an element outside of an array: NaN, and 0 for integers.
template <class T> struct outside_t {
    ENG_MEMBER static T value() { return eng::is_float<T> ? T(eng::quiet_nan<double>()) : T(0); }
};
template <int N, class T> struct outside_t<vec_t<N, T>> {
    ENG_MEMBER static vec_t<N, T> value() { return vec_t<N, T>(outside_t<T>::value()); }
};
template <int R, int C, class T> struct outside_t<mat_t<R, C, T>> {
    ENG_MEMBER static mat_t<R, C, T> value() { return mat_t<R, C, T>(outside_t<T>::value()); }
};

// An array: `a[i]` is an element of an array with one dimension and else a view of a row,
// `a(i, j)` is an element. FLAT: the innermost stride is sizeof(T). The elements of a
// GRADIENT that is not there are `*spare`, which is zero before each access; so are those
// outside of a GUARDED array, where it is NaN.
template <class T, int N = 1, bool FLAT = false, bool GRADIENT = false, bool GUARDED = false>
struct array_t {
    using value = T;
    T* data;
    shape_t shape;
    int64_t strides[N];  // in bytes
    T* spare;

    ENG_MEMBER array_t() : data(nullptr), shape{}, strides{}, spare(nullptr) {}
    template <class E>
    ENG_MEMBER explicit array_t(const eng::array_t<E, N, FLAT>& a, T* other = nullptr,
                                bool absent = false)
        : data(absent ? nullptr : reinterpret_cast<T*>(a.data)), shape{}, spare(other) {
        for (int d = 0; d < N; ++d) shape.dims[d] = int(a.shape[d]), strides[d] = a.strides[d];
    }

    template <class I> ENG_MEMBER decltype(auto) operator[](I i) const {
        if constexpr (N == 1) {
            return (*this)(i);
        } else {
            if (GUARDED && (i < 0 || i >= shape.dims[0])) return outside();
            array_t<T, N - 1, FLAT, GRADIENT, GUARDED> row;
            if (data) row.data = reinterpret_cast<T*>(bytes() + int64_t(i) * strides[0]);
            for (int d = 1; d < N; ++d) {
                row.shape.dims[d - 1] = shape.dims[d];
                row.strides[d - 1] = strides[d];
            }
            row.spare = spare;
            return row;
        }
    }
    template <class... I> ENG_MEMBER T& operator()(I... i) const {
        static_assert(sizeof...(I) == N, "one index for each dimension of the array");
        const int64_t index[] = {int64_t(i)...};
        if (GRADIENT && !data) return *spare = T{}, *spare;
        if (GUARDED) {
            bool inside = data;
            for (int d = 0; d < N; ++d) inside &= index[d] >= 0 && index[d] < shape.dims[d];
            if (!inside) return *spare = outside_t<T>::value(), *spare;
        }
        unsigned char* at = bytes();
        for (int d = 0; d < N - 1; ++d) at += index[d] * strides[d];
        if (FLAT) return reinterpret_cast<T*>(at)[index[N - 1]];
        return *reinterpret_cast<T*>(at + index[N - 1] * strides[N - 1]);
    }

  private:
    // A row that is not there: every index is outside of it.
    ENG_MEMBER array_t<T, N == 1 ? 1 : N - 1, FLAT, GRADIENT, GUARDED> outside() const {
        array_t<T, N == 1 ? 1 : N - 1, FLAT, GRADIENT, GUARDED> row;
        row.spare = spare;
        return row;
    }
    ENG_MEMBER unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(data); }
};

#define WP_ARRAY template <class T, int N, bool F, bool G, bool C
#define WP_VIEW const array_t<T, N, F, G, C>&

// ---- memory

WP_ARRAY, class... I> ENG_INLINE T& index(WP_VIEW a, I... i) { return a(i...); }
WP_ARRAY, class... I> ENG_INLINE T* address(WP_VIEW a, I... i) { return &a(i...); }
template <class T> ENG_INLINE T load(const T* p) { return *p; }
WP_ARRAY, class... I> ENG_INLINE T load(WP_VIEW a, I... i) { return a(i...); }
template <class T> ENG_INLINE void store(T* p, seen<T> value) { *p = value; }
template <class T, bool F, bool G, bool C>
ENG_INLINE void store(const array_t<T, 1, F, G, C>& a, int64_t i, T value) { a(i) = value; }
template <class T, bool F, bool G, bool C>
ENG_INLINE void store(const array_t<T, 2, F, G, C>& a, int64_t i, int64_t j, T value) {
    a(i, j) = value;
}
template <class T, bool F, bool G, bool C>
ENG_INLINE void store(const array_t<T, 3, F, G, C>& a, int64_t i, int64_t j, int64_t k, T value) {
    a(i, j, k) = value;
}

template <class T> struct base_of_t { using type = T; };
template <int N, class T> struct base_of_t<vec_t<N, T>> { using type = eng::vec_t<N, T>; };
template <int R, int C, class T> struct base_of_t<mat_t<R, C, T>> {
    using type = eng::mat_t<R, C, T>;
};
template <class T> ENG_INLINE typename base_of_t<T>::type& base_of(T& x) { return x; }

// Each gives the value before the update: atomic_add(array, i, ..., value), and with a pointer.
#define WP_ATOMIC(name)                                                                        \
    template <class T> ENG_INLINE T name(T* p, typename seen_t<T>::type v) {                   \
        return eng::name(base_of(*p), base_of(v));                                             \
    }                                                                                          \
    template <class T, bool F, bool G, bool C>                                                         \
    ENG_INLINE T name(const array_t<T, 1, F, G, C>& a, int64_t i, typename seen_t<T>::type v) {   \
        return wp::name(&a(i), v);                                                             \
    }                                                                                          \
    template <class T, bool F, bool G, bool C>                                                         \
    ENG_INLINE T name(const array_t<T, 2, F, G, C>& a, int64_t i, int64_t j,                      \
                      typename seen_t<T>::type v) {                                            \
        return wp::name(&a(i, j), v);                                                          \
    }                                                                                          \
    template <class T, bool F, bool G, bool C>                                                         \
    ENG_INLINE T name(const array_t<T, 3, F, G, C>& a, int64_t i, int64_t j, int64_t k,           \
                      typename seen_t<T>::type v) {                                            \
        return wp::name(&a(i, j, k), v);                                                       \
    }                                                                                          \
    template <class T, bool F, bool G, bool C>                                                         \
    ENG_INLINE T name(const array_t<T, 4, F, G, C>& a, int64_t i, int64_t j, int64_t k,           \
                      int64_t l, typename seen_t<T>::type v) {                                 \
        return wp::name(&a(i, j, k, l), v);                                                    \
    }
WP_ATOMIC(atomic_add)
WP_ATOMIC(atomic_sub)
WP_ATOMIC(atomic_min)
WP_ATOMIC(atomic_max)
#undef WP_ATOMIC

// The names that CUDA has; an array stands for its first element.
#define WP_CUDA_ATOMIC(name, to)                                                               \
    template <class T> ENG_INLINE T name(T* p, typename seen_t<T>::type v) {                   \
        return wp::to(p, v);                                                                   \
    }                                                                                          \
    template <class T, bool F, bool G, bool C>                                                         \
    ENG_INLINE T name(const array_t<T, 1, F, G, C>& a, typename seen_t<T>::type v) {              \
        return wp::to(&a(0), v);                                                               \
    }
WP_CUDA_ATOMIC(atomicAdd, atomic_add)
WP_CUDA_ATOMIC(atomicSub, atomic_sub)
WP_CUDA_ATOMIC(atomicMin, atomic_min)
WP_CUDA_ATOMIC(atomicMax, atomic_max)
#undef WP_CUDA_ATOMIC
template <class T> ENG_INLINE T atomicExch(T* p, typename seen_t<T>::type v) {
    return eng::atomic_exch(base_of(*p), base_of(v));
}
template <class T>
ENG_INLINE T atomicCAS(T* p, typename seen_t<T>::type expected, typename seen_t<T>::type v) {
    return eng::atomic_cas(base_of(*p), base_of(v), base_of(expected));
}
#undef WP_VIEW
#undef WP_ARRAY

// ---- functions; those of the C library are there by their own names too

using ENG_STD::acos;
using ENG_STD::asin;
using ENG_STD::atan;
using ENG_STD::atan2;
using ENG_STD::cbrt;
using ENG_STD::ceil;
using ENG_STD::cos;
using ENG_STD::cosh;
using ENG_STD::erf;
using ENG_STD::erfc;
using ENG_STD::exp;
using ENG_STD::floor;
using ENG_STD::isfinite;
using ENG_STD::isinf;
using ENG_STD::isnan;
using ENG_STD::log;
using ENG_STD::log10;
using ENG_STD::log2;
using ENG_STD::pow;
using ENG_STD::rint;
using ENG_STD::round;
using ENG_STD::sin;
using ENG_STD::sinh;
using ENG_STD::sqrt;
using ENG_STD::tan;
using ENG_STD::tanh;
using ENG_STD::trunc;
using eng::abs;
using eng::clamp;
using eng::cross;
using eng::cw_div;
using eng::cw_mul;
using eng::degrees;
using eng::diag;
using eng::dot;
using eng::frac;
using eng::get_diag;
using eng::length;
using eng::length_sq;
using eng::max;
using eng::min;
using eng::normalize;
using eng::outer;
using eng::radians;
using eng::sign;
using eng::skew;
using eng::step;
using eng::trace;
using eng::transpose;

}  // namespace wp
