// What an entry point is told, and where it says how it ended. All memory is the launcher's: a
// kernel allocates none.
#pragma once
#include "base.h"

// Frames of one size, aligned to 8 bytes: those of a journal one after the other, those of stacks as
// `stack_of` has them. No memory: data is null and bytes 0.
struct eng_frames {
    unsigned char* data;
    int64_t bytes;  // of one frame, a multiple of 8
};

// What threads say, in pairs of words: the thread, and a slot of its message.
struct eng_messages {
    uint64_t* data;
    uint64_t* used;  // pairs that were asked for, also those that found no room
    int64_t room;    // pairs
};

// Claims to the scalars of an array that are fought for: a word each, those of the address `base`
// first. Null where no winner is asked for. See `winners.h`.
struct eng_claims {
    uint64_t base;
    unsigned long long* words;
};

struct eng_launch {
    int64_t dim[4];
    int64_t ndim;
    int64_t begin;  // linear thread index, inclusive
    int64_t end;    // exclusive
    // A bit for each eng::error_t that ended a thread: 1 << it. Never null.
    uint64_t* error;
    // For each thread from `begin` on, how it ended: zero before, or what an earlier launch of
    // another form said. Null where nobody asks.
    unsigned char* ended;
    // Run only the threads that ended so; 0 for all. What goes on where an adjoint ran out of
    // stack is the form of it that saves less.
    int64_t again;
    eng_frames stack;    // one frame for each CUDA thread of the grid of blocks
    // Bytes at the end of a frame of the stack that are kept for what follows effects.
    int64_t beyond;
    eng_frames journal;  // one for each thread from `begin` on: bytes in use, then values
    eng_messages output;
    int64_t wide;  // whether CUDA threads run several threads at once, where they can
    int64_t in_order;  // whether one CUDA thread runs all, one after the other
    eng_claims claims[4];  // of the first such arrays of the kernel
};
