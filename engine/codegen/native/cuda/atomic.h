// Atomic updates of an element; each gives the value before it. Vectors and matrices are updated
// component by component: each of them is atomic, the whole is not.
#pragma once
#include "array.h"
#include "update.h"

namespace eng {

// Numbers by their bits, in the words that the device compares and swaps.
template <int BYTES> struct word_t;
template <> struct word_t<2> { using type = unsigned short; };
template <> struct word_t<4> { using type = unsigned int; };
template <> struct word_t<8> { using type = unsigned long long; };

// Replaces a number by `next(number)` until no other thread came between.
template <class T> struct swap_t {
    using word = typename word_t<sizeof(T)>::type;
    template <class F> ENG_MEMBER static T of(T& place, const F& next) {
        word* at = reinterpret_cast<word*>(&place);
        word before = *reinterpret_cast<volatile word*>(at);
        for (;;) {
            const word after = reinterpret<word>(next(reinterpret<T>(before)));
            const word seen = after == before ? before : atomicCAS(at, before, after);
            if (seen == before) return reinterpret<T>(before);
            before = seen;
        }
    }
};
// Bytes are swapped with the word around them.
template <class T> struct swap_byte_t {
    template <class F> ENG_MEMBER static T of(T& place, const F& next) {
        const uint64_t address = reinterpret_cast<uint64_t>(&place);
        unsigned int* at = reinterpret_cast<unsigned int*>(address & ~uint64_t(3));
        const int shift = int(address & 3) * 8;
        unsigned int before = *reinterpret_cast<volatile unsigned int*>(at);
        for (;;) {
            const T old = T(uint8_t(before >> shift));
            const unsigned int byte = uint8_t(next(old));
            const unsigned int after = (before & ~(0xffu << shift)) | byte << shift;
            const unsigned int seen = after == before ? before : atomicCAS(at, before, after);
            if (seen == before) return old;
            before = seen;
        }
    }
};
template <> struct swap_t<int8_t> : swap_byte_t<int8_t> {};
template <> struct swap_t<uint8_t> : swap_byte_t<uint8_t> {};
template <> struct swap_t<bool> : swap_byte_t<bool> {};

// Minimum and maximum of two numbers. Of zeros of both signs the minimum is -0 and the maximum 0, so
// that it does not matter which one comes first.
template <bool MAX, class T> ENG_INLINE T extreme(T old, T v) {
    if constexpr (is_float<T>) {
        using word = typename word_t<sizeof(T)>::type;
        const word a = reinterpret<word>(old), b = reinterpret<word>(v);
        if (old == v) return reinterpret<T>(word(MAX ? a & b : a | b));
    }
    return MAX ? update_t<T>::max(old, v) : update_t<T>::min(old, v);
}

// One scalar. What the device has no instruction for goes by compare and swap: minimum and
// maximum of floats too, as NaN counts as missing and what is there stays among equals.
template <class T> struct scalar_atomic_t {
    ENG_MEMBER static T add(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return update_t<T>::add(old, v); });
    }
    ENG_MEMBER static T sub(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return update_t<T>::sub(old, v); });
    }
    ENG_MEMBER static T min(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return extreme<false>(old, v); });
    }
    ENG_MEMBER static T max(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return extreme<true>(old, v); });
    }
    ENG_MEMBER static T and_(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return update_t<T>::and_(old, v); });
    }
    ENG_MEMBER static T or_(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return update_t<T>::or_(old, v); });
    }
    ENG_MEMBER static T xor_(T& p, T v) {
        return swap_t<T>::of(p, [v](T old) { return update_t<T>::xor_(old, v); });
    }
    ENG_MEMBER static T exch(T& p, T v) {
        return swap_t<T>::of(p, [v](T) { return v; });
    }
    // Equal by value: zeros of both signs are, NaN and itself are not.
    ENG_MEMBER static T cas(T& p, T v, T compare) {
        return swap_t<T>::of(p, [v, compare](T old) { return old == compare ? v : old; });
    }
};

// With instructions of the device, in its type of the same bits.
#define ENG_DEVICE(T, D, NAME, FUNCTION) \
    ENG_MEMBER static T NAME(T& p, T v) { return T(FUNCTION(reinterpret_cast<D*>(&p), D(v))); }
