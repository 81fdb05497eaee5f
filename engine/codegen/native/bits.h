// Bits of numbers, and operators on the components of vectors and matrices.
#pragma once
#include "mat.h"

namespace eng {

// Sums of neighbouring bits, pairs, nibbles; the product adds up the bytes.
template <class T> ENG_INLINE int32_t bit_count(T x) {
    uint64_t n = uint64_t(unsigned_t<T>(x));
    n = n - ((n >> 1) & 0x5555555555555555ull);
    n = (n & 0x3333333333333333ull) + ((n >> 2) & 0x3333333333333333ull);
    n = (n + (n >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return int32_t((n * 0x0101010101010101ull) >> 56);
}

template <class R, class T> ENG_INLINE R reinterpret(const T& x) {
    static_assert(sizeof(R) == sizeof(T), "the same number of bytes");
    R r;
    ENG_LIB(memcpy)(&r, &x, sizeof(R));
    return r;
}

#define ENG_BY_COMPONENT(name, f) \
    template <class V> ENG_INLINE V name(const V& a, const V& b) { ENG_EACH(V, f(a.c[i], b.c[i])) }
ENG_BY_COMPONENT(mod_vec, mod)
ENG_BY_COMPONENT(bitand_vec, bit_and)
ENG_BY_COMPONENT(bitor_vec, bit_or)
ENG_BY_COMPONENT(bitxor_vec, bit_xor)
ENG_BY_COMPONENT(shl_vec, shl)
ENG_BY_COMPONENT(shr_vec, shr)
#undef ENG_BY_COMPONENT
template <class V> ENG_INLINE V invert_vec(const V& a) { ENG_EACH(V, bit_not(a.c[i])) }

}  // namespace eng
