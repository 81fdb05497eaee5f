// What a captured sequence looks at and announces each time: see `engine.runtime.sequences` and
// `engine.tape.replay`. Who calls has asked whether anybody listens.
#pragma once
#include "hold.h"

namespace {

// An item of a tuple, of a class; null for all else.
object* part(object* tuple, int64_t k, object* type) {
    object* const found = py.tuple_item(tuple, k);
    return found && type_of(found) == type ? found : nullptr;
}

// How many tuples there are of a storage and two more objects of certain types; -1 for all else.
int64_t tuples(object* const* given, int64_t n, object* second, object* third) {
    const int64_t count = n == 1 ? length(given[0]) : -1;
    for (int64_t k = 0; k < count; ++k) {
        object* const t = item(given[0], k);
        if (type_of(t) != py.tuple_type || !part(t, 0, py.storage_type)) return -1;
        if (!part(t, 1, second) || !part(t, 2, third)) return -1;
    }
    return count;
}

// hold_all(places): holds on what ranges of storages contain, each (storage, lo, hi).
object* hold_all(object*, object* const* given, int64_t n) {
    const int64_t count = tuples(given, n, py.integer, py.integer);
    if (count < 0) return nothing();
    object* out = py.list(count);
    for (int64_t k = 0; out && k < count; ++k) {
        object* const place = item(given[0], k);
        object* hold = held(py.tuple_item(place, 0), py.tuple_item(place, 1),
                            py.tuple_item(place, 2));
        if (hold) {
            py.list_set(out, k, hold);
        } else {
            py.drop(out);
            out = nullptr;
        }
    }
    return out;
}

// announce_all(writes): announces writes, each (storage, how many, ranges of addresses); True.
object* announce_all(object*, object* const* given, int64_t n) {
    const int64_t count = tuples(given, n, py.integer, py.tuple_type);
    if (count < 0) return nothing();
    for (int64_t k = 0; k < count; ++k) {
        object* const write = item(given[0], k);
        object *const storage = py.tuple_item(write, 0), *const ranges = py.tuple_item(write, 2);
        int64_t more = py.as_long(py.tuple_item(write, 1));
        if (slot(storage, S_HOLD) != py.none) {
            const int64_t all = py.tuple_size(ranges);
            for (int64_t j = 0; j < all; ++j, --more) {
                object* const range = py.tuple_item(ranges, j);
                if (!announce(storage, py.tuple_item(range, 0), py.tuple_item(range, 1))) {
                    return nullptr;
                }
            }
        }
        if (more && !advance(storage, more)) return nullptr;
    }
    return yes();
}

// are_free(writes): True where nothing is to be said against any of them.
object* are_free(object*, object* const* given, int64_t n) {
    const int64_t count = tuples(given, n, py.integer, py.tuple_type);
    for (int64_t k = 0; k < count; ++k) {
        object* const storage = py.tuple_item(item(given[0], k), 0);
        if (slot(storage, S_GUARD) != py.none) return nothing();
        if (slot(storage, S_WRITABLE) != py.yes) return nothing();
    }
    return count < 0 ? nothing() : yes();
}

// are_same(flags, gradients): True where arrays require gradients as they did, each (array, whether),
// and have those that they had, each (array, gradient).
object* are_same(object*, object* const* given, int64_t n) {
    if (n != 2) return nothing();
    for (int which = 0; which < 2; ++which) {
        const int64_t count = length(given[which]);
        if (count < 0) return nothing();
        for (int64_t k = 0; k < count; ++k) {
            object* const pair = item(given[which], k);
            object* const a = type_of(pair) == py.tuple_type ? part(pair, 0, py.array) : nullptr;
            if (!a) return nothing();
            object* const told = py.tuple_item(pair, 1);
            if (which) {
                if (slot(a, A_GRAD) != told) return nothing();
                continue;
            }
            const bool flag = slot(a, A_FLAG) == py.yes;
            if (flag && slot(a, A_ORIGIN) != py.none) return nothing();
            if ((flag ? py.yes : py.no) != told) return nothing();
        }
    }
    return yes();
}

}  // namespace
