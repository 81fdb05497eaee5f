// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(float v_a, eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_y, eng::array_t<float,1,FLAT> v_z, int64_t k) {
    const int32_t v_i = int32_t(k);
    const float v_t_1 = v_x.at(k);
    const float v_t_2 = (v_a * v_t_1);
    const float v_t_3 = v_y.at(k);
    const float v_t_4 = (v_t_2 + v_t_3);
    v_z.at(k) = v_t_4;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_a = eng::arg<float>(args, 0);
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 8);
    auto v_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 32);
    auto v_z = eng::arg<eng::array_t<float,1,FLAT>>(args, 56);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_a, v_x, v_y, v_z, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 8))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 32))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 56));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(float v_a, eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_y, eng::array_t<float,1,FLAT> v_z, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_y, eng::array_t<float,1,FLAT> v_adj_z, int64_t k) {
    const int32_t v_i = int32_t(k);
    const float v_ct = v_adj_z.at(k);
    v_adj_z.at(k) = 0.0f;
    eng::atomic_add(v_adj_y.at(k), v_ct);
    const float v_t_8 = (v_ct * v_a);
    eng::atomic_add(v_adj_x.at(k), v_t_8);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_a = eng::arg<float>(args, 0);
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 8);
    auto v_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 32);
    auto v_z = eng::arg<eng::array_t<float,1,FLAT>>(args, 56);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 80);
    auto v_adj_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 104);
    auto v_adj_z = eng::arg<eng::array_t<float,1,FLAT>>(args, 128);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_a, v_x, v_y, v_z, v_adj_x, v_adj_y, v_adj_z, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 8))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 32))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 56))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 80))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 104))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 128));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}
