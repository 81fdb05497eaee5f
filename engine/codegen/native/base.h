// Ground rules of generated code: how runs end, and what integers and floats are like.
#pragma once
#include "platform.h"

namespace eng {

enum error_t : int64_t {
    error_none = 0,
    error_memory = 1,   // no memory for saved values
    error_journal = 2,  // read of a value that was never saved
    error_index = 3,    // the launch is too large for 32-bit thread indices
    error_stack = 4,    // a thread's saved values exceed the limit
    error_journal_limit = 5,  // the launch's journal exceeds the limit
    error_assert = 6,   // an assertion failed
    error_form = 7,     // nothing has run: the code for these arrays is to be made
};

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<int8_t> { using type = uint8_t; };
template <> struct unsigned_of<int16_t> { using type = uint16_t; };
template <> struct unsigned_of<int32_t> { using type = uint32_t; };
template <> struct unsigned_of<int64_t> { using type = uint64_t; };
template <class T> using unsigned_t = typename unsigned_of<T>::type;

// What <type_traits> and <limits> would say.
template <class T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;
template <class T> constexpr bool is_signed = T(-1) < T(0);
// Compilers warn of a comparison of unsigned integers with 0.
template <class T> ENG_INLINE bool is_negative(T x) {
    if constexpr (is_signed<T>) return x < T(0);
    else return false;
}
template <class T> constexpr int bits = int(sizeof(T)) * 8;
template <class T>
constexpr T int_max = is_signed<T> ? T(unsigned_t<T>(~unsigned_t<T>(0)) >> 1) : T(~T(0));
template <class T> constexpr T int_min = is_signed<T> ? T(-int_max<T> - 1) : T(0);

// Bytes of a value on the stack or in the journal: whole 8-byte slots.
template <class T> constexpr int64_t slot_bytes = (int64_t(sizeof(T)) + 7) & ~int64_t(7);

}  // namespace eng
