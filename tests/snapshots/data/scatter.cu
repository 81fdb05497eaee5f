// ---- primal
namespace ns_primal {
template <class A_x, class A_bin, class A_out>
static __device__ inline void thread(A_x v_x, A_bin v_bin, A_out v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const float v_t_4 = (v_t_2 * v_t_3);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    eng::atomic_add(v_out, v_out.at(v_t_6), v_t_4);
}
static __device__ inline void run(const unsigned char* args, const eng_launch& L) {
    const auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    const auto v_bin = eng::arg<eng::array_t<int32_t,1>>(args, 24);
    const auto v_out = eng::arg<eng::array_t<float,1>>(args, 48);
    const int64_t step = eng::lanes();
    _Pragma("unroll 1")
    for (int64_t k = L.begin + eng::lane(); k < L.end; k += step) {
        int64_t c[1];
        eng::coordinates<1>(L, k, c);
        const int64_t k0 = c[0];
        thread(v_x, v_bin, v_out, k0);
    }
}
}
extern "C" __global__ void primal(const __grid_constant__ eng::block_t<72> args,
    const __grid_constant__ eng_launch L) {
    if (!eng::fits(L, false, 1)) return;
    ns_primal::run(args.bytes, L);
}

// ---- adjoint
namespace ns_adjoint {
template <class A_x, class A_bin, class A_out, class A_adj_x, class A_adj_out>
static __device__ inline void thread(A_x v_x, A_bin v_bin, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    const float v_ct = v_adj_out.at(v_t_6);
    const float v_t_7 = (v_ct * v_t_3);
    const float v_t_8 = (v_ct * v_t_2);
    eng::atomic_add(v_adj_x, v_adj_x.at(k0), v_t_8);
    eng::atomic_add(v_adj_x, v_adj_x.at(k0), v_t_7);
}
static __device__ inline void run(const unsigned char* args, const eng_launch& L) {
    const auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    const auto v_bin = eng::arg<eng::array_t<int32_t,1>>(args, 24);
    const auto v_out = eng::arg<eng::array_t<float,1>>(args, 48);
    const auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 72);
    const auto v_adj_out = eng::arg<eng::array_t<float,1>>(args, 96);
    const int64_t step = eng::lanes();
    _Pragma("unroll 1")
    for (int64_t k = L.end - 1 - eng::lane(); k >= L.begin; k -= step) {
        int64_t c[1];
        eng::coordinates<1>(L, k, c);
        const int64_t k0 = c[0];
        thread(v_x, v_bin, v_out, v_adj_x, v_adj_out, k0);
    }
}
}
extern "C" __global__ void adjoint(const __grid_constant__ eng::block_t<120> args,
    const __grid_constant__ eng_launch L) {
    if (!eng::fits(L, false, 1)) return;
    ns_adjoint::run(args.bytes, L);
}