#define ENG_DEVICE_INTEGER(T, U)                                                 \
    template <> struct scalar_atomic_t<T> {                                      \
        ENG_DEVICE(T, U, add, atomicAdd)                                         \
        ENG_MEMBER static T sub(T& p, T v) { return add(p, neg(v)); }            \
        ENG_DEVICE(T, T, min, atomicMin)                                         \
        ENG_DEVICE(T, T, max, atomicMax)                                         \
        ENG_DEVICE(T, U, and_, atomicAnd)                                        \
        ENG_DEVICE(T, U, or_, atomicOr)                                          \
        ENG_DEVICE(T, U, xor_, atomicXor)                                        \
        ENG_DEVICE(T, U, exch, atomicExch)                                       \
        ENG_MEMBER static T cas(T& p, T v, T compare) {                          \
            return T(atomicCAS(reinterpret_cast<U*>(&p), U(compare), U(v)));     \
        }                                                                        \
    };
ENG_DEVICE_INTEGER(int32_t, uint32_t)
ENG_DEVICE_INTEGER(uint32_t, uint32_t)
ENG_DEVICE_INTEGER(int64_t, uint64_t)
ENG_DEVICE_INTEGER(uint64_t, uint64_t)
#undef ENG_DEVICE_INTEGER
#undef ENG_DEVICE

// Sums of floats by the device's addition; the rest as any number.
template <class T> struct float_atomic_t : scalar_atomic_t<T> {
    ENG_MEMBER static T add(T& p, T v) { return atomicAdd(&p, v); }
    ENG_MEMBER static T sub(T& p, T v) { return atomicAdd(&p, -v); }
};
template <class T> struct atomic_t : scalar_atomic_t<T> {};
template <> struct atomic_t<float> : float_atomic_t<float> {};
template <> struct atomic_t<double> : float_atomic_t<double> {};

// The components of vectors and matrices.
template <class V> struct atomics_t {
    using one = atomic_t<typename V::scalar>;
#define ENG_COMPONENTS(NAME) \
    ENG_MEMBER static V NAME(V& p, const V& v) { ENG_EACH(V, one::NAME(p.c[i], v.c[i])) }
    ENG_COMPONENTS(add)
    ENG_COMPONENTS(sub)
    ENG_COMPONENTS(min)
    ENG_COMPONENTS(max)
    ENG_COMPONENTS(and_)
    ENG_COMPONENTS(or_)
    ENG_COMPONENTS(xor_)
    ENG_COMPONENTS(exch)
#undef ENG_COMPONENTS
};
template <int N, class T> struct atomic_t<vec_t<N, T>> : atomics_t<vec_t<N, T>> {};
template <int R, int C, class T> struct atomic_t<mat_t<R, C, T>> : atomics_t<mat_t<R, C, T>> {};

#define ENG_ATOMIC(name, update) \
    template <class T> ENG_INLINE T name(T& p, const T& v) { return atomic_t<T>::update(p, v); }
ENG_ATOMIC(atomic_add, add)
ENG_ATOMIC(atomic_sub, sub)
ENG_ATOMIC(atomic_min, min)
ENG_ATOMIC(atomic_max, max)
ENG_ATOMIC(atomic_and, and_)
ENG_ATOMIC(atomic_or, or_)
ENG_ATOMIC(atomic_xor, xor_)
ENG_ATOMIC(atomic_exch, exch)
#undef ENG_ATOMIC

// Zeros for where `seen` was loaded from just before. They come of it, as far as compilers know, so
// that they are not stored while it is on its way: a GPU takes three times as long over that.
template <class T> ENG_INLINE T cleared(const T& seen) {
    using word = typename word_t<sizeof(T)>::type;
    return reinterpret<T>(word(reinterpret<word>(seen) & word(blockIdx.z)));  // of one
}
template <int N, class T> ENG_INLINE vec_t<N, T> cleared(const vec_t<N, T>& seen) {
    vec_t<N, T> out;
    for (int i = 0; i < N; ++i) out.c[i] = cleared(seen.c[i]);
    return out;
}
template <int R, int C, class T> ENG_INLINE mat_t<R, C, T> cleared(const mat_t<R, C, T>& seen) {
    mat_t<R, C, T> out;
    for (int i = 0; i < R * C; ++i) out.c[i] = cleared(seen.c[i]);
    return out;
}

