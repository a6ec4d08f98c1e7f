// The nearest-centroid kernel, written once over a vector type and compiled once per
// instruction set. Everything has internal linkage: code compiled for a newer instruction
// set must never be the copy the linker keeps for the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../distance.hpp"

namespace evergrow {
namespace {

// Dot products of R rows with C centroids. Each pair has one accumulator, filled in the order
// of the features, so a pair's result does not depend on the block it was computed in.
//
// `ahead` are A rows to fetch meanwhile: rows lie scattered in memory, and
// requests spread over the loop overlap with the arithmetic where a burst would stall it.
template <class V, int R, int C, int A>
inline void dot_block(const float* const* rows, const float* const* ahead,
                      const float* const* centroids, std::size_t width,
                      float (&dots)[R][kCentroidBlock]) {
    typename V::Register sum[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sum[r][c] = V::zero();
    }
    for (std::size_t i = 0; i < width; i += V::kWidth) {
#pragma GCC unroll 8
        for (int a = 0; a < A; ++a) V::prefetch(ahead[a] + i);
        typename V::Register centroid[C];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) centroid[c] = V::load(centroids[c] + i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const typename V::Register row = V::load(rows[r] + i);
#pragma GCC unroll 8
            for (int c = 0; c < C; ++c) sum[r][c] = V::multiply_add(row, centroid[c], sum[r][c]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) V::template sum_each<C>(sum[r], dots[r]);
}

// Keeps the better of what was found so far and one block of scores `|c|^2 / 2 - x.c`.
// Strict comparison: a tie stays with the lower index.
inline void keep_best(const float* dots, const float* half_norms, std::size_t first,
                      std::size_t count, float& best, std::uint32_t& index) {
    for (std::size_t c = 0; c < count; ++c) {
        const float score = half_norms[first + c] - dots[c];
        const bool better = score < best;
        best = better ? score : best;
        index = better ? static_cast<std::uint32_t>(first + c) : index;
    }
}

template <class V, int R, int A>
inline void dot_columns(const float* const* rows, const float* const* ahead,
                        const float* const* centroids, std::size_t count, std::size_t width,
                        float (&dots)[R][kCentroidBlock]) {
    switch (count) {
        case 1: return dot_block<V, R, 1, A>(rows, ahead, centroids, width, dots);
        case 2: return dot_block<V, R, 2, A>(rows, ahead, centroids, width, dots);
        case 3: return dot_block<V, R, 3, A>(rows, ahead, centroids, width, dots);
        case 4: return dot_block<V, R, 4, A>(rows, ahead, centroids, width, dots);
        default: return dot_block<V, R, 5, A>(rows, ahead, centroids, width, dots);
    }
}

template <class V, int R>
inline void nearest_rows(const float* const* rows, const float* const* ahead,
                         const Centroids& centroids, std::size_t width, std::uint16_t* nearest,
                         float* scores) {
    float best[R];
    std::uint32_t index[R];
    for (int r = 0; r < R; ++r) {
        best[r] = kWorstScore;
        index[r] = 0;
    }
    // Blocks of nearly equal size: a lone last centroid would leave the pipeline half empty.
    const std::size_t n_blocks = (centroids.count + V::kColumns - 1) / V::kColumns;
    std::size_t first = 0;
    // The R = 4 rows to fetch are spread over the blocks.
    const std::size_t per_block = n_blocks == 1 ? 4 : (n_blocks < 4 ? 2 : 1);
    std::size_t to_fetch = ahead == nullptr ? 0 : R;
    for (std::size_t b = 0; b < n_blocks; ++b) {
        const std::size_t remaining = n_blocks - b;
        const std::size_t count = (centroids.count - first + remaining - 1) / remaining;
        float dots[R][kCentroidBlock];
        const std::size_t fetch = to_fetch == 0 ? 0 : per_block;
        const float* const* vectors = centroids.vectors + first;
        switch (fetch) {
            case 1: dot_columns<V, R, 1>(rows, ahead, vectors, count, width, dots); break;
            case 2: dot_columns<V, R, 2>(rows, ahead, vectors, count, width, dots); break;
            case 4: dot_columns<V, R, 4>(rows, ahead, vectors, count, width, dots); break;
            default: dot_columns<V, R, 0>(rows, ahead, vectors, count, width, dots);
        }
        ahead += fetch;
        to_fetch -= fetch;
        for (int r = 0; r < R; ++r)
            keep_best(dots[r], centroids.half_norms, first, count, best[r], index[r]);
        first += count;
    }
    for (int r = 0; r < R; ++r) {
        nearest[r] = static_cast<std::uint16_t>(index[r]);
        if (scores != nullptr) scores[r] = best[r];
    }
}

template <class V>
void nearest_centroids(const float* const* rows, std::size_t n_rows, const Centroids& centroids,
                       std::size_t width, std::uint16_t* nearest, float* scores) {
    constexpr int R = 4;
    for (std::size_t i = 0; i < n_rows;) {
        const bool full = i + R <= n_rows;
        float* score = scores == nullptr ? nullptr : scores + i;
        const float* const* ahead = i + 2 * R <= n_rows ? rows + i + R : nullptr;
        if (full)
            nearest_rows<V, R>(rows + i, ahead, centroids, width, nearest + i, score);
        else
            nearest_rows<V, 1>(rows + i, nullptr, centroids, width, nearest + i, score);
        i += full ? R : 1;
    }
}

// One dot product with a half-precision centroid, in the order of dot_block.
template <class V>
float dot_half(const float* row, const std::uint16_t* centroid, std::size_t width) {
    typename V::Register sum[1] = {V::zero()};
    for (std::size_t i = 0; i < width; i += V::kWidth)
        sum[0] = V::multiply_add(V::load(row + i), V::load_half(centroid + i), sum[0]);
    float dot[kCentroidBlock];
    V::template sum_each<1>(sum, dot);
    return dot[0];
}

template <class V>
float dot_full(const float* row, const float* centroid, std::size_t width) {
    float dot[1][kCentroidBlock];
    dot_block<V, 1, 1, 0>(&row, nullptr, &centroid, width, dot);
    return dot[0][0];
}

template <class V>
void widen(const std::uint16_t* halves, std::size_t width, float* floats) {
    for (std::size_t i = 0; i < width; i += V::kWidth) V::store(floats + i, V::load_half(halves + i));
}

template <class V>
void narrow(float* floats, std::size_t width, std::uint16_t* halves) {
    for (std::size_t i = 0; i < width; i += V::kWidth) {
        V::store_half(halves + i, V::load(floats + i));
        V::store(floats + i, V::load_half(halves + i));
    }
}

template <class V>
void add_rows(const float* const* rows, std::size_t n_rows, std::size_t width, float* sum) {
    std::size_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        // Fetching stops at the last whole block of four; past it the rows are too few to matter.
        const float* const* ahead = r + 8 <= n_rows ? rows + r + 4 : rows + r;
        for (std::size_t i = 0; i < width; i += V::kWidth) {
            for (int a = 0; a < 4; ++a) V::prefetch(ahead[a] + i);
            const auto left = V::add(V::load(rows[r] + i), V::load(rows[r + 1] + i));
            const auto right = V::add(V::load(rows[r + 2] + i), V::load(rows[r + 3] + i));
            V::store(sum + i, V::add(V::load(sum + i), V::add(left, right)));
        }
    }
    for (; r < n_rows; ++r)
        for (std::size_t i = 0; i < width; i += V::kWidth)
            V::store(sum + i, V::add(V::load(sum + i), V::load(rows[r] + i)));
}

template <class V>
constexpr Kernels make_kernels(const char* name) {
    return Kernels{name,        nearest_centroids<V>, dot_half<V>, dot_full<V>, widen<V>,
                   narrow<V>, add_rows<V>};
}

}  // namespace
}  // namespace evergrow
