// The inner loops of least squares, in double precision; one implementation per instruction set.
#pragma once

#include <cstddef>

namespace evergrow {

// Rows of the factor, and vectors, that one pass over memory processes together.
constexpr std::size_t kFactorRows = 4;
constexpr std::size_t kFactorVectors = 8;

// A rotation of a row r of the factor and a vector x:
// r <- row_by_row r + row_by_vector x, then x <- vector_by_vector x + vector_by_row r.
struct Rotation {
    double row_by_row = 1, row_by_vector = 0, vector_by_vector = 1, vector_by_row = 0;
};

// `n_vectors` is 1, 2, 4 or 8; callers add vectors of zeros.
struct FactorKernels {
    // Rotates four rows with every vector, row after row, over the columns [begin, end). The
    // rotation of row r with vector v is rotations[r * n_vectors + v].
    void (*rotate_rows)(double* const* rows, double* const* vectors, std::size_t n_vectors,
                        const Rotation* rotations, std::size_t begin, std::size_t end);
    // Dot products of four rows with every vector over the columns [begin, end), row by row: that
    // of row r with vector v is products[r * n_vectors + v].
    void (*multiply_rows)(const double* const* rows, const double* const* vectors,
                          std::size_t n_vectors, std::size_t begin, std::size_t end,
                          double* products);
    // Dot products of one row with every vector.
    void (*multiply_row)(const double* row, const double* const* vectors, std::size_t n_vectors,
                         std::size_t width, double* products);
    // result <- row + sum over v of multiples[v] * vectors[v].
    void (*add_vectors)(const double* row, const double* const* vectors, const double* multiples,
                        std::size_t n_vectors, std::size_t width, double* result);
};

}  // namespace evergrow
