// What a thread carries: its frames of the launch's memory. A thread that exceeds one is
// abandoned, with an error; nothing grows.
#pragma once
#include "block.h"

namespace eng {

struct frame_t {
    unsigned char* data;
    int64_t size;  // bytes in use
    int64_t cap;
};

struct ctx_t {
    frame_t stack;
    frame_t journal;
    frame_t output;
    int64_t error;
};

// The frame `at`, whose first slot holds how much is in use.
ENG_INLINE frame_t counted(const eng_frames& f, int64_t at) {
    if (f.bytes < 8) return frame_t{nullptr, 0, 0};
    return frame_t{f.data + at * f.bytes + 8, 0, f.bytes - 8};
}
ENG_INLINE int64_t& in_use(const frame_t& f) { return reinterpret_cast<int64_t*>(f.data)[-1]; }

// lane: the number of the CUDA thread, which has one stack for all threads that it runs.
// READS: goes on from the journal of an earlier launch.
template <bool READS> ENG_INLINE ctx_t enter(const eng_launch& L, int64_t k, int64_t lane) {
    const eng_frames& s = L.stack;
    ctx_t c{{s.data + lane * s.bytes, 0, s.bytes}, counted(L.journal, k - L.begin),
            counted(L.output, k - L.begin), error_none};
    if (READS && c.journal.data) c.journal.size = in_use(c.journal);
    return c;
}

// WRITES: leaves a journal.
template <bool WRITES> ENG_INLINE void leave(const eng_launch& L, int64_t k, const ctx_t& c) {
    if (WRITES && c.journal.data) in_use(c.journal) = c.journal.size;
    if (c.output.data) in_use(c.output) = c.output.size;
    L.ended[k - L.begin] = (unsigned char)(c.error);
    if (c.error) atomicMax(L.error, c.error);
}

// Whether a launch leaves a thread out.
ENG_INLINE bool skips(const eng_launch& L, int64_t k) {
    return L.again && L.ended[k - L.begin] != L.again;
}

template <class T> ENG_INLINE bool append(ctx_t& c, frame_t& f, const T& value, error_t limit) {
    constexpr int64_t n = slot_bytes<T>;
    if (f.size + n > f.cap) {
        c.error = limit;
        return false;
    }
    memcpy(f.data + f.size, &value, sizeof(T));
    f.size += n;
    return true;
}

// Frames have no more than they have.
template <class T> ENG_INLINE bool append_beyond(ctx_t&, frame_t&, const T&) { return false; }

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
        memcpy(&value, c.journal.data + at, sizeof(T));
    } else {
        c.error = error_journal;
    }
    return value;
}

}  // namespace eng
