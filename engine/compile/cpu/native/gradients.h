// Gradients: set to zero, or to cotangents that a backward pass begins with.
#pragma once
#include "fresh.h"
#include "launches.h"

namespace {

constexpr long long LARGE = 1 << 20;  // bytes, from which on Python writes them

long long bytes_of(object* a) { return number(a, A_HI) - number(a, A_LO); }

void* address(object* a) { return reinterpret_cast<void*>(static_cast<intptr_t>(number(a, A_LO))); }

// Writes zeros over an array, if nobody has a word to say; -1 where that raised an error.
int wipe(object* a) {
    if (!may_write(a)) return 0;
    if (!announce(a)) return -1;
    memset(address(a), 0, bytes_of(a));
    return 1;
}

// Whether an array of plain numbers may be written off any tape, and nobody listens.
bool is_off_tape(object* a) {
    world_t w;
    return type_of(a) == py.array && w.look() && !w.tape
        && type_of(slot(a, A_IR)) == py.plain_kind;
}

// clear(array): announces a write of zeros to all of an array off any tape, and writes them; True.
object* clear(object*, object* const* given, int64_t n) {
    if (n != 1 || !is_off_tape(given[0]) || bytes_of(given[0]) > LARGE) return nothing();
    const int done = wipe(given[0]);
    return done < 0 ? nullptr : done ? yes() : nothing();
}

// announced(array): announces a write to all of an array of plain numbers off any tape; True.
object* announced(object*, object* const* given, int64_t n) {
    if (n != 1 || !is_off_tape(given[0]) || !may_write(given[0])) return nothing();
    return announce(given[0]) ? yes() : nullptr;
}

// Objects, each once, in the order in which they came; kept as long as this lives.
struct each_t {
    object** all = nullptr;
    object** table = nullptr;
    int64_t count = 0, size = 0;

    explicit each_t(int64_t most) {
        for (size = 16; size < 2 * most; size *= 2) {}
        all = static_cast<object**>(malloc((most + 1) * sizeof(object*)));
        table = static_cast<object**>(calloc(size, sizeof(object*)));
    }

    ~each_t() {
        while (count) drop(all[--count]);
        free(all);
        free(table);
    }

    each_t(const each_t&) = delete;
    void operator=(const each_t&) = delete;

    bool made() const { return all && table; }

    object** place(object* o) const {
        const uintptr_t mixed = reinterpret_cast<uintptr_t>(o) >> 4;
        int64_t k = static_cast<int64_t>((mixed ^ mixed >> 15) * 0x9E3779B97F4A7C15u >> 20);
        for (k &= size - 1; table[k] && table[k] != o; k = (k + 1) & (size - 1)) {}
        return &table[k];
    }

    bool has(object* o) const { return *place(o) != nullptr; }

