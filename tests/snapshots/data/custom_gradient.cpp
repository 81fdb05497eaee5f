// ---- primal
namespace ns_primal {
ENG_FN float f0_safe_sqrt(float v_x) {
    const float v_t = eng::sqrt(v_x);
    return v_t;
}
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_t_2 = f0_safe_sqrt(v_t_1);
    v_out.at(k0) = v_t_2;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t c[1];
        n = eng::row<1>(L, row, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread<FLAT>(v_x, v_out, k0); }
    }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
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
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t_1 = v_x.at(k0);
    const float v_ct = v_adj_out.at(k0);
    v_adj_out.at(k0) = 0.0f;
    const float v_adj = f0_adj_safe_sqrt(v_t_1, v_ct);
    eng::atomic_add(v_adj_x.at(k0), v_adj);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        int64_t c[1];
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { thread<FLAT>(v_x, v_out, v_adj_x, v_adj_out, k0); }
    }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}
