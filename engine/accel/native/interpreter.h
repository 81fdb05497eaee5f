// What of Python the functions of launches use: of its interface the stable part, and of objects of
// the engine's own classes the slots, at places that Python has found. All of it comes by a table:
// nothing of Python is included, and nothing has to be linked.
#pragma once
#include <stdint.h>
#include <string.h>

#include "block.h"  // eng_launch: of engine/codegen/native/cpu

namespace {

struct object;

// Places of slots, in the order of the table.
enum place {
    A_IR, A_PACKED, A_STORAGE, A_CONTIGUOUS, A_LO, A_HI, A_GRAD, A_FLAG, A_ORIGIN, A_SHARED, A_PTR,
    A_RETAIN, A_FIXED, A_UNSET = A_FIXED + 6, A_WHOLE = A_UNSET + 4,
    S_WRITABLE, S_GUARD, S_HOLD, S_VERSION,
    S_EXTERNAL, S_VIEWS, S_LO, S_BYTES, S_OWNER, S_DEVICE, S_UNSET, S_KEPT = S_UNSET + 2,
    H_STORAGE = S_UNSET + 4, H_LO,
    H_HI, H_VERSION, H_UNSEEN, H_START, H_END, H_CHUNKS,
    B_ADDRESS, B_WORK, B_STACK, B_JOURNAL,
    E_CACHED,
    N_EXECUTABLE, N_WATCHED, N_ADJOINT, N_READY_GRIDS,
    R_PLAN, R_DIM, R_VALUES, R_BLOB, R_INPUTS, R_SITE, R_ALIASED, R_SELECTION, R_JOURNAL, R_STACK,
    R_HELD,
    O_READ,
    T_CODE,
    C_DATA,
    K_PLAN,
    P_RECIPE,
    PLACES,
};

// See `engine.accel.slots`, which fills it in this order.
struct python_t {
    int64_t (*list_size)(object*);
    object* (*list_item)(object*, int64_t);  // borrowed
    object* (*list)(int64_t);
    object* (*list_part)(object*, int64_t, int64_t);  // a new one
    int (*list_set)(object*, int64_t, object*);  // takes the object
    int (*list_add)(object*, object*);
    int64_t (*tuple_size)(object*);
    object* (*tuple_item)(object*, int64_t);  // borrowed
    object* (*tuple)(int64_t);
    int (*tuple_set)(object*, int64_t, object*);  // takes the object
    object* (*dict)();
    int64_t (*dict_size)(object*);
    object* (*dict_get)(object*, object*);  // borrowed
    int (*dict_set)(object*, object*, object*);
    int (*holds)(object*, object*);
    object* (*get)(object*, object*);
    object* (*bytes)(const char*, int64_t);
    char* (*bytes_data)(object*);
    int64_t (*bytes_size)(object*);
    long long (*as_long)(object*);
    object* (*from_long)(long long);
    double (*as_double)(object*);
    object* (*call)(object*, ...);  // ends with a null pointer
    object* (*make)(object*, int64_t);
    object* (*weak)(object*, object*);
    int (*context)(object*, object*, object**);
    void (*keep)(object*);
    void (*drop)(object*);
    void (*raise)(object*);
    object* (*error)();
    void (*clear)();
    void* (*save)();
    void (*restore)(void*);
    int (*signals)();
    void (*no_cycle)(void*);  // the collector need not look at it
    object* (*frame)();  // borrowed; with the next three null before Python 3.11
    object* (*frame_back)(object*);
    object* (*frame_code)(object*);
    int (*frame_last)(object*);
    // Objects: those of Python, what the runtime and the tape tell, names, and lists that are empty
    // where nobody listens.
    object *none, *yes, *no, *real, *integer, *list_type, *tuple_type, *bytes_type, *zero,
        *overflow, *wrong_type, *no_attribute, *no_memory;
    object *no_aliases, *settings, *schedule, *host_name, *here, *site, *total, *allocate, *host_device, *finish;
    object *array, *plain_kind, *cached_launch_type, *storage_type, *hold_type, *chunk_type, *record_type,
        *tape_type, *kernel_type, *plan_type;
    object *announce, *hold_on, *requires, *recipe, *options, *module, *enabled, *records, *overwrites;
    object *print_launches, *verify_fp, *device, *stack_limit, *journal_limit, *set_enable_backward, *set_verify_access,
        *set_overwrites, *restores, *snapshots, *lazy, *snapshot_limit,
        *native_after, *least;
    object* quiet[2];
    int64_t at[PLACES];
    int64_t version;  // of a dictionary: a number that changes whenever it does; 0 for none
    int64_t counted;  // an object begins with the plain number of its references
    int64_t items;    // of a list: where the address of what it has is
};

python_t py;

// Of null, too, they do nothing.
inline void keep(object* o) {
    if (py.counted && o) ++*reinterpret_cast<int64_t*>(o);
    else py.keep(o);
}

inline void drop(object* o) {
    int64_t* const count = reinterpret_cast<int64_t*>(o);
    if (py.counted && o && *count > 1) --*count;
    else py.drop(o);
}

constexpr int64_t MOST = 4096, MARKED = 16;  // bytes of arguments; arrays that are written

bool by_python = false;  // whether the error is one of a function of Python, which signals may raise

// Forgets an error that comes of a look at an odd object; false where there is another one.
bool calm() {
    const bool raised = by_python;
    by_python = false;
    object* const type = py.error();
    if (!type) return true;
    if (raised) return false;
    if (type != py.overflow && type != py.wrong_type && type != py.no_attribute
        && type != py.no_memory) return false;
    py.clear();
    return true;
}

// The answer that leaves it to Python, or the error.
object* nothing() {
    if (!calm()) return nullptr;
    keep(py.none);
    return py.none;
}

// Objects that are kept as long as this lives: whatever runs Python, the collector included, may
// let go of what lists and slots had.
template <int64_t most> struct kept_t {
    object* all[most];
    int64_t count = 0;

    kept_t() = default;
    template <class... T> explicit kept_t(T*... objects) { (add(objects), ...); }
    kept_t(const kept_t&) = delete;
    void operator=(const kept_t&) = delete;
    ~kept_t() { while (count) drop(all[--count]); }

    void add(object* o) {
        keep(o);
        all[count++] = o;
    }
};

object* yes() {
    keep(py.yes);
    return py.yes;
}

template <class T> const T* words(object* address) {
    return reinterpret_cast<const T*>(static_cast<intptr_t>(py.as_long(address)));
}

object* type_of(object* a) { return reinterpret_cast<object**>(a)[1]; }

object*& slot(object* a, place p) {
    return *reinterpret_cast<object**>(reinterpret_cast<char*>(a) + py.at[p]);
}

long long number(object* a, place p) { return py.as_long(slot(a, p)); }

// Gives a slot another object, which it takes.
void set(object* a, place p, object* value) {
    object* const old = slot(a, p);
    slot(a, p) = value;
    if (old) drop(old);
}

// The same of one that others have, too.
void share(object* a, place p, object* value) {
    keep(value);
    set(a, p, value);
}

// Whether a dictionary has changed since it was asked about, or may have.
struct watched_t {
    uint64_t seen = 0;

    bool changed(object* dict) {
        if (!py.version) return true;
        const uint64_t now = version(dict);
        if (now == seen) return false;
        seen = now;
        return true;
    }

    // No other dictionary has it, and this one only until it changes.
    static uint64_t version(object* dict) {
        uint64_t now;
        memcpy(&now, reinterpret_cast<char*>(dict) + py.version, sizeof now);
        return now;
    }
};

// What a weak reference leads to, for the caller to drop; null where that is gone.
object* referred(object* reference) {
    object* found = py.call(reference, static_cast<object*>(nullptr));
    if (found != py.none) return found;
    drop(found);
    return nullptr;
}

// What a list or tuple has; -1 and null for all else.
int64_t length(object* group) {
    object* const t = type_of(group);
    return t == py.list_type ? py.list_size(group) : t == py.tuple_type ? py.tuple_size(group) : -1;
}

// All that a list has.
object* const* items(object* list) {
    return *reinterpret_cast<object* const**>(reinterpret_cast<char*>(list) + py.items);
}

object* item(object* group, int64_t i) {
    return type_of(group) == py.list_type ? py.list_item(group, i) : py.tuple_item(group, i);
}

}  // namespace
