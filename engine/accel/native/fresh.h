// New arrays of the host, like others.
#pragma once
#include "world.h"

namespace {

// An object of a class, of which some slots, one after another, are None.
object* fresh(object* type, place first, int count) {
    object* out = py.make(type, 0);
    for (int k = 0; out && k < count; ++k) share(out, static_cast<place>(first + k), py.none);
    return out;
}

object* storage_of(object* owner, object* address, object* size, object* device) {
    object* out = fresh(py.storage_type, S_UNSET, 4);
    object* views = out ? py.list(0) : nullptr;
    if (!views) {
        if (out) drop(out);
        return nullptr;
    }
    set(out, S_VIEWS, views);
    share(out, S_WRITABLE, py.yes);
    share(out, S_GUARD, py.none);
    share(out, S_HOLD, py.none);
    share(out, S_VERSION, py.zero);
    share(out, S_EXTERNAL, py.no);
    share(out, S_LO, address);
    share(out, S_BYTES, size);
    share(out, S_OWNER, owner);
    share(out, S_DEVICE, device);
    return out;
}

// An array that is as `model` but for where it is: in memory that is there for nothing else. Null
// where Python raised an error.
object* like(object* model, object* owner, object* address, object* device) {
    const long long at = py.as_long(address), size = number(model, A_HI) - number(model, A_LO);
    object* const packed = slot(model, A_PACKED);
    object* bytes = py.from_long(size);
    object* parts[] = {
        fresh(py.array, A_UNSET, 5), bytes ? storage_of(owner, address, bytes, device) : nullptr,
        py.from_long(at + size), py.bytes(py.bytes_data(packed), py.bytes_size(packed)),
    };
    if (bytes) drop(bytes);
    for (object* o : parts) {
        if (o) continue;
        for (object* other : parts) if (other) drop(other);
        return nullptr;
    }
    object* const out = parts[0];
    memcpy(py.bytes_data(parts[3]), &at, sizeof at);  // nobody has it yet
    set(out, A_STORAGE, parts[1]);
    set(out, A_HI, parts[2]);
    set(out, A_PACKED, parts[3]);
    share(out, A_LO, address);
    share(out, A_PTR, address);
    share(out, A_IR, slot(model, A_IR));
    share(out, A_CONTIGUOUS, py.yes);
    share(out, A_FLAG, py.no);
    share(out, A_RETAIN, py.no);
    share(out, A_GRAD, py.none);
    share(out, A_ORIGIN, py.none);
    share(out, A_SHARED, py.none);
    for (int k = 0; k < 6; ++k) {
        const place p = static_cast<place>(A_FIXED + k);
        share(out, p, slot(model, p));
    }
    return out;
}

// The same in new memory, of zeros. The model is kept by who asks: others may run meanwhile.
object* zeros_like(object* model, object* device) {
    object* size = py.from_long(number(model, A_HI) - number(model, A_LO));
    object* found = size
        ? py.call(py.allocate, py.zero, size, py.yes, static_cast<object*>(nullptr)) : nullptr;
    if (size) drop(size);
    if (!found && size && py.error() != py.no_memory) by_python = true;
    object* out = found
        ? like(model, py.tuple_item(found, 0), py.tuple_item(found, 1), device) : nullptr;
    if (found) drop(found);
    return out;
}

// zeros(models, shape, device, requires_grad): an array of zeros like one of the models, by shape.
object* zeros(object*, object* const* given, int64_t n) {
    if (n != 4) return nothing();
    object* shape = given[1];
    if (type_of(shape) == py.integer) {
        shape = py.tuple(1);
        if (!shape) return nothing();
        keep(given[1]);
        py.tuple_set(shape, 0, given[1]);
    } else {
        // True, which equals 1, is Python's to refuse.
        if (type_of(shape) != py.tuple_type) return nothing();
        for (int64_t k = 0; k < py.tuple_size(shape); ++k) {
            if (type_of(py.tuple_item(shape, k)) != py.integer) return nothing();
        }
        keep(shape);
    }
    world_t w;
    object* const model = w.look() ? py.dict_get(given[0], shape) : nullptr;
    drop(shape);
    if (!model) return nothing();
    keep(model);
    object* out = zeros_like(model, given[2]);
    drop(model);
    if (!out) return nothing();
    share(out, A_FLAG, given[3]);
    return out;
}

}  // namespace
