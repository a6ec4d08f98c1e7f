// The inner loops of least squares, in double precision; one implementation per instruction set.
#pragma once

#include <cstddef>

namespace evergrow {

// Rows of the factor and vectors that one pass over memory takes together.
constexpr std::size_t kFactorRows = 4;
constexpr std::size_t kFactorVectors = 8;

// Turns a row r of the factor and a vector x into each other:
// r <- keep r + take x, then x <- stretch x + back r.
struct Rotation {
    double keep = 1, take = 0, stretch = 1, back = 0;
};

// `n_vectors` is 1, 2, 4 or 8; others are filled up with zeros.
struct FactorKernels {
    // Rotations of four rows with every vector, row by row, over the columns [begin, end).
    // The one of row r with vector v is rotations[r * n_vectors + v].
    void (*rotate_rows)(double* const* rows, double* const* vectors, std::size_t n_vectors,
                        const Rotation* rotations, std::size_t begin, std::size_t end);
    // The product of four rows with every vector over [begin, end), at products[r * n_vectors + v].
    void (*multiply_rows)(const double* const* rows, const double* const* vectors,
                          std::size_t n_vectors, std::size_t begin, std::size_t end,
                          double* products);
    // The product of one row with every vector.
    void (*multiply_row)(const double* row, const double* const* vectors, std::size_t n_vectors,
                         std::size_t width, double* products);
    // result <- row + sum of multiples of the vectors.
    void (*add_vectors)(const double* row, const double* const* vectors, const double* multiples,
                        std::size_t n_vectors, std::size_t width, double* result);
};

}  // namespace evergrow
