// Inner loops that depend on the instruction set, above all the nearest of a few centroids
// [Ristin2014 Eq. 2].
//
// |x - c|^2 = |x|^2 + 2 (|c|^2 / 2 - x.c), and |x|^2 is the same for every centroid, so the
// nearest centroid has the lowest score |c|^2 / 2 - x.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/factor_kernels.hpp"
#include "kernels/gain_kernels.hpp"

namespace evergrow {

// Rows per step of a kernel that reads precomputed scores.
constexpr std::size_t kScoreRows = 16;

constexpr float kWorstScore = 3.402823466e+38F;

struct Centroids {
    const float* const* vectors;  // padded to the width of the rows
    const float* half_norms;      // |c|^2 / 2
    std::size_t count;
};

// One implementation per instruction set. Within an implementation all functions sum dot products
// in the same order, so growing, batch and single-row prediction agree to the last bit.
struct Kernels {
    const char* name;
    // Index of the nearest centroid of each row, the lowest index of ties, and its score.
    void (*nearest_centroids)(const float* const* rows, std::size_t n_rows,
                              const Centroids& centroids, std::size_t width, std::uint16_t* nearest,
                              float* scores);
    // The score of row i and centroid j at `scores[j * stride + i]`. The output must have space for
    // a number of rows that is a multiple of four.
    void (*centroid_scores)(const float* const* rows, std::size_t n_rows,
                            const Centroids& centroids, std::size_t width, float* scores,
                            std::size_t stride);
    // nearest_centroids from precomputed scores, one column per centroid: the index of the lowest
    // and the lowest score. The output must have space for a multiple of kScoreRows rows.
    void (*lowest_columns)(const float* const* columns, std::size_t n_columns, std::size_t n_rows,
                           std::uint16_t* nearest, float* lowest);
    float (*dot_half)(const float* row, const std::uint16_t* centroid, std::size_t width);
    float (*dot_full)(const float* row, const float* centroid, std::size_t width);
    // Converts half precision to single and back; `narrow` saturates, and also rounds `floats`.
    void (*widen)(const std::uint16_t* halves, std::size_t width, float* floats);
    void (*narrow)(float* floats, std::size_t width, std::uint16_t* halves);
    // The same for numbers of one byte, which stand for multiples of `step`, a power of two. A dot
    // product with them is therefore that with the converted vector to the last bit.
    float (*dot_bytes)(const float* row, const std::int8_t* centroid, float step,
                       std::size_t width);
    void (*widen_bytes)(const std::int8_t* bytes, float step, std::size_t width, float* floats);
    void (*narrow_bytes)(float* floats, float step, std::size_t width, std::int8_t* bytes);
    // Adds the rows to the vector `sum`.
    void (*add_rows)(const float* const* rows, std::size_t n_rows, std::size_t width, float* sum);
    // The dot product of row i and vector j at `products[j * stride + i]`.
    void (*dot_products)(const float* const* rows, std::size_t n_rows, const float* const* vectors,
                         std::size_t n_vectors, std::size_t width, float* products,
                         std::size_t stride);
    // Adds `factor` times the row to the vector `sum`.
    void (*add_multiple)(const float* row, float factor, std::size_t width, float* sum);
    FactorKernels factor;
    GainKernels gain;
};

// The fastest implementation for this processor, chosen once. The environment variable
// EVERGROW_ISA (portable, avx2, avx512) overrides the choice.
const Kernels& kernels();

// An implementation by name, for tests and benchmarks; null if this processor or build lacks it.
const Kernels* kernels_named(const char* name);

// Names of the implementations that this processor runs, slowest first.
std::vector<std::string> available_kernels();

}  // namespace evergrow
