// Cotangents that a backward pass begins with.
#pragma once
#include "fresh.h"

namespace {

constexpr long long LARGE = 1 << 20;  // bytes, from which on Python writes them

long long bytes_of(object* a) { return number(a, A_HI) - number(a, A_LO); }

void* address(object* a) { return reinterpret_cast<void*>(static_cast<intptr_t>(number(a, A_LO))); }

// The existing gradient of an array, None for none; null where Python has to look.
object* gradient(object* a) {
    object* const g = slot(a, A_GRAD);
    if (g != py.none) return g;
    return slot(a, A_ORIGIN) == py.none && slot(a, A_SHARED) == py.none ? g : nullptr;
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
