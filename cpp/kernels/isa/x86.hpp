// Shared by the AVX2 and AVX-512 kernels: results of four rows in one 128-bit register.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernels.hpp"

namespace evergrow {
namespace {

// The lowest scores of four rows and the centroids they belong to.
struct BestOfFour {
    __m128 score;
    __m128i index;

    static BestOfFour none() { return {_mm_set1_ps(kWorstScore), _mm_setzero_si128()}; }
    void keep(float half_norm, __m128 dots, std::int32_t centroid) {
        const __m128 candidate = _mm_sub_ps(_mm_set1_ps(half_norm), dots);
        const __m128 better = _mm_cmplt_ps(candidate, score);
        score = _mm_blendv_ps(score, candidate, better);
        index = _mm_blendv_epi8(index, _mm_set1_epi32(centroid), _mm_castps_si128(better));
    }
    void store(std::int32_t* nearest, float* scores) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(nearest), index);
        _mm_storeu_ps(scores, score);
    }
};

inline float sum_of_four(__m128 four) {
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace
}  // namespace evergrow
