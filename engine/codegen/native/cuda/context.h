// What a thread carries: its frames of the launch's memory. A thread that exceeds one is
// abandoned, with an error; nothing grows.
#pragma once
#include "block.h"

namespace eng {

struct watch_t;

struct frame_t {
    unsigned char* data;
    int64_t size;  // bytes in use
    int64_t cap;
};

// Its words lie `step` bytes apart: those of a warp's threads in rows, so that what they save at once
// lies together.
struct stack_t : frame_t {
    int64_t step;
};
constexpr int WORD = 4, WARP = 32;  // bytes, and threads
ENG_INLINE stack_t stack_at(unsigned char* data, int64_t cap, int64_t step = WORD) {
    return stack_t{{data, 0, cap}, step};
}

struct output_t {
    eng_messages to;
    int64_t thread;
};

struct ctx_t {
    stack_t stack;
    frame_t journal;
    output_t output;
    int64_t beyond;
    int64_t error;
    const eng_claims* claims;
    watch_t* watch;  // of a watched kernel: see watch.h
};

// The frame `at`, whose first slot holds how much is in use.
ENG_INLINE frame_t counted(const eng_frames& f, int64_t at) {
    if (f.bytes < 8) return frame_t{nullptr, 0, 0};
    return frame_t{f.data + at * f.bytes + 8, 0, f.bytes - 8};
}
ENG_INLINE int64_t& in_use(const frame_t& f) { return reinterpret_cast<int64_t*>(f.data)[-1]; }

// The stack of a CUDA thread, which has one for all threads that it runs. Blocks are of whole warps,
// unless one thread runs all.
ENG_INLINE stack_t stack_of(const eng_launch& L, int64_t lane) {
    const int64_t cap = L.stack.bytes - L.beyond;
    if (L.in_order) return stack_at(L.stack.data, cap);
    const int64_t in_warp = lane % WARP;
    unsigned char* rows = L.stack.data + (lane - in_warp) * L.stack.bytes;
    return stack_at(rows + in_warp * WORD, cap, WARP * WORD);
}

// READS: goes on from the journal of an earlier launch.
template <bool READS> ENG_INLINE ctx_t enter(const eng_launch& L, int64_t k, const stack_t& stack) {
    ctx_t c{stack,    counted(L.journal, k - L.begin), {L.output, k}, L.beyond, error_none,
            L.claims, nullptr};
    if (READS && c.journal.data) c.journal.size = in_use(c.journal);
    return c;
}

// WRITES: leaves a journal.
template <bool WRITES> ENG_INLINE void leave(const eng_launch& L, int64_t k, const ctx_t& c) {
    if (WRITES && c.journal.data) in_use(c.journal) = c.journal.size;
    if (L.ended) L.ended[k - L.begin] = (unsigned char)(c.error);
    if (c.error) atomicOr(L.error, uint64_t(1) << c.error);
}

// Whether a launch leaves a thread out. In order, none may run before one that was abandoned.
ENG_INLINE bool skips(const eng_launch& L, int64_t k) {
    if (L.again && L.ended[k - L.begin] != L.again) return true;
    if (!L.in_order || !L.ended) return false;
    const uint64_t errors = *reinterpret_cast<volatile const uint64_t*>(L.error);
    if (!(errors >> error_stack & 1)) return false;
    L.ended[k - L.begin] = (unsigned char)(error_stack);
    return true;
}

// Frames are aligned to slots, which the compiler has to be told.
ENG_INLINE void* slot(unsigned char* at) { return __builtin_assume_aligned(at, 8); }

// Put a value into a frame, and take it out. Both places are multiples of 8.
template <class T> ENG_INLINE void save(const frame_t& f, int64_t at, const T& value) {
    memcpy(slot(f.data + at), &value, sizeof(T));
}
template <class T> ENG_INLINE void load(const frame_t& f, int64_t at, T& value) {
    memcpy(&value, slot(f.data + at), sizeof(T));
}

// The same word by word.
ENG_INLINE void* word(const stack_t& f, int64_t at) {
    return __builtin_assume_aligned(f.data + at / WORD * f.step, WORD);
}
template <class T> ENG_INLINE void save(const stack_t& f, int64_t at, const T& value) {
    const auto* from = reinterpret_cast<const unsigned char*>(&value);
    constexpr int whole = sizeof(T) & ~uint64_t(WORD - 1), rest = sizeof(T) - whole;
    ENG_UNROLL
    for (int i = 0; i < whole; i += WORD) memcpy(word(f, at + i), from + i, WORD);
    if constexpr (rest > 0) memcpy(word(f, at + whole), from + whole, rest);
}
template <class T> ENG_INLINE void load(const stack_t& f, int64_t at, T& value) {
    auto* to = reinterpret_cast<unsigned char*>(&value);
    constexpr int whole = sizeof(T) & ~uint64_t(WORD - 1), rest = sizeof(T) - whole;
    ENG_UNROLL
    for (int i = 0; i < whole; i += WORD) memcpy(to + i, word(f, at + i), WORD);
    if constexpr (rest > 0) memcpy(to + whole, word(f, at + whole), rest);
}

template <class T, class F> ENG_INLINE bool append(ctx_t& c, F& f, const T& value, error_t limit) {
    constexpr int64_t n = slot_bytes<T>;
    if (f.size + n > f.cap) {
        c.error = limit;
        return false;
    }
    save(f, f.size, value);
    f.size += n;
    return true;
}

// What follows effects has room of its own. That it is not enough is an error that no other
// launch can mend.
template <class T> ENG_INLINE bool append_beyond(ctx_t& c, stack_t& f, const T& value) {
    f.cap += c.beyond;
    c.beyond = 0;
    c.error = error_none;
    return append(c, f, value, error_memory);
}

// A message's words, a slot each. All that is told is counted, so that losses are known.
template <class T> ENG_INLINE bool append(ctx_t& c, output_t& o, const T& value, error_t limit) {
    constexpr int64_t n = slot_bytes<T> / 8;
    uint64_t words[n];
    memcpy(words, &value, sizeof(words));
    const int64_t at = int64_t(atomicAdd(o.to.used, uint64_t(n)));
    if (at + n > o.to.room) {
        c.error = limit;
        return false;
    }
    for (int64_t i = 0; i < n; ++i) {
        o.to.data[2 * (at + i)] = uint64_t(o.thread);
        o.to.data[2 * (at + i) + 1] = words[i];
    }
    return true;
}

// Whether a thread that has had no effect yet may save `need` more bytes.
ENG_INLINE bool reserve(ctx_t& c, uint64_t need) {
    if (need <= uint64_t(c.stack.cap - c.stack.size)) return true;
    c.error = error_stack;
    return false;
}

template <class T> ENG_INLINE T journal_read(ctx_t& c, int64_t pos) {
    T value{};
    const int64_t at = pos * 8;
    if (at >= 0 && at + slot_bytes<T> <= c.journal.size) {
        load(c.journal, at, value);
    } else {
        c.error = error_journal;
    }
    return value;
}

}  // namespace eng
