#include "kernels/isa/instruction_sets.hpp"

#if defined(EVERGROW_X86)

#include "kernels/isa/distance_loops.hpp"
#include "kernels/isa/factor_loops.hpp"
#include "kernels/isa/gain_loops.hpp"
#include "kernels/isa/x86.hpp"

namespace evergrow {
namespace {

struct Avx512 {
    using Register = __m512;
    using Four = __m128;
    using Best = BestOfFour;
    static constexpr std::size_t kWidth = 16;
    // The lowest scores of sixteen rows and the columns they belong to.
    struct Lowest {
        __m512 score;
        __m512i index;

        static Lowest none() { return {_mm512_set1_ps(kWorstScore), _mm512_setzero_si512()}; }
        void keep(const float* column, std::int32_t place) {
            const __m512 candidate = _mm512_load_ps(column);
            const __mmask16 lower = _mm512_cmp_ps_mask(candidate, score, _CMP_LT_OQ);
            score = _mm512_mask_mov_ps(score, lower, candidate);
            index = _mm512_mask_mov_epi32(index, lower, _mm512_set1_epi32(place));
        }
        void store_index(std::uint16_t* p) const {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(index));
        }
        void store_score(float* p) const { _mm512_storeu_ps(p, score); }
    };
    static constexpr std::size_t kColumns = 5;  // 4 rows x 5 centroids leave registers for operands

    static Register zero() { return _mm512_setzero_ps(); }
    static Register repeat(float value) { return _mm512_set1_ps(value); }
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
    static Register load_signed(const std::int8_t* p) {
        return _mm512_cvtepi32_ps(
            _mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))));
    }
    // Rounds to nearest, ties to even; saturates.
    static void store_signed(std::int8_t* p, Register v) {
        v = _mm512_max_ps(_mm512_min_ps(v, repeat(127.0F)), repeat(-128.0F));
        _mm_store_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
    }
    static void store_four(float* p, Four v) { _mm_storeu_ps(p, v); }
    static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
    static Register multiply(Register a, Register b) { return _mm512_mul_ps(a, b); }
    static Register multiply_add(Register a, Register b, Register c) {
        return _mm512_fmadd_ps(a, b, c);
    }
    static void prefetch(const float* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }
    // Lane i of an accumulator is added to lane i + 8, then i + 4, i + 2 and i + 1.
    static float sum_lanes(Register sum) {
        const __m256 eight =
            _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
        return sum_of_four(
            _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
    }
    static Four sum_lanes(const Register (&sums)[kRows]) {
        const Register first = fold(sums[0], sums[1]);
        const Register second = fold(sums[2], sums[3]);
        // One 128-bit quarter per row from here on.
        const Register quarters = _mm512_add_ps(_mm512_shuffle_f32x4(first, second, 0x88),
                                                _mm512_shuffle_f32x4(first, second, 0xDD));
        const Register pairs = _mm512_add_ps(quarters, _mm512_permute_ps(quarters, 0x4E));
        const Register sum = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xB1));
        const __m512i every_fourth =
            _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        return _mm512_castps512_ps128(_mm512_permutexvar_ps(every_fourth, sum));
    }

    using Double = __m512d;
    static constexpr std::size_t kDoubles = 8;
    static Double zero_double() { return _mm512_setzero_pd(); }
    static Double repeat_double(double value) { return _mm512_set1_pd(value); }
    static Double load_double(const double* p) { return _mm512_loadu_pd(p); }
    static void store_double(double* p, Double v) { _mm512_storeu_pd(p, v); }
    static Double multiply_double(Double a, Double b) { return _mm512_mul_pd(a, b); }
    static Double multiply_add_double(Double a, Double b, Double c) {
        return _mm512_fmadd_pd(a, b, c);
    }
    static double sum_double(Double sum) { return _mm512_reduce_add_pd(sum); }

    using Bytes = __m512i;
    static constexpr std::size_t kBytes = 64;
    static Bytes zero_bytes() { return _mm512_setzero_si512(); }
    static Bytes load_bytes(const std::int8_t* p) { return _mm512_loadu_si512(p); }
    static void store_bytes(std::uint8_t* p, Bytes v) { _mm512_storeu_si512(p, v); }
    static Bytes add_bytes(Bytes a, Bytes b) { return _mm512_add_epi8(a, b); }
    static Bytes subtract_bytes(Bytes a, Bytes b) { return _mm512_sub_epi8(a, b); }
    // Two registers hold 16 entries, and the entries of r and n - r are the same.
    static constexpr std::size_t kMaxSplitTerms = 31;
    static void add_split_terms(const std::int64_t* split_terms, std::size_t n,
                                const std::uint8_t* right, std::size_t n_candidates,
                                std::int64_t* gains) {
        const __m512i low = _mm512_loadu_si512(split_terms),
                      high = _mm512_loadu_si512(split_terms + 8);
        const __m128i all = _mm_set1_epi8(static_cast<char>(n));
        for (std::size_t i = 0; i < n_candidates; i += 8) {
            const __m128i r = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(right + i));
            const __m512i place = _mm512_cvtepu8_epi64(_mm_min_epu8(r, _mm_sub_epi8(all, r)));
            const __m512i parts = _mm512_permutex2var_epi64(low, place, high);
            _mm512_storeu_si512(gains + i, _mm512_add_epi64(_mm512_loadu_si512(gains + i), parts));
        }
    }

  private:
    // Halves of a added to each other in the low half, those of b in the high half.
    static Register fold(Register a, Register b) {
        return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    }
};

}  // namespace

const Kernels kAvx512Kernels =
    make_kernels<Avx512>("avx512", make_factor_kernels<Avx512>(), make_gain_kernels<Avx512>());

}  // namespace evergrow

#endif
