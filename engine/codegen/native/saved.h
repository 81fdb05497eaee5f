// What threads save, and take back: values in slots of 8 bytes each, in memory of the context.
#pragma once
#include "context.h"

namespace eng {

template <class T> ENG_INLINE bool push(ctx_t& c, const T& value) {
    return append(c, c.stack, value, error_stack);
}

// The same where the thread has had effects: only where memory runs out it is abandoned.
template <class T> ENG_INLINE bool push_sure(ctx_t& c, const T& value) {
    return ENG_LIKELY(append(c, c.stack, value, error_stack)) || append_beyond(c, c.stack, value);
}

// Pushes and pops pair up; an empty stack gives zero instead of foreign memory.
template <class T> ENG_INLINE T pop(ctx_t& c) {
    T value{};
    if (ENG_LIKELY(c.stack.size >= slot_bytes<T>)) {
        c.stack.size -= slot_bytes<T>;
        load(c.stack, c.stack.size, value);
    } else {
        c.error = error_journal;
    }
    return value;
}

template <class T> ENG_INLINE bool journal_write(ctx_t& c, const T& value) {
    return append(c, c.journal, value, error_journal_limit);
}

template <class T> struct slots_t {
    unsigned char bytes[slot_bytes<T>];
};

// One number of a message: which it is, or a value of it. Nothing else is told: what is left of
// a slot is zero.
template <class T> ENG_INLINE bool tell(ctx_t& c, const T& value) {
    slots_t<T> whole{};
    ENG_LIB(memcpy)(&whole, &value, sizeof(T));
    return append(c, c.output, whole, error_memory);
}

}  // namespace eng
