#include "kernels/isa/instruction_sets.hpp"

#if defined(EVERGROW_X86)

#include "kernels/isa/distance_loops.hpp"
#include "kernels/isa/factor_loops.hpp"
#include "kernels/isa/gain_loops.hpp"
#include "kernels/isa/x86.hpp"

namespace evergrow {
namespace {

struct Avx2 {
    using Register = __m256;
    using Four = __m128;
    using Best = BestOfFour;
    static constexpr std::size_t kWidth = 8;
    // The lowest scores of eight rows and the columns they belong to.
    struct Lowest {
        __m256 score;
        __m256i index;

        static Lowest none() { return {_mm256_set1_ps(kWorstScore), _mm256_setzero_si256()}; }
        void keep(const float* column, std::int32_t place) {
            const __m256 candidate = _mm256_load_ps(column);
            const __m256 lower = _mm256_cmp_ps(candidate, score, _CMP_LT_OQ);
            score = _mm256_blendv_ps(score, candidate, lower);
            index = _mm256_blendv_epi8(index, _mm256_set1_epi32(place), _mm256_castps_si256(lower));
        }
        void store_index(std::uint16_t* p) const {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                             _mm_packus_epi32(_mm256_castsi256_si128(index),
                                              _mm256_extracti128_si256(index, 1)));
        }
        void store_score(float* p) const { _mm256_storeu_ps(p, score); }
    };
    static constexpr std::size_t kColumns = 3;  // 4 rows x 3 centroids fill the 16 registers

    static Register zero() { return _mm256_setzero_ps(); }
    static Register repeat(float value) { return _mm256_set1_ps(value); }
    static Register load(const float* p) { return _mm256_load_ps(p); }
    static Register load_half(const std::uint16_t* p) {
        return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static void store(float* p, Register v) { _mm256_store_ps(p, v); }
    static void store_half(std::uint16_t* p, Register v) {
        const Register limit = _mm256_set1_ps(65504.0F);
        v = _mm256_max_ps(_mm256_min_ps(v, limit), _mm256_sub_ps(zero(), limit));
        _mm_store_si128(reinterpret_cast<__m128i*>(p),
                        _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    static Register load_signed(const std::int8_t* p) {
        return _mm256_cvtepi32_ps(
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    // Rounds to nearest, ties to even; saturates.
    static void store_signed(std::int8_t* p, Register v) {
        v = _mm256_max_ps(_mm256_min_ps(v, repeat(127.0F)), repeat(-128.0F));
        const __m256i whole = _mm256_cvtps_epi32(v);
        const __m128i words =
            _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
    }
    static void store_four(float* p, Four v) { _mm_storeu_ps(p, v); }
    static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
    static Register multiply(Register a, Register b) { return _mm256_mul_ps(a, b); }
    static Register multiply_add(Register a, Register b, Register c) {
        return _mm256_fmadd_ps(a, b, c);
    }
    static void prefetch(const float* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }
    // Lane i of an accumulator is added to lane i + 4, then i + 2, then i + 1.
    static float sum_lanes(Register sum) {
        return sum_of_four(_mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1)));
    }
    static Four sum_lanes(const Register (&sums)[kRows]) {
        const Register first = fold(sums[0], sums[1]);
        const Register second = fold(sums[2], sums[3]);
        // Each 128-bit half of `first` and `second` holds four partial sums of one row.
        const Register low = _mm256_shuffle_ps(first, second, 0x44);
        const Register high = _mm256_shuffle_ps(first, second, 0xEE);
        const Register pairs = _mm256_add_ps(low, high);  // rows 0, 2 | 1, 3, two sums each
        const Register sum = _mm256_add_ps(pairs, _mm256_permute_ps(pairs, 0xB1));
        // Rows 0, 0, 2, 2 | 1, 1, 3, 3.
        return _mm_blend_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1), 0xA);
    }

    using Double = __m256d;
    static constexpr std::size_t kDoubles = 4;
    static Double zero_double() { return _mm256_setzero_pd(); }
    static Double repeat_double(double value) { return _mm256_set1_pd(value); }
    static Double load_double(const double* p) { return _mm256_loadu_pd(p); }
    static void store_double(double* p, Double v) { _mm256_storeu_pd(p, v); }
    static Double multiply_double(Double a, Double b) { return _mm256_mul_pd(a, b); }
    static Double multiply_add_double(Double a, Double b, Double c) {
        return _mm256_fmadd_pd(a, b, c);
    }
    static double sum_double(Double sum) {
        const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
        return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    }

    using Bytes = __m256i;
    static constexpr std::size_t kBytes = 32;
    static Bytes zero_bytes() { return _mm256_setzero_si256(); }
    static Bytes load_bytes(const std::int8_t* p) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
    static void store_bytes(std::uint8_t* p, Bytes v) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
    }
    static Bytes add_bytes(Bytes a, Bytes b) { return _mm256_add_epi8(a, b); }
    static Bytes subtract_bytes(Bytes a, Bytes b) { return _mm256_sub_epi8(a, b); }
    static constexpr std::size_t kMaxSplitTerms = 0;  // registers hold too few entries
    static void add_split_terms(const std::int64_t*, std::size_t, const std::uint8_t*, std::size_t,
                                std::int64_t*) {}

  private:
    // Halves of a added to each other in the low half, those of b in the high half.
    static Register fold(Register a, Register b) {
        return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                             _mm256_permute2f128_ps(a, b, 0x31));
    }
};

}  // namespace

const Kernels kAvx2Kernels =
    make_kernels<Avx2>("avx2", make_factor_kernels<Avx2>(), make_gain_kernels<Avx2>());

}  // namespace evergrow

#endif
