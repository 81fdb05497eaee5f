// Arrays of which each part of a launch but the first has its own, until they are one again: how
// they are told, and what they begin with. See `engine.compile.cpu.rounds`.
#pragma once

namespace {

enum kind_t : int64_t { adds, takes_least, takes_most };

// Followed by: how many arguments name it, and where; how many axes, and shape and strides of a
// part's own array.
struct own_t {
    int64_t target, size;  // size: numbers
    int64_t kind, type;    // of `kind_t`; a number's: see `with_type`
    int64_t start, step;   // of the second part's memory, and from one part's to the next
    int64_t winners;       // where bytes are that say whose each number is; -1: nobody asks
};

const int64_t* places_of(const int64_t* own) { return own + sizeof(own_t) / 8; }

const int64_t* next_of(const int64_t* own) {
    const int64_t* w = places_of(own);
    w += 1 + w[0];
    return w + 1 + 2 * w[0];
}

void write(unsigned char* args, int64_t at, const int64_t* words, int64_t count) {
    __builtin_memcpy(args + at, words, size_t(count) * 8);
}

// The arguments of a part, where those of the launch are.
void place(unsigned char* args, const int64_t* own, const unsigned char* memory, int64_t part) {
    own_t o;
    __builtin_memcpy(&o, own, sizeof(o));
    const int64_t address = int64_t(memory) + o.start + (part - 1) * o.step;
    const int64_t* places = places_of(own);
    const int64_t* axes = places + 1 + places[0];
    for (int64_t k = 0; k < places[0]; ++k) {
        write(args, places[1 + k], &address, 1);
        write(args, places[1 + k] + 8, axes + 1, 2 * axes[0]);
    }
}

template <class F> void with_type(int64_t type, F&& f) {
    switch (type) {
        case 0: return f(float{});
        case 1: return f(double{});
        case 2: return f(int32_t{});
        case 3: return f(uint32_t{});
        case 4: return f(int64_t{});
        default: return f(uint64_t{});
    }
}

int64_t bytes_of(const own_t& o) {
    int64_t bytes = 0;
    with_type(o.type, [&](auto x) { bytes = o.size * int64_t(sizeof(x)); });
    return bytes;
}

// Minima and maxima begin with what is there: what is done to a copy twice is done once.
void begin(const int64_t* own, unsigned char* memory, int64_t count) {
    own_t o;
    __builtin_memcpy(&o, own, sizeof(o));
    if (o.winners >= 0) __builtin_memset(memory + o.winners, 0, size_t(o.size));
    if (o.kind == adds) return;
    for (int64_t k = 0; k < count; ++k)
        __builtin_memcpy(memory + o.start + k * o.step, reinterpret_cast<void*>(o.target),
                         size_t(bytes_of(o)));
}

// Sums begin with zero. By who runs the part, in whose cache they are then.
void clear(const int64_t* own, unsigned char* memory, int64_t part) {
    own_t o;
    __builtin_memcpy(&o, own, sizeof(o));
    if (o.kind == adds && part > 0)
        __builtin_memset(memory + o.start + (part - 1) * o.step, 0, size_t(bytes_of(o)));
}

// Such arrays of a launch, `count` of them. memory: of all.
struct owned_t {
    const int64_t* first;
    int64_t count;
    unsigned char* memory;

    template <class F> void each(F&& f) const {
        const int64_t* own = first;
        for (int64_t k = 0; k < count; ++k, own = next_of(own)) f(own);
    }
    void clear_of(int64_t part) const {
        each([&](const int64_t* own) { clear(own, memory, part); });
    }
};

}  // namespace
