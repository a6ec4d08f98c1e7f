// The loops of kernels.hpp as templates over a vector type, compiled once per instruction set.
// Everything has internal linkage: with external linkage the linker could keep the copy for a newer
// instruction set and use it for all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace evergrow {
namespace {

// Rows are processed four at a time; the four results for a centroid share a register.
constexpr std::size_t kRows = 4;

// Dot products of four rows with C centroids. Each pair has one accumulator, filled in the order
// of the features, so its result does not depend on the block in which it was computed.
//
// `ahead` are A rows to prefetch: rows lie scattered in memory, and prefetches spread over the loop
// overlap with the arithmetic. They go to the second-level cache, because the first level has too
// few buffers for pending lines (measured: half as fast).
template <class V, int C, int A>
inline void dot_block(const float* const* rows, const float* const* ahead,
                      const float* const* centroids, std::size_t width, typename V::Four* dots) {
    typename V::Register sum[C][kRows];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kRows; ++r) sum[c][r] = V::zero();
    }
    for (std::size_t i = 0; i < width; i += V::kWidth) {
#pragma GCC unroll 8
        for (int a = 0; a < A; ++a) V::prefetch(ahead[a] + i);
        typename V::Register row[kRows];
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kRows; ++r) row[r] = V::load(rows[r] + i);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) {
            const typename V::Register centroid = V::load(centroids[c] + i);
#pragma GCC unroll 8
            for (std::size_t r = 0; r < kRows; ++r)
                sum[c][r] = V::multiply_add(row[r], centroid, sum[c][r]);
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) dots[c] = V::sum_lanes(sum[c]);
}

// dot_block for a number of centroids that is known at run time, at most V::kColumns.
template <class V, int A, int C = V::kColumns>
inline void dot_columns(const float* const* rows, const float* const* ahead,
                        const float* const* centroids, std::size_t count, std::size_t width,
                        typename V::Four* dots) {
    if constexpr (C > 1) {
        if (count < C) return dot_columns<V, A, C - 1>(rows, ahead, centroids, count, width, dots);
    }
    dot_block<V, C, A>(rows, ahead, centroids, width, dots);
}

// Dot products of four rows with every centroid: calls keep(centroid, dots) for each in order.
// `ahead` are four more rows to prefetch, or null.
template <class V, class Keep>
inline void dot_four(const float* const* rows, const float* const* ahead,
                     const Centroids& centroids, std::size_t width, Keep keep) {
    // Blocks of nearly equal size: a last block of one centroid would not fill the pipeline.
    const std::size_t n_blocks = (centroids.count + V::kColumns - 1) / V::kColumns;
    // The prefetches are spread over the blocks.
    const std::size_t per_block = n_blocks == 1 ? 4 : (n_blocks < 4 ? 2 : 1);
    std::size_t to_fetch = ahead == nullptr ? 0 : kRows;
    std::size_t first = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) {
        const std::size_t remaining = n_blocks - b;
        const std::size_t count = (centroids.count - first + remaining - 1) / remaining;
        const std::size_t fetch = to_fetch == 0 ? 0 : per_block;
        const float* const* vectors = centroids.vectors + first;
        typename V::Four dots[V::kColumns];
        switch (fetch) {
            case 1: dot_columns<V, 1>(rows, ahead, vectors, count, width, dots); break;
            case 2: dot_columns<V, 2>(rows, ahead, vectors, count, width, dots); break;
            case 4: dot_columns<V, 4>(rows, ahead, vectors, count, width, dots); break;
            default: dot_columns<V, 0>(rows, ahead, vectors, count, width, dots);
        }
        for (std::size_t c = 0; c < count; ++c) keep(first + c, dots[c]);
        ahead += fetch;
        to_fetch -= fetch;
        first += count;
    }
}

