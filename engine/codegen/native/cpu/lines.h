// Lines of memory that go out whole, so that the processor reads none of them.
#pragma once
#include "platform.h"

namespace eng {

#if defined(__AVX__) && defined(__x86_64__)
typedef float line_t __attribute__((vector_size(32)));
ENG_INLINE void stream_part(unsigned char* to, const unsigned char* from) {
    line_t x;
    ENG_LIB(memcpy)(&x, from, sizeof(x));
#if defined(__clang__)
    __builtin_nontemporal_store(x, reinterpret_cast<line_t*>(to));
#else
    __builtin_ia32_movntps256(reinterpret_cast<float*>(to), x);
#endif
}
ENG_INLINE void stream_end() { __builtin_ia32_sfence(); }
constexpr bool streams = true;
#else
ENG_INLINE void stream_part(unsigned char* to, const unsigned char* from) { ENG_LIB(memcpy)(to, from, 32); }
ENG_INLINE void stream_end() {}
constexpr bool streams = false;
#endif

// Writes bytes, lines whole; `stream_end` has to follow at last.
ENG_ALONE void stream_bytes(unsigned char* to, const unsigned char* from, int64_t left) {
    const int64_t rest = int64_t(-reinterpret_cast<uint64_t>(to) % 64), head = rest < left ? rest : left;
    ENG_LIB(memcpy)(to, from, uint64_t(head));
    for (to += head, from += head, left -= head; left >= 64; left -= 64, to += 64, from += 64) {
        stream_part(to, from);
        stream_part(to + 32, from + 32);
    }
    ENG_LIB(memcpy)(to, from, uint64_t(left));
}

}  // namespace eng
