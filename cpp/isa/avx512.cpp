#include "isa.hpp"

#if defined(EVERGROW_X86)

#include <immintrin.h>

#include "kernel.hpp"

namespace evergrow {
namespace {

struct Avx512 {
    using Register = __m512;
    static constexpr std::size_t kWidth = 16;
    static constexpr std::size_t kColumns = 5;  // 4 rows x 5 centroids leave room for operands

    static Register zero() { return _mm512_setzero_ps(); }
    static Register load(const float* p) { return _mm512_load_ps(p); }
    static Register load_half(const std::uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static void store(float* p, Register v) { _mm512_store_ps(p, v); }
    static void store_half(std::uint16_t* p, Register v) {
        const Register limit = _mm512_set1_ps(65504.0F);
        v = _mm512_max_ps(_mm512_min_ps(v, limit), _mm512_sub_ps(zero(), limit));
        _mm256_store_si256(reinterpret_cast<__m256i*>(p),
                           _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
    static Register multiply_add(Register a, Register b, Register c) {
        return _mm512_fmadd_ps(a, b, c);
    }
    static void prefetch(const float* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }
    template <int C>
    static void sum_each(const Register* sums, float* out) {
        for (int c = 0; c < C; ++c) {
            const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sums[c]),
                                               _mm512_extractf32x8_ps(sums[c], 1));
            const __m128 four =
                _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
            const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            out[c] = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
        }
    }
};

}  // namespace

const Kernels kAvx512Kernels = make_kernels<Avx512>("avx512");

}  // namespace evergrow

#endif
