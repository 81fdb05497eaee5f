// What an entry point is told, and what it says: mirrored by engine/compile/cpu/runner.py.
#pragma once
#include "base.h"

struct eng_buf {
    unsigned char* data;
    int64_t size;  // bytes in use
    int64_t cap;   // bytes allocated
    int64_t limit;  // bytes that may be allocated; 0: any
};

struct eng_launch {
    int64_t dim[4];
    int64_t ndim;
    int64_t begin;  // linear thread index, inclusive
    int64_t end;    // exclusive
    int64_t error;  // one of eng::error_t
    eng_buf stack;
    eng_buf journal;
    eng_buf output;  // messages: a number and values each, in whole slots
    int64_t free;    // 1: what threads do does not depend on their order; -1: one by one
    void* lend;      // to what lends memory, see lend.h
    void* form;      // with error_form: of the kernel, what is to be made, see late.h
};
