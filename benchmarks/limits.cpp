// What the machine can do at most: copies of memory, and arithmetic in registers.

#include <cstdint>
#include <cstring>

#define ENTRY extern "C" __attribute__((visibility("default")))

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float lanes __attribute__((vector_size(BYTES)));

// The C library's copy, in as many parts as there are threads.
ENTRY void copy(int64_t n, const float *from, float *to, int64_t threads) {
    int64_t part = ((n + threads - 1) / threads + 15) / 16 * 16;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t t = 0; t < threads; ++t) {
        int64_t first = t * part, last = first + part < n ? first + part : n;
        if (first < last) memcpy(to + first, from + first, sizeof(float) * (last - first));
    }
}

// The same as a loop: which of the two is faster depends on the machine.
ENTRY void copy_loop(int64_t n, const float *__restrict from, float *__restrict to, int64_t threads) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// `rounds` times a multiplication and an addition (one instruction where the compiler may) of each
// lane of 12 vectors, which hide each other's delays. Gives the number of operations of one thread.
ENTRY int64_t arithmetic(int64_t rounds, int64_t threads, float *out) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t t = 0; t < threads; ++t) {
        lanes a = lanes{} + 0.999f, b = lanes{} + 0.001f, s[12];
        for (int k = 0; k < 12; ++k) s[k] = lanes{} + (float)(k + t);
        for (int64_t r = 0; r < rounds; ++r)
            for (int k = 0; k < 12; ++k) s[k] = s[k] * a + b;
        float sum = 0;
        for (int k = 0; k < 12; ++k) sum += s[k][0];
        out[t] = sum;
    }
    return rounds * 12 * (BYTES / 4) * 2;
}