    void add(object* o) {
        object** const at = place(o);
        if (*at) return;
        *at = all[count++] = o;
        keep(o);
    }
};

// The existing gradient of an array, None for none; null where Python has to look.
object* gradient(object* a) {
    object* const g = slot(a, A_GRAD);
    if (g != py.none) return g;
    return slot(a, A_ORIGIN) == py.none && slot(a, A_SHARED) == py.none ? g : nullptr;
}

// Whether the gradients of what a kernel takes are among `to` now.
bool gather(object* const* values, const recipe_t& r, each_t& to, int64_t most) {
    for (int64_t k = 0; k < r.bits[0]; ++k) {
        object* const a = values[r.bits[1 + 2 * k]];
        object* const g = a == py.none ? a : gradient(a);
        if (!g) return false;
        if (g == py.none || to.has(g)) continue;
        if (to.count == most || !may_write(g) || bytes_of(g) > LARGE) return false;
        to.add(g);
    }
    return true;
}

// cleared(launches, more): sets the gradients of arrays of records or rows to zero. None where
// nothing has happened, else a list of those arrays of `more` that Python has to look at.
object* cleared(object*, object* const* given, int64_t n) {
    if (n != 2 || !py.record_type || type_of(given[0]) != py.list_type) return nothing();
    world_t w;
    if (!w.look() || w.tape) return nothing();
    launches_t launches(false);
    if (!launches.take(given[0], py.list_size(given[0]))) return nothing();
    int64_t most = 0;
    for (int64_t k = 0; k < launches.count; ++k) most += launches.of[k].recipe->bits[0];
    each_t grads(most);
    if (!grads.made()) return nothing();
    for (int64_t k = 0; k < launches.count; ++k) {
        if (!gather(launches[k].values, *launches.of[k].recipe, grads, most)) return nothing();
    }
    object* rest = length(given[1]) < 0 ? nullptr : py.list(0);
    if (!rest) return nothing();
    for (int64_t k = 0; k < length(given[1]); ++k) {
        object* const a = item(given[1], k);
        object* const g = type_of(a) == py.array ? gradient(a) : nullptr;
        const bool known = g && (g == py.none || grads.has(g));
        if (known || py.list_add(rest, a) == 0) continue;
        drop(rest);
        return nothing();
    }
    for (int64_t k = 0; k < grads.count; ++k) {
        if (wipe(grads.all[k]) >= 0) continue;
        drop(rest);
        return nullptr;
    }
    return rest;
}

// arrays(launches): those of records or rows, each once; None where Python has to look.
object* arrays(object*, object* const* given, int64_t n) {
    if (n != 1 || !py.record_type || type_of(given[0]) != py.list_type) return nothing();
    launches_t launches(false);
    if (!launches.take(given[0], py.list_size(given[0]))) return nothing();
    int64_t most = 0;
    for (int64_t k = 0; k < launches.count; ++k) most += launches.of[k].recipe->count;
    each_t found(most);
    if (!found.made()) return nothing();
    for (int64_t k = 0; k < launches.count; ++k) {
        const recipe_t& r = *launches.of[k].recipe;
        object* const* const values = launches[k].values;
        for (int64_t i = 0; i < r.count; ++i) {
            object* const a = values[i];
            if (r.kinds->of[i].code != ARRAY || a == py.none) continue;
            object* const whole = slot(a, A_WHOLE);
            found.add(whole == py.none ? a : whole);
        }
    }
    object* out = py.list(found.count);
    for (int64_t k = 0; out && k < found.count; ++k) {
        keep(found.all[k]);
        py.list_set(out, k, found.all[k]);
    }
    return out;
}

// seeded(array, cotangent): writes a cotangent over an array's gradient: an array of the same
// geometry, or bytes; True.
object* seeded(object*, object* const* given, int64_t n) {
    if (n != 2) return nothing();
    object *const a = given[0], *const c = given[1];
    world_t w;
    if (type_of(a) != py.array || slot(a, A_FLAG) != py.yes || !w.look()) return nothing();
    if (type_of(slot(a, A_IR)) != py.plain_kind) return nothing();
    object* g = gradient(a);
    if (g == py.none && slot(a, A_CONTIGUOUS) == py.yes) {
        object* made = zeros_like(a, slot(slot(a, A_STORAGE), S_DEVICE));
        if (made) set(a, A_GRAD, made);
        g = made;
    }
    if (!g || g == py.none || !may_write(g) || bytes_of(g) > LARGE) return nothing();
    const void* from = nullptr;
    if (type_of(c) == py.array) {
        object *const p = slot(c, A_PACKED), *const q = slot(g, A_PACKED);
        const int64_t size = py.bytes_size(p);
        // All but the address is the same: shapes and strides.
        if (slot(c, A_IR) != slot(g, A_IR) || py.bytes_size(q) != size) return nothing();
        if (memcmp(py.bytes_data(p) + 8, py.bytes_data(q) + 8, size - 8) != 0) return nothing();
        from = address(c);
    } else if (type_of(c) == py.bytes_type && py.bytes_size(c) == bytes_of(g)) {
        from = py.bytes_data(c);
    } else {
        return nothing();
    }
    keep(g);
    const bool raised = !announce(g);
    if (!raised) memmove(address(g), from, bytes_of(g));
    drop(g);
    return raised ? nullptr : yes();
}

}  // namespace
