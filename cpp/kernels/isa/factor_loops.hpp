// The loops of factor_kernels.hpp as templates over a vector type, compiled once per instruction
// set. Everything has internal linkage, as in distance_loops.hpp.
#pragma once

#include <cstddef>

#include "kernels/factor_kernels.hpp"

namespace evergrow {
namespace {

// One double at a time, for the end of a row.
struct OneDouble {
    using Double = double;
    static constexpr std::size_t kDoubles = 1;
    static double zero_double() { return 0.0; }
    static double repeat_double(double value) { return value; }
    static double load_double(const double* p) { return *p; }
    static void store_double(double* p, double v) { *p = v; }
    static double multiply_double(double a, double b) { return a * b; }
    static double multiply_add_double(double a, double b, double c) { return a * b + c; }
    static double sum_double(double sum) { return sum; }
};

// Each vector stays in a register while the four rows are processed. Memory bandwidth is the limit,
// and a row is read and written once for all vectors.
template <class V, std::size_t M>
inline std::size_t rotate_columns(double* const* rows, double* const* vectors,
                                  const Rotation* rotations, std::size_t begin, std::size_t end) {
    using Double = typename V::Double;
    std::size_t i = begin;
    for (; i + V::kDoubles <= end; i += V::kDoubles) {
        Double x[M];
#pragma GCC unroll 8
        for (std::size_t v = 0; v < M; ++v) x[v] = V::load_double(vectors[v] + i);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kFactorRows; ++r) {
            Double row = V::load_double(rows[r] + i);
#pragma GCC unroll 8
            for (std::size_t v = 0; v < M; ++v) {
                const Rotation& rotation = rotations[r * M + v];
                row = V::multiply_add_double(
                    V::repeat_double(rotation.row_by_vector), x[v],
                    V::multiply_double(V::repeat_double(rotation.row_by_row), row));
                x[v] = V::multiply_add_double(
                    V::repeat_double(rotation.vector_by_row), row,
                    V::multiply_double(V::repeat_double(rotation.vector_by_vector), x[v]));
            }
            V::store_double(rows[r] + i, row);
        }
#pragma GCC unroll 8
        for (std::size_t v = 0; v < M; ++v) V::store_double(vectors[v] + i, x[v]);
    }
    return i;
}

template <class V, std::size_t M>
inline std::size_t multiply_columns(const double* const* rows, const double* const* vectors,
                                    std::size_t begin, std::size_t end, double* products) {
    using Double = typename V::Double;
    Double sum[kFactorRows][M];
    for (auto& row : sum)
        for (Double& s : row) s = V::zero_double();
    std::size_t i = begin;
    for (; i + V::kDoubles <= end; i += V::kDoubles) {
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kFactorRows; ++r) {
            const Double row = V::load_double(rows[r] + i);
#pragma GCC unroll 8
            for (std::size_t v = 0; v < M; ++v)
                sum[r][v] = V::multiply_add_double(row, V::load_double(vectors[v] + i), sum[r][v]);
        }
    }
    for (std::size_t r = 0; r < kFactorRows; ++r)
        for (std::size_t v = 0; v < M; ++v) products[r * M + v] += V::sum_double(sum[r][v]);
    return i;
}

// Two sums per vector, because additions to the same sum wait for each other.
template <class V, std::size_t M>
inline std::size_t multiply_one(const double* row, const double* const* vectors, std::size_t width,
                                double* products) {
    using Double = typename V::Double;
    Double even[M], odd[M];
    for (std::size_t v = 0; v < M; ++v) even[v] = odd[v] = V::zero_double();
    std::size_t i = 0;
    for (; i + 2 * V::kDoubles <= width; i += 2 * V::kDoubles) {
        const Double first = V::load_double(row + i);
        const Double second = V::load_double(row + i + V::kDoubles);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < M; ++v) {
            even[v] = V::multiply_add_double(first, V::load_double(vectors[v] + i), even[v]);
            odd[v] = V::multiply_add_double(second, V::load_double(vectors[v] + i + V::kDoubles),
                                            odd[v]);
        }
    }
    for (std::size_t v = 0; v < M; ++v)
        products[v] += V::sum_double(even[v]) + V::sum_double(odd[v]);
    return i;
}