// An array of which each thread has elements of its own, so that nothing need be atomic.
template <class T, int N, bool FLAT> struct own_t : array_t<T, N, FLAT> {};
template <class A> constexpr bool is_own = true;  // such, and what is no memory of the device
template <class T, int N, bool FLAT> constexpr bool is_own<array_t<T, N, FLAT>> = false;

// The same of an element of an array, which says whether that has to be atomic.
#define ENG_UPDATE(name)                                                                  \
    template <class A, class T> ENG_INLINE T atomic_##name(const A&, T& p, const T& v) {   \
        if (!is_own<A>) return atomic_t<T>::name(p, v);                                   \
        const T before = p;                                                               \
        p = update_t<T>::name(before, v);                                                 \
        return before;                                                                    \
    }
ENG_UPDATE(add)
ENG_UPDATE(sub)
#undef ENG_UPDATE

// The same of an element that all threads of a warp may mean: it gets their sum at once. The value
// before is not told.
#ifdef ENG_ONE_BY_ONE
template <int N, class T> ENG_INLINE void add_even(T* p, const T* v) {
    for (int i = 0; i < N; ++i) atomic_t<T>::add(p[i], v[i]);
}
#else
// The sums of N numbers over a warp, all threads of which come here: one does not wait for the other.
template <int N, class T> ENG_INLINE void gather_warp(T* sums) {
    ENG_UNROLL
    for (int apart = 16; apart; apart >>= 1) {
        ENG_UNROLL
        for (int i = 0; i < N; ++i)
            sums[i] = update_t<T>::add(sums[i], __shfl_xor_sync(0xffffffffu, sums[i], apart));
    }
}
template <class T> ENG_INLINE T gather_warp(T v) {
    gather_warp<1>(&v);
    return v;
}
// Of N numbers that lie together, each of which one thread adds then.
template <int N, class T> ENG_INLINE void add_even(T* p, const T* v) {
    const uint64_t at = reinterpret_cast<uint64_t>(p);
    if (__activemask() != 0xffffffffu
        || !__all_sync(0xffffffffu, at == __shfl_sync(0xffffffffu, at, 0))) {
        for (int i = 0; i < N; ++i) atomic_t<T>::add(p[i], v[i]);
        return;
    }
    T sums[N];
    ENG_UNROLL
    for (int i = 0; i < N; ++i) sums[i] = v[i];
    gather_warp<N>(sums);
    const int thread = threadIdx.x % 32;
    T mine = sums[0];
    ENG_UNROLL
    for (int i = 1; i < N; ++i) mine = thread == i ? sums[i] : mine;
    if (thread < N) atomic_t<T>::add(p[thread], mine);
}
#endif
template <class T> constexpr bool is_summed = false;  // what the device adds by itself
template <> constexpr bool is_summed<float> = true;
template <> constexpr bool is_summed<double> = true;

template <int N, class T> ENG_INLINE void add_shared_to(T* p, const T* v) {
    if constexpr (is_summed<T> && N <= 16) {
        add_even<N>(p, v);
    } else {
        for (int i = 0; i < N; ++i)
            if constexpr (is_summed<T>) add_even<1>(p + i, v + i);
            else atomic_t<T>::add(p[i], v[i]);
    }
}
template <class T> ENG_INLINE void add_shared(T& p, const T& v) { add_shared_to<1>(&p, &v); }
template <int N, class T> ENG_INLINE void add_shared(vec_t<N, T>& p, const vec_t<N, T>& v) {
    add_shared_to<N>(p.c, v.c);
}
template <int R, int C, class T>
ENG_INLINE void add_shared(mat_t<R, C, T>& p, const mat_t<R, C, T>& v) {
    add_shared_to<R * C>(p.c, v.c);
}
template <class A, class T> ENG_INLINE void atomic_add_even(const A& a, T& p, const T& v) {
    if (is_own<A>) atomic_add(a, p, v);
    else add_shared(p, v);
}
template <class A, class T> ENG_INLINE void atomic_sub_even(const A& a, T& p, const T& v) {
    if (is_own<A>) atomic_sub(a, p, v);
    else add_shared(p, neg(v));
}

// Stores the value where the place holds `compare`.
template <class T> ENG_INLINE T atomic_cas(T& p, T v, T compare) {
    return atomic_t<T>::cas(p, v, compare);
}

}  // namespace eng
