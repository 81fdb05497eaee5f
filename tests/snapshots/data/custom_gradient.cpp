// ---- primal
#include "late.h"
#include "far.h"
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L);
namespace ns_primal {
ENG_FN float f0_safe_sqrt(float v_x) {
    const float v_t = eng::sqrt(v_x);
    return v_t;
}
template <class A_x, class A_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = f0_safe_sqrt(v_t_1);
    v_out.at(k0) = v_t_2;
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_out, bool vast) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_out = eng::flat<eng::array_t<float,1,true>>(args, 24, d_out);
    const int64_t begin = L->begin, end = L->end;
    struct near_out {
        const int64_t* shape; float* own;
        ENG_MEMBER float& at(int64_t) const { return *own; }
    };
    alignas(64) float few_out[256];
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t at = first, some; at < stop; at += some) {
            const bool far = eng::hidden(vast);
            some = eng::least(far ? eng::to_lines(v_out.at(at), 256) : 256, stop - at);
            auto* const to_out = far ? few_out : &v_out.at(at);
            for (int64_t j = 0; j < some; ++j) { const int64_t k0 = at + j; thread(v_x, near_out{v_out.shape, to_out + j}, k0); }
            if (far) eng::stream_row(v_out.at(at), few_out, some);
        }
    }
    if (vast) eng::stream_end();
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24), false);
}
static eng::form_t other{nullptr, primal, "primal", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
ENG_FN float f0_safe_sqrt(float v_x) {
    const float v_t = eng::sqrt(v_x);
    return v_t;
}
template <class A_x, class A_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = f0_safe_sqrt(v_t_1);
    v_out.at(k0) = v_t_2;
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { ENG_SCALAR; thread(v_x, v_out, k0); }
    }
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_out[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, true, false, true, along_x},
    {24, 4, 1, true, true, true, true, false, along_out},
};
static const eng::kernel_t how{touched, 2, 48, 1, 136, 3, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[2];
    const bool apart = eng::apart(args, ns_primal::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_primal::run_apart(args, L, eng::data(args, 0), eng::data(args, 24), eng::vast(L, arrays, 67108864, 4, 256));
    eng::otherwise(args, L, arrays, ns_primal::how, apart);
}

// ---- adjoint
#include "late.h"
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L);
namespace ns_adjoint {
ENG_FN float f0_adj_safe_sqrt(float v_x, float v_adj_ret) {
    float v_adj_x{};
    const bool v_t = (v_x > 0.0f);
    if (v_t) {
        const float v_t_1 = eng::sqrt(v_x);
        const float v_t_2 = (2.0f * v_t_1);
        const float v_t_3 = eng::div(v_adj_ret, v_t_2);
        const float v_t_4 = (v_adj_x + v_t_3);
        v_adj_x = v_t_4;
    }
    return v_adj_x;
}
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_ct = v_adj_out.at(k0);
    v_adj_out.at(k0) = 0.0f;
    const float v_adj = f0_adj_safe_sqrt(v_t_1, v_ct);
    eng::atomic_add(v_adj_x.at(k0), v_adj);
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_adj_x, unsigned char* ENG_ONLY d_adj_out) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_adj_x = eng::flat<eng::array_t<float,1,true>>(args, 48, d_adj_x);
    auto v_adj_out = eng::flat<eng::array_t<float,1,true>>(args, 72, d_adj_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(v_x, v_out, v_adj_x, v_adj_out, k0); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 48), eng::data(args, 72));
}
static eng::form_t other{nullptr, adjoint, "adjoint", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
ENG_FN float f0_adj_safe_sqrt(float v_x, float v_adj_ret) {
    float v_adj_x{};
    const bool v_t = (v_x > 0.0f);
    if (v_t) {
        const float v_t_1 = eng::sqrt(v_x);
        const float v_t_2 = (2.0f * v_t_1);
        const float v_t_3 = eng::div(v_adj_ret, v_t_2);
        const float v_t_4 = (v_adj_x + v_t_3);
        v_adj_x = v_t_4;
    }
    return v_adj_x;
}
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_ct = v_adj_out.at(k0);
    v_adj_out.at(k0) = 0.0f;
    const float v_adj = f0_adj_safe_sqrt(v_t_1, v_ct);
    eng::atomic_add(v_adj_x.at(k0), v_adj);
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<float,1>>(args, 72);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { ENG_SCALAR; thread(v_x, v_out, v_adj_x, v_adj_out, k0); }
    }
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_adj_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_adj_out[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, true, false, false, along_x},
    {48, 4, 1, true, true, true, true, false, along_adj_x},
    {72, 4, 1, true, true, true, true, false, along_adj_out},
};
static const eng::kernel_t how{touched, 3, 96, 1, 62, 8, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[3];
    const bool apart = eng::apart(args, ns_adjoint::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_adjoint::go(args, L);
    eng::otherwise(args, L, arrays, ns_adjoint::how, apart);
}
