// The rows as somebody would write them by hand: plain loops over all cores, gradients derived on
// paper. Compiled by `by_hand.py` with the flags of the engine's own kernels.
//
// A backward pass takes the gradient of the result and adds to those of the inputs.

#include <cmath>
#include <cstdint>
#include <initializer_list>

typedef int64_t n_t;

#if BENCH_VECTOR_MATH
// The vector forms of the C library's functions, which GCC calls without -ffast-math only when told.
// By other names, since of a sine and a cosine of one number GCC makes a call that has none.
#define ONE_EACH __attribute__((simd("notinbranch"), const))
extern "C" ONE_EACH float vector_sin(float) __asm__("sinf");
extern "C" ONE_EACH float vector_cos(float) __asm__("cosf");
extern "C" ONE_EACH float vector_exp(float) __asm__("expf");
#define sinf vector_sin
#define cosf vector_cos
#define expf vector_exp
#endif

#define ENTRY extern "C" __attribute__((visibility("default")))
#define ALL _Pragma("omp parallel for simd schedule(static)")

ENTRY void saxpy(n_t n, float a, const float *__restrict x, const float *__restrict y,
                 float *__restrict z) {
    ALL for (n_t i = 0; i < n; ++i) z[i] = a * x[i] + y[i];
}

ENTRY void saxpy_back(n_t n, float a, const float *__restrict gz, float *__restrict gx,
                      float *__restrict gy) {
    ALL for (n_t i = 0; i < n; ++i) {
        gx[i] += a * gz[i];
        gy[i] += gz[i];
    }
}

ENTRY void elementwise(n_t n, const float *__restrict x, float *__restrict y) {
    ALL for (n_t i = 0; i < n; ++i) {
        float v = x[i];
        y[i] = sinf(v) * expf(-v * v) + __builtin_sqrtf(v * v + 1.0f);
    }
}

ENTRY void elementwise_back(n_t n, const float *__restrict x, const float *__restrict gy,
                            float *__restrict gx) {
    ALL for (n_t i = 0; i < n; ++i) {
        float v = x[i], e = expf(-v * v);
        float d = e * (cosf(v) - 2.0f * v * sinf(v)) + v / __builtin_sqrtf(v * v + 1.0f);
        gx[i] += gy[i] * d;
    }
}

// Positions as they are, three numbers for each: `x` of each body in turn is copied to planes.
static void planes(n_t n, const float *x, float *p) {
    for (n_t i = 0; i < n; ++i)
        for (n_t k = 0; k < 3; ++k) p[k * n + i] = x[3 * i + k];
}

ENTRY void nbody(n_t n, const float *x, const float *__restrict mass, float *__restrict room,
                 float *__restrict a) {
    planes(n, x, room);
    const float *px = room, *py = room + n, *pz = room + 2 * n;
    _Pragma("omp parallel for schedule(static)") for (n_t i = 0; i < n; ++i) {
        float hx = px[i], hy = py[i], hz = pz[i], sx = 0, sy = 0, sz = 0;
        _Pragma("omp simd reduction(+ : sx, sy, sz)") for (n_t j = 0; j < n; ++j) {
            float dx = px[j] - hx, dy = py[j] - hy, dz = pz[j] - hz;
            float s = dx * dx + dy * dy + dz * dz + 0.01f;
            float f = mass[j] / (s * __builtin_sqrtf(s));
            sx += dx * f;
            sy += dy * f;
            sz += dz * f;
        }
        a[3 * i] = sx;
        a[3 * i + 1] = sy;
        a[3 * i + 2] = sz;
    }
}

