// What an entry point is told, and where it says how it ended. All memory is the launcher's: a
// kernel allocates none.
#pragma once
#include "base.h"

// Frames of one size, one after the other, aligned to 8 bytes. No memory: data is null and bytes 0.
struct eng_frames {
    unsigned char* data;
    int64_t bytes;  // of one frame, a multiple of 8
};

struct eng_launch {
    int64_t dim[4];
    int64_t ndim;
    int64_t begin;  // linear thread index, inclusive
    int64_t end;    // exclusive
    // The greatest eng::error_t of the launch; zero before. Never null.
    int64_t* error;
    // For each thread from `begin` on, how it ended: zero before, or what an earlier launch of
    // another form said. Null where nothing can end a thread.
    unsigned char* ended;
    // Run only the threads that ended so; 0 for all. What goes on where an adjoint ran out of
    // stack is the form of it that saves less.
    int64_t again;
    eng_frames stack;    // one frame for each CUDA thread of the grid of blocks
    eng_frames journal;  // one for each thread from `begin` on: bytes in use, then values
    eng_frames output;   // the same: messages, each a number and values, in whole slots
};