// Calls with_four(i, n, rows, ahead) for rows i to i + n - 1, four at a time. A shorter last group
// is filled with copies of its last row.
template <class WithFour>
inline void by_four(const float* const* rows, std::size_t n_rows, std::size_t width,
                    WithFour with_four) {
    // Narrow rows are computed faster than they are fetched: prefetch earlier if there are many.
    const std::size_t lead = kRows * (width <= 512 && n_rows >= 64 ? 3 : 1);
    for (std::size_t i = 0; i < n_rows; i += kRows) {
        const std::size_t n = n_rows - i < kRows ? n_rows - i : kRows;
        const float* four[kRows];
        for (std::size_t r = 0; r < kRows; ++r) four[r] = rows[i + (r < n ? r : n - 1)];
        with_four(i, n, four, i + lead + kRows <= n_rows ? rows + i + lead : nullptr);
    }
}

template <class V>
void nearest_centroids(const float* const* rows, std::size_t n_rows, const Centroids& centroids,
                       std::size_t width, std::uint16_t* nearest, float* scores) {
    by_four(rows, n_rows, width,
            [&](std::size_t i, std::size_t n, const float* const* four, const float* const* ahead) {
                auto best = V::Best::none();
                // Score |c|^2 / 2 - x.c; strict comparison, so that ties go to the lower index.
                dot_four<V>(four, ahead, centroids, width,
                            [&](std::size_t c, const typename V::Four& dots) {
                                best.keep(centroids.half_norms[c], dots,
                                          static_cast<std::int32_t>(c));
                            });
                std::int32_t index[kRows];
                float score[kRows];
                best.store(index, score);
                for (std::size_t r = 0; r < n; ++r) {
                    nearest[i + r] = static_cast<std::uint16_t>(index[r]);
                    scores[i + r] = score[r];
                }
            });
}

template <class V>
void centroid_scores(const float* const* rows, std::size_t n_rows, const Centroids& centroids,
                     std::size_t width, float* scores, std::size_t stride) {
    by_four(rows, n_rows, width,
            [&](std::size_t i, std::size_t, const float* const* four, const float* const* ahead) {
                dot_four<V>(four, ahead, centroids, width,
                            [&](std::size_t c, const typename V::Four& dots) {
                                float lanes[kRows];
                                V::store_four(lanes, dots);
                                float* own = scores + c * stride + i;
                                for (std::size_t r = 0; r < kRows; ++r)
                                    own[r] = centroids.half_norms[c] - lanes[r];
                            });
            });
}

// The lowest of several columns for N registers of rows; its score only if `lowest` is not null.
template <class V, std::size_t N>
inline void lowest_of_rows(const float* const* columns, std::size_t n_columns, std::size_t first,
                           std::uint16_t* nearest, float* lowest) {
    typename V::Lowest best[N];
    for (std::size_t r = 0; r < N; ++r) best[r] = V::Lowest::none();
    for (std::size_t j = 0; j < n_columns; ++j)
        for (std::size_t r = 0; r < N; ++r)
            best[r].keep(columns[j] + first + r * V::kWidth, static_cast<std::int32_t>(j));
    for (std::size_t r = 0; r < N; ++r) best[r].store_index(nearest + first + r * V::kWidth);
    if (lowest == nullptr) return;
    for (std::size_t r = 0; r < N; ++r) best[r].store_score(lowest + first + r * V::kWidth);
}

template <class V>
void lowest_columns(const float* const* columns, std::size_t n_columns, std::size_t n_rows,
                    std::uint16_t* nearest, float* lowest) {
    constexpr std::size_t kRegisters = kScoreRows / V::kWidth;
    std::size_t first = 0;
    // Two groups at once where there are enough: comparisons of one register wait for each other.
    for (; first + kScoreRows < n_rows; first += 2 * kScoreRows)
        lowest_of_rows<V, 2 * kRegisters>(columns, n_columns, first, nearest, lowest);
    if (first < n_rows) lowest_of_rows<V, kRegisters>(columns, n_columns, first, nearest, lowest);
}

// One dot product with a centroid in place, summed in the order of dot_block.
template <class V>
float dot_half(const float* row, const std::uint16_t* centroid, std::size_t width) {
    typename V::Register sum = V::zero();
    for (std::size_t i = 0; i < width; i += V::kWidth)
        sum = V::multiply_add(V::load(row + i), V::load_half(centroid + i), sum);
    return V::sum_lanes(sum);
}