template <class V, std::size_t M>
inline std::size_t add_columns(const double* row, const double* const* vectors,
                               const double* multiples, std::size_t begin, std::size_t width,
                               double* result) {
    using Double = typename V::Double;
    std::size_t i = begin;
    for (; i + V::kDoubles <= width; i += V::kDoubles) {
        Double sum = V::load_double(row + i);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < M; ++v)
            sum = V::multiply_add_double(V::repeat_double(multiples[v]),
                                         V::load_double(vectors[v] + i), sum);
        V::store_double(result + i, sum);
    }
    return i;
}

template <class V>
struct FactorLoops {
    template <std::size_t M>
    static void rotate(double* const* rows, double* const* vectors, const Rotation* rotations,
                       std::size_t begin, std::size_t end) {
        begin = rotate_columns<V, M>(rows, vectors, rotations, begin, end);
        rotate_columns<OneDouble, M>(rows, vectors, rotations, begin, end);
    }
    template <std::size_t M>
    static void multiply(const double* const* rows, const double* const* vectors, std::size_t begin,
                         std::size_t end, double* products) {
        for (std::size_t i = 0; i < kFactorRows * M; ++i) products[i] = 0;
        begin = multiply_columns<V, M>(rows, vectors, begin, end, products);
        multiply_columns<OneDouble, M>(rows, vectors, begin, end, products);
    }
    template <std::size_t M>
    static void multiply_single(const double* row, const double* const* vectors, std::size_t width,
                                double* products) {
        for (std::size_t v = 0; v < M; ++v) products[v] = 0;
        const std::size_t done = multiply_one<V, M>(row, vectors, width, products);
        for (std::size_t i = done; i < width; ++i)
            for (std::size_t v = 0; v < M; ++v) products[v] += row[i] * vectors[v][i];
    }
    template <std::size_t M>
    static void add(const double* row, const double* const* vectors, const double* multiples,
                    std::size_t width, double* result) {
        const std::size_t done = add_columns<V, M>(row, vectors, multiples, 0, width, result);
        add_columns<OneDouble, M>(row, vectors, multiples, done, width, result);
    }

    static void rotate_rows(double* const* rows, double* const* vectors, std::size_t n_vectors,
                            const Rotation* rotations, std::size_t begin, std::size_t end) {
        switch (n_vectors) {
            case 1: return rotate<1>(rows, vectors, rotations, begin, end);
            case 2: return rotate<2>(rows, vectors, rotations, begin, end);
            case 4: return rotate<4>(rows, vectors, rotations, begin, end);
            default: return rotate<8>(rows, vectors, rotations, begin, end);
        }
    }
    static void multiply_rows(const double* const* rows, const double* const* vectors,
                              std::size_t n_vectors, std::size_t begin, std::size_t end,
                              double* products) {
        switch (n_vectors) {
            case 1: return multiply<1>(rows, vectors, begin, end, products);
            case 2: return multiply<2>(rows, vectors, begin, end, products);
            case 4: return multiply<4>(rows, vectors, begin, end, products);
            default: return multiply<8>(rows, vectors, begin, end, products);
        }
    }
    static void multiply_row(const double* row, const double* const* vectors, std::size_t n_vectors,
                             std::size_t width, double* products) {
        switch (n_vectors) {
            case 1: return multiply_single<1>(row, vectors, width, products);
            case 2: return multiply_single<2>(row, vectors, width, products);
            case 4: return multiply_single<4>(row, vectors, width, products);
            default: return multiply_single<8>(row, vectors, width, products);
        }
    }
    static void add_vectors(const double* row, const double* const* vectors,
                            const double* multiples, std::size_t n_vectors, std::size_t width,
                            double* result) {
        switch (n_vectors) {
            case 1: return add<1>(row, vectors, multiples, width, result);
            case 2: return add<2>(row, vectors, multiples, width, result);
            case 4: return add<4>(row, vectors, multiples, width, result);
            default: return add<8>(row, vectors, multiples, width, result);
        }
    }
};

template <class V>
constexpr FactorKernels make_factor_kernels() {
    return FactorKernels{FactorLoops<V>::rotate_rows, FactorLoops<V>::multiply_rows,
                         FactorLoops<V>::multiply_row, FactorLoops<V>::add_vectors};
}

}  // namespace
}  // namespace evergrow