// The force of j on i and of i on j have the same gradient but for sign and mass, so each body's
// gradient is one sum over all others: nothing is scattered.
ENTRY void nbody_back(n_t n, const float *x, const float *__restrict mass, const float *ga,
                      float *__restrict room, float *__restrict gx, float *__restrict gm) {
    planes(n, x, room);
    planes(n, ga, room + 3 * n);
    const float *px = room, *py = room + n, *pz = room + 2 * n;
    const float *qx = room + 3 * n, *qy = room + 4 * n, *qz = room + 5 * n;
    _Pragma("omp parallel for schedule(static)") for (n_t i = 0; i < n; ++i) {
        float hx = px[i], hy = py[i], hz = pz[i], m = mass[i];
        float ux = qx[i], uy = qy[i], uz = qz[i], sx = 0, sy = 0, sz = 0, sm = 0;
        _Pragma("omp simd reduction(+ : sx, sy, sz, sm)") for (n_t j = 0; j < n; ++j) {
            float dx = px[j] - hx, dy = py[j] - hy, dz = pz[j] - hz;
            float s = dx * dx + dy * dy + dz * dz + 0.01f, r = __builtin_sqrtf(s);
            float c = 1.0f / (s * r), k = 3.0f * c / s;
            // Of what j feels from i: weight m, distance -d; of what i feels from j: mass[j], d.
            float wx = m * qx[j] - mass[j] * ux, wy = m * qy[j] - mass[j] * uy;
            float wz = m * qz[j] - mass[j] * uz;
            float along = k * (wx * dx + wy * dy + wz * dz);
            sx += c * wx - along * dx;
            sy += c * wy - along * dy;
            sz += c * wz - along * dz;
            sm -= c * (qx[j] * dx + qy[j] * dy + qz[j] * dz);
        }
        gx[3 * i] += sx;
        gx[3 * i + 1] += sy;
        gx[3 * i + 2] += sz;
        gm[i] += sm;
    }
}

ENTRY void stencil(n_t rows, n_t cols, const float *__restrict u, float *__restrict out) {
    _Pragma("omp parallel for schedule(static)") for (n_t i = 1; i < rows - 1; ++i) {
        const float *up = u + (i - 1) * cols, *at = u + i * cols, *down = u + (i + 1) * cols;
        float *o = out + i * cols;
        _Pragma("omp simd") for (n_t j = 1; j < cols - 1; ++j) {
            float around = up[j] + down[j] + at[j - 1] + at[j + 1];
            o[j] = at[j] + 0.1f * (around - 4.0f * at[j]);
        }
    }
}

// The gradient of an inner cell: cells at the border are read and not written.
static float inner(const float *g, n_t rows, n_t cols, n_t i, n_t j) {
    return i > 0 && j > 0 && i < rows - 1 && j < cols - 1 ? g[i * cols + j] : 0.0f;
}

ENTRY void stencil_back(n_t rows, n_t cols, const float *__restrict g, float *__restrict gu) {
    _Pragma("omp parallel for schedule(static)") for (n_t i = 0; i < rows; ++i) {
        float *o = gu + i * cols;
        auto careful = [=](n_t j) {
            float around = inner(g, rows, cols, i - 1, j) + inner(g, rows, cols, i + 1, j) +
                           inner(g, rows, cols, i, j - 1) + inner(g, rows, cols, i, j + 1);
            o[j] += 0.6f * inner(g, rows, cols, i, j) + 0.1f * around;
        };
        if (i < 2 || i > rows - 3 || cols < 4) {
            for (n_t j = 0; j < cols; ++j) careful(j);
            continue;
        }
        for (n_t j : {n_t(0), n_t(1), cols - 2, cols - 1}) careful(j);
        const float *up = g + (i - 1) * cols, *at = g + i * cols, *down = g + (i + 1) * cols;
        _Pragma("omp simd") for (n_t j = 2; j < cols - 2; ++j) {
            o[j] += 0.6f * at[j] + 0.1f * (up[j] + down[j] + at[j - 1] + at[j + 1]);
        }
    }
}

