// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<int32_t,1,FLAT> v_bin, eng::array_t<float,1,FLAT> v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const float v_t_4 = (v_t_2 * v_t_3);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    eng::atomic_add(v_out.at(v_t_6), v_t_4);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_bin = eng::arg<eng::array_t<int32_t,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t c[1];
        n = eng::row<1>(L, row, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread<FLAT>(v_x, v_bin, v_out, k0); }
    }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<int32_t,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<int32_t,1,FLAT> v_bin, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    const float v_ct = v_adj_out.at(v_t_6);
    const float v_t_7 = (v_ct * v_t_3);
    const float v_t_8 = (v_ct * v_t_2);
    eng::atomic_add(v_adj_x.at(k0), v_t_8);
    eng::atomic_add(v_adj_x.at(k0), v_t_7);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_bin = eng::arg<eng::array_t<int32_t,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 96);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        int64_t c[1];
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { thread<FLAT>(v_x, v_bin, v_out, v_adj_x, v_adj_out, k0); }
    }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<int32_t,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 96));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}
