// What a thread of a launch carries: the stack of saved values and the journal.
#pragma once
#include "block.h"

namespace eng {

struct watch_t;

// A local copy of the launch's buffers, so that the compiler may keep it in registers.
struct ctx_t {
    eng_buf stack;
    eng_buf journal;
    eng_buf output;
    int64_t frame;  // where the thread's journal entries begin, in bytes
    int64_t cursor;  // the end of the frames that no adjoint thread has taken yet, in bytes
    int64_t error;
    watch_t* watch;  // of a watched kernel, with the linear index of the thread: see watch.h
    int64_t thread;
};

ENG_INLINE ctx_t enter(const eng_launch* L) {
    return ctx_t{L->stack, L->journal, L->output, L->journal.size, L->journal.size, L->error,
                 nullptr, 0};
}

ENG_INLINE void leave(eng_launch* L, const ctx_t& c) {
    L->stack = c.stack;
    L->journal = c.journal;
    L->output = c.output;
    L->error = c.error;
}

// By value, so that the caller's buffer need not live in memory. Doubles the capacity;
// returns a buffer with the old capacity where there is no memory, or the limit is reached.
static __attribute__((noinline, cold, unused)) eng_buf grow(eng_buf b, int64_t need) {
    int64_t cap = b.cap < 4096 ? 4096 : b.cap * 2;
    while (cap < b.size + need) cap *= 2;
    if (b.limit > 0 && cap > b.limit) cap = b.limit;
    if (cap < b.size + need) return b;
    void* data = __builtin_realloc(b.data, uint64_t(cap));
    if (data) {
        b.data = static_cast<unsigned char*>(data);
        b.cap = cap;
    }
    return b;
}

ENG_INLINE bool exceeds(const eng_buf& b, int64_t need) {
    return b.limit > 0 && b.size + need > b.limit;
}

template <class T> ENG_INLINE void load(const eng_buf& b, int64_t at, T& value) {
    ENG_LIB(memcpy)(&value, b.data + at, sizeof(T));
}

// False where memory has run out, or the limit is reached; the thread is abandoned then.
template <class T> ENG_INLINE bool append(ctx_t& c, eng_buf& b, const T& value, error_t limit) {
    constexpr int64_t n = slot_bytes<T>;
    if (__builtin_expect(b.size + n > b.cap, 0)) {
        b = grow(b, n);
        if (b.size + n > b.cap) {
            c.error = exceeds(b, n) ? limit : error_memory;
            return false;
        }
    }
    __builtin_memcpy(b.data + b.size, &value, sizeof(T));
    b.size += n;
    return true;
}

// The same beyond the limit, after that was refused.
template <class T>
static __attribute__((noinline, cold, unused)) bool append_beyond(ctx_t& c, eng_buf& b,
                                                                  const T& value) {
    const int64_t limit = b.limit;
    b.limit = 0;
    c.error = error_none;
    const bool done = append(c, b, value, error_memory);
    b.limit = limit;
    return done;
}

// Whether a thread that has had no effect yet may save `need` more bytes.
ENG_INLINE bool reserve(ctx_t& c, uint64_t need) {
    const int64_t left = c.stack.limit - c.stack.size;
    const bool fits = c.stack.limit <= 0 || (left >= 0 && need <= uint64_t(left));
    if (__builtin_expect(fits, 1)) return true;
    c.error = error_stack;
    return false;
}

// The journal is a sequence of frames, one for each thread in the order in which they ran: the
// thread's entries, then the place where they begin. Adjoint threads take them from the end.
ENG_INLINE bool close_frame(ctx_t& c) {
    if (!append(c, c.journal, c.frame, error_journal_limit)) return false;
    c.frame = c.journal.size;
    return true;
}

// Where threads have frames of a size that is known, room for those of some is made beforehand, so
// that a loop over threads calls nothing: beyond the limit where need be, which is looked at after.
static __attribute__((noinline, cold, unused)) eng_buf grow_beyond(eng_buf b, int64_t need) {
    eng_buf out = grow(b, need);
    const int64_t cap = b.size + need;
    if (out.cap >= cap) return out;
    if (void* data = __builtin_realloc(out.data, uint64_t(cap))) {
        out.data = static_cast<unsigned char*>(data);
        out.cap = cap;
    }
    return out;
}

ENG_INLINE void reserve_frames(ctx_t& c, int64_t need) {
    if (__builtin_expect(c.journal.size + need <= c.journal.cap, 1)) return;
    c.journal = grow_beyond(c.journal, need);
    if (c.journal.size + need > c.journal.cap) c.error = error_memory;
}

ENG_INLINE void check_frames(ctx_t& c) {
    if (exceeds(c.journal, 0)) c.error = error_journal_limit;
}

template <class T> ENG_INLINE void journal_sure(ctx_t& c, const T& value) {
    __builtin_memcpy(c.journal.data + c.journal.size, &value, sizeof(T));
    c.journal.size += slot_bytes<T>;
}

ENG_INLINE void close_sure(ctx_t& c) {
    journal_sure(c, c.frame);
    c.frame = c.journal.size;
}

ENG_INLINE void open_frame(ctx_t& c) {
    if (__builtin_expect(c.cursor < 8, 0)) {
        c.error = error_journal;
        return;
    }
    c.cursor -= 8;
    __builtin_memcpy(&c.frame, c.journal.data + c.cursor, 8);
}

ENG_INLINE void next_frame(ctx_t& c) { c.cursor = c.frame; }

// An adjoint's thread k was abandoned: notes that it and those before it are left to do, with
// their frames of the journal.
ENG_INLINE void abandon(eng_launch* L, ctx_t& c, int64_t k, bool reads) {
    L->end = k + 1;
    c.stack.size = 0;
    if (reads) c.journal.size = c.cursor + 8;
}

template <class T> ENG_INLINE T journal_read(ctx_t& c, int64_t pos) {
    T value{};
    const int64_t at = c.frame + pos * 8;
    if (__builtin_expect(at >= 0 && at + slot_bytes<T> <= c.cursor, 1)) {
        __builtin_memcpy(&value, c.journal.data + at, sizeof(T));
    } else {
        c.error = error_journal;
    }
    return value;
}

}  // namespace eng