template <class V>
float dot_full(const float* row, const float* centroid, std::size_t width) {
    typename V::Register sum = V::zero();
    for (std::size_t i = 0; i < width; i += V::kWidth)
        sum = V::multiply_add(V::load(row + i), V::load(centroid + i), sum);
    return V::sum_lanes(sum);
}

template <class V>
void widen(const std::uint16_t* halves, std::size_t width, float* floats) {
    for (std::size_t i = 0; i < width; i += V::kWidth)
        V::store(floats + i, V::load_half(halves + i));
}

template <class V>
void narrow(float* floats, std::size_t width, std::uint16_t* halves) {
    for (std::size_t i = 0; i < width; i += V::kWidth) {
        V::store_half(halves + i, V::load(floats + i));
        V::store(floats + i, V::load_half(halves + i));
    }
}

// The factor is a power of two: it changes no digit, before the sum or after it.
template <class V>
float dot_bytes(const float* row, const std::int8_t* centroid, float step, std::size_t width) {
    typename V::Register sum = V::zero();
    for (std::size_t i = 0; i < width; i += V::kWidth)
        sum = V::multiply_add(V::load(row + i), V::load_signed(centroid + i), sum);
    return step * V::sum_lanes(sum);
}

template <class V>
void widen_bytes(const std::int8_t* bytes, float step, std::size_t width, float* floats) {
    const typename V::Register repeated = V::repeat(step);
    for (std::size_t i = 0; i < width; i += V::kWidth)
        V::store(floats + i, V::multiply(V::load_signed(bytes + i), repeated));
}

template <class V>
void narrow_bytes(float* floats, float step, std::size_t width, std::int8_t* bytes) {
    const typename V::Register inverse = V::repeat(1.0F / step), repeated = V::repeat(step);
    for (std::size_t i = 0; i < width; i += V::kWidth) {
        V::store_signed(bytes + i, V::multiply(V::load(floats + i), inverse));
        V::store(floats + i, V::multiply(V::load_signed(bytes + i), repeated));
    }
}

template <class V>
void add_rows(const float* const* rows, std::size_t n_rows, std::size_t width, float* sum) {
    std::size_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        // No prefetch for the last rows, which are too few to matter.
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
void dot_products(const float* const* rows, std::size_t n_rows, const float* const* vectors,
                  std::size_t n_vectors, std::size_t width, float* products, std::size_t stride) {
    for (std::size_t i = 0; i < n_rows; i += kRows) {
        const std::size_t n = n_rows - i < kRows ? n_rows - i : kRows;
        // A shorter last group is filled with copies of its last row.
        const float* four[kRows];
        for (std::size_t r = 0; r < kRows; ++r) four[r] = rows[i + (r < n ? r : n - 1)];
        for (std::size_t j = 0; j < n_vectors; j += V::kColumns) {
            const std::size_t count = n_vectors - j < V::kColumns ? n_vectors - j : V::kColumns;
            typename V::Four dots[V::kColumns];
            dot_columns<V, 0>(four, nullptr, vectors + j, count, width, dots);
            for (std::size_t c = 0; c < count; ++c) {
                float lanes[kRows];
                V::store_four(lanes, dots[c]);
                for (std::size_t r = 0; r < n; ++r) products[(j + c) * stride + i + r] = lanes[r];
            }
        }
    }
}

template <class V>
void add_multiple(const float* row, float factor, std::size_t width, float* sum) {
    const typename V::Register repeated = V::repeat(factor);
    for (std::size_t i = 0; i < width; i += V::kWidth)
        V::store(sum + i, V::multiply_add(V::load(row + i), repeated, V::load(sum + i)));
}

template <class V>
constexpr Kernels make_kernels(const char* name, const FactorKernels& factor,
                               const GainKernels& gain) {
    return Kernels{name,
                   nearest_centroids<V>,
                   centroid_scores<V>,
                   lowest_columns<V>,
                   dot_half<V>,
                   dot_full<V>,
                   widen<V>,
                   narrow<V>,
                   dot_bytes<V>,
                   widen_bytes<V>,
                   narrow_bytes<V>,
                   add_rows<V>,
                   dot_products<V>,
                   add_multiple<V>,
                   factor,
                   gain};
}

}  // namespace
}  // namespace evergrow
