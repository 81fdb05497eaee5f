// Arguments as kernels read them, and the announcement of writes.
#pragma once
#include "interpreter.h"

namespace {

enum { ARRAY, FLOAT32, FLOAT64, INT32, INT64 };

// What Python has packed into words: see `engine.accel.launcher`.
struct kinds_t {
    int64_t count;
    struct { object* kind; int64_t code; } of[1];
};

struct run_t {
    void (*entry)(const unsigned char*, eng_launch*);
    const eng_launch* begin;
    const unsigned char* bound;
    int64_t bound_size;
    int64_t soon;  // it ends before another thread of Python could begin
    int64_t count;
    int64_t marked[1];
};

// An array's bytes behind others; their number after that, -1 where it does not fit.
int64_t append(object* a, unsigned char* to, int64_t size) {
    object* const packed = slot(a, A_PACKED);
    if (!packed) return -1;
    const int64_t n = py.bytes_size(packed);
    if (n < 0 || size + n > MOST) return -1;
    memcpy(to + size, py.bytes_data(packed), n);
    return size + n;
}

// One argument behind others: the same.
int64_t append(object* v, object* kind, int64_t code, unsigned char* to, int64_t size) {
    if (code == ARRAY) {
        const bool fits = type_of(v) == py.array && slot(v, A_IR) == kind;
        return fits ? append(v, to, size) : -1;
    }
    if (size + 8 > MOST) return -1;
    unsigned char bytes[8] = {};
    if (code == FLOAT32 || code == FLOAT64) {
        if (type_of(v) != py.real) return -1;
        const double x = py.as_double(v);
        const float y = static_cast<float>(x);
        code == FLOAT32 ? memcpy(bytes, &y, 4) : memcpy(bytes, &x, 8);
    } else {
        if (type_of(v) != py.integer) return -1;
        const long long x = py.as_long(v);
        if (x == -1 && py.error()) return -1;
        if (code == INT32 && (x < INT32_MIN || x > INT32_MAX)) return -1;
        memcpy(bytes, &x, code == INT32 ? 4 : 8);
    }
    memcpy(to + size, bytes, 8);
    return size + 8;
}

// Whether an array is one whose writes are announced here: as `Plan.check_written` asks.
bool may_write(object* a) {
    object* const s = a == py.none ? nullptr : slot(a, A_STORAGE);
    return s && slot(a, A_CONTIGUOUS) == py.yes && slot(s, S_WRITABLE) == py.yes
        && slot(s, S_GUARD) == py.none;
}

constexpr long long PIECE = 1 << 14, PART = 256;  // `chunks.SIZE` and `LEAST`

// `Hold.materialise` and `Storage._release_hold` where a copy of all of the storage is due; false
// where Python has to look, and nothing has happened.
bool copied(object* hold, object* storage) {
    if (type_of(hold) != py.hold_type || slot(hold, H_STORAGE) != storage) return false;
    const long long lo = number(storage, S_LO), size = number(storage, S_BYTES);
    const bool whole = number(hold, H_LO) == lo && number(hold, H_HI) == lo + size;
    if (size > (whole ? PIECE : PART)) return false;
    object* const limit = py.dict_get(py.settings, py.snapshot_limit);
    const long long total = py.as_long(py.list_item(py.total, 0));
    const long long most = limit && type_of(limit) == py.integer ? py.as_long(limit) : -1;
    // Where too much would be copied, Python says so.
    if (!calm() || total + size > most) return false;
    object* parts[] = {
        py.bytes(reinterpret_cast<const char*>(static_cast<intptr_t>(lo)), size),
        py.from_long(total + size), py.from_long(lo + size), py.tuple(1), py.make(py.chunk_type, 0),
    };
    for (object* o : parts) {
        if (o) continue;
        py.clear();
        // A piece without data counts for nothing when it goes.
        for (object* other : parts) if (other) drop(other);
        return false;
    }
    py.list_set(py.total, 0, parts[1]);
    set(parts[4], C_DATA, parts[0]);
    py.tuple_set(parts[3], 0, parts[4]);
    share(hold, H_START, slot(storage, S_LO));
    set(hold, H_END, parts[2]);
    set(hold, H_CHUNKS, parts[3]);
    share(hold, H_STORAGE, py.none);
    share(storage, S_HOLD, py.none);
    return true;
}

// The version of a storage after some more writes. False where memory ran out.
bool advance(object* storage, int64_t count) {
    object* next = py.from_long(number(storage, S_VERSION) + count);
    if (next) set(storage, S_VERSION, next);
    return next != nullptr;
}

// `Storage.before_write` of a range of addresses. False where that raised an error.
bool announce(object* storage, object* lo, object* hi) {
    object* const reference = slot(storage, S_HOLD);
    bool known = true;
    if (reference != py.none) {
        object* hold = referred(reference);
        if (!hold) {
            share(storage, S_HOLD, py.none);  // it is gone
        } else {
            const bool meets = py.as_long(lo) < number(hold, H_HI)
                && number(hold, H_LO) < py.as_long(hi);
            known = !meets || copied(hold, storage);
            drop(hold);
        }
    }
    if (known) return advance(storage, 1);
    object* method = py.get(storage, py.announce);
    object* came = !method ? nullptr : py.call(method, lo, hi, static_cast<object*>(nullptr));
    if (method) drop(method);
    if (came) drop(came);
    return came != nullptr;
}

// The same of an array.
bool announce(object* a) { return announce(slot(a, A_STORAGE), slot(a, A_LO), slot(a, A_HI)); }

// Runs a kernel, `state` being its launch structure: whether it left nothing there.
bool runs(const run_t& r, const unsigned char* args, eng_launch& state) {
    state = *r.begin;
    void* thread = r.soon ? nullptr : py.save();
    r.entry(args, &state);
    if (thread) py.restore(thread);
    return memcmp(&state, r.begin, sizeof state) == 0;
}

object* as_bytes(const eng_launch& state) {
    return py.bytes(reinterpret_cast<const char*>(&state), sizeof state);
}

}  // namespace
