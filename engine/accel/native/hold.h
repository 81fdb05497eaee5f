// Holds on what memory contains: see `engine.runtime.storage`.
#pragma once
#include "arguments.h"

namespace {

// Whether user code may change the memory unseen, as `Storage.exposed` says.
bool is_exposed(object* storage) {
    if (slot(storage, S_EXTERNAL) != py.no) return true;
    object* const views = slot(storage, S_VIEWS);
    for (int64_t k = 0; k < py.list_size(views); ++k) {
        object* view = referred(py.list_item(views, k));
        if (view) drop(view);
        if (view) return true;
    }
    return false;
}

// `Storage.hold` of a range of addresses.
object* held(object* s, object* lo, object* hi) {
    if (is_exposed(s)) {
        object* method = py.get(s, py.hold_on);
        object* out = !method ? nullptr
            : py.call(method, lo, hi, static_cast<object*>(nullptr));
        if (method) drop(method);
        return out;
    }
    object* last = slot(s, S_HOLD) == py.none ? nullptr : referred(slot(s, S_HOLD));
    if (last) {
        if (py.as_long(lo) < number(last, H_LO)) share(last, H_LO, lo);
        if (py.as_long(hi) > number(last, H_HI)) share(last, H_HI, hi);
        return last;
    }
    object* out = py.make(py.hold_type, 0);
    if (!out) return nullptr;
    // It leads to memory of the engine's own, and nothing there leads back, but arrays that
    // records in it refer to.
    if (slot(s, S_KEPT) == py.none) py.no_cycle(out);
    share(out, H_STORAGE, s);
    share(out, H_LO, lo);
    share(out, H_HI, hi);
    share(out, H_VERSION, slot(s, S_VERSION));
    share(out, H_UNSEEN, py.no);
    object* reference = py.weak(out, nullptr);
    if (!reference) {
        drop(out);
        return nullptr;
    }
    py.no_cycle(reference);  // it has no callback, so it leads nowhere
    set(s, S_HOLD, reference);
    return out;
}

// The same of an array.
object* held(object* a) { return held(slot(a, A_STORAGE), slot(a, A_LO), slot(a, A_HI)); }

}  // namespace