// Scatter, one spring after the other.
ENTRY void springs(n_t n, const float *x, const int32_t *first, const int32_t *second,
                   float *force) {
    for (n_t s = 0; s < n; ++s) {
        const float *a = x + 3 * first[s], *b = x + 3 * second[s];
        float d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
        float length = __builtin_sqrtf(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        float f = 10.0f * (length - 0.5f) / length;
        for (int k = 0; k < 3; ++k) {
            force[3 * first[s] + k] += d[k] * f;
            force[3 * second[s] + k] -= d[k] * f;
        }
    }
}

ENTRY void springs_back(n_t n, const float *x, const int32_t *first, const int32_t *second,
                        const float *g, float *gx) {
    for (n_t s = 0; s < n; ++s) {
        const float *a = x + 3 * first[s], *b = x + 3 * second[s];
        float d[3], w[3], dot = 0, along = 0;
        for (int k = 0; k < 3; ++k) {
            d[k] = b[k] - a[k];
            w[k] = g[3 * first[s] + k] - g[3 * second[s] + k];
            dot += d[k] * d[k];
            along += d[k] * w[k];
        }
        float length = __builtin_sqrtf(dot), f = 10.0f * (length - 0.5f) / length;
        along *= 5.0f / (dot * length);
        for (int k = 0; k < 3; ++k) {
            float v = f * w[k] + along * d[k];
            gx[3 * second[s] + k] += v;
            gx[3 * first[s] + k] -= v;
        }
    }
}

ENTRY void loop(n_t n, n_t steps, const float *__restrict x, float *__restrict y) {
    const n_t lanes = 64;
    _Pragma("omp parallel for schedule(static)") for (n_t b = 0; b < n; b += lanes) {
        n_t m = n - b < lanes ? n - b : lanes;
        float v[lanes];
        for (n_t i = 0; i < m; ++i) v[i] = x[b + i];
        for (n_t k = 0; k < steps; ++k)
            _Pragma("omp simd") for (n_t i = 0; i < m; ++i) v[i] += 0.1f * sinf(v[i]);
        for (n_t i = 0; i < m; ++i) y[b + i] = v[i];
    }
}

ENTRY void loop_back(n_t n, n_t steps, const float *__restrict x, const float *__restrict gy,
                     float *__restrict gx) {
    const n_t lanes = 64;
    _Pragma("omp parallel for schedule(static)") for (n_t b = 0; b < n; b += lanes) {
        n_t m = n - b < lanes ? n - b : lanes;
        float v[lanes], d[lanes];
        for (n_t i = 0; i < m; ++i) v[i] = x[b + i], d[i] = 1.0f;
        // Every step is a number times a number: the product can be formed on the way.
        for (n_t k = 0; k < steps; ++k)
            _Pragma("omp simd") for (n_t i = 0; i < m; ++i) {
                d[i] *= 1.0f + 0.1f * cosf(v[i]);
                v[i] += 0.1f * sinf(v[i]);
            }
        for (n_t i = 0; i < m; ++i) gx[b + i] += gy[b + i] * d[i];
    }
}

ENTRY void cross(n_t n, const float *__restrict a, const float *__restrict b,
                 float *__restrict o) {
    ALL for (n_t i = 0; i < n; ++i) {
        const float *p = a + 3 * i, *q = b + 3 * i;
        float x = p[1] * q[2] - p[2] * q[1], y = p[2] * q[0] - p[0] * q[2];
        float z = p[0] * q[1] - p[1] * q[0], r = __builtin_sqrtf(x * x + y * y + z * z);
        o[3 * i] = x / r;
        o[3 * i + 1] = y / r;
        o[3 * i + 2] = z / r;
    }
}

ENTRY void cross_back(n_t n, const float *__restrict a, const float *__restrict b,
                      const float *__restrict g, float *__restrict ga, float *__restrict gb) {
    ALL for (n_t i = 0; i < n; ++i) {
        const float *p = a + 3 * i, *q = b + 3 * i, *w = g + 3 * i;
        float x = p[1] * q[2] - p[2] * q[1], y = p[2] * q[0] - p[0] * q[2];
        float z = p[0] * q[1] - p[1] * q[0], r = 1.0f / __builtin_sqrtf(x * x + y * y + z * z);
        x *= r, y *= r, z *= r;
        float dot = x * w[0] + y * w[1] + z * w[2];
        float u = (w[0] - dot * x) * r, v = (w[1] - dot * y) * r, t = (w[2] - dot * z) * r;
        ga[3 * i] += q[1] * t - q[2] * v;
        ga[3 * i + 1] += q[2] * u - q[0] * t;
        ga[3 * i + 2] += q[0] * v - q[1] * u;
        gb[3 * i] += v * p[2] - t * p[1];
        gb[3 * i + 1] += t * p[0] - u * p[2];
        gb[3 * i + 2] += u * p[1] - v * p[0];
    }
}

ENTRY void total(n_t n, const float *__restrict x, float *out) {
    float s = 0;
    _Pragma("omp parallel for simd schedule(static) reduction(+ : s)") for (n_t i = 0; i < n; ++i) s +=
        x[i] * x[i];
    out[0] += s;
}

ENTRY void total_back(n_t n, const float *__restrict x, const float *g, float *__restrict gx) {
    float twice = 2.0f * g[0];
    ALL for (n_t i = 0; i < n; ++i) gx[i] += twice * x[i];
}
