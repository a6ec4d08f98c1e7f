// Sums over examples, by all threads in one pass: features, Gram matrix and class sums
// [Camoriano2017 Eq. 18, 19].
//
// Rows are taken a block at a time. Threads first compute the features of the block, each for some
// of its rows, and then add its products, each to some tiles of the Gram matrix. Every number is
// summed by one thread in the order of the rows, so the result does not depend on their number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "run/parallel_tasks.hpp"

namespace evergrow {

// The functions of BLAS in the calling convention of Fortran; they must not start threads.
struct Blas {
    using Gemm = void (*)(const char* transa, const char* transb, const int* m, const int* n,
                          const int* k, const double* alpha, const double* a, const int* lda,
                          const double* b, const int* ldb, const double* beta, double* c,
                          const int* ldc);
    using Syrk = void (*)(const char* uplo, const char* trans, const int* n, const int* k,
                          const double* alpha, const double* a, const int* lda, const double* beta,
                          double* c, const int* ldc);
    Gemm gemm;
    Syrk syrk;
};

// Features are the first inputs as they are, then random features, then the constant 1.
enum class Nonlinearity { kNone, kReLU, kFourier };
struct FeatureRule {
    std::size_t n_inputs;
    std::size_t n_copied;  // none or all inputs
    Nonlinearity nonlinearity;
    const double* directions;  // one per row, scaled
    std::size_t n_directions;
    std::size_t
        n_random;  // Fourier: a cosine and a sine per direction, the last sine may be missing
    bool constant;
    const double* shift;  // subtracted from the features, one per feature; null for nothing

    std::size_t n_features() const { return n_copied + n_random + (constant ? 1 : 0); }
};

struct Examples {
    const void* rows;  // n_rows x n_inputs
    bool is_double;
    std::size_t n_rows;
    const std::int32_t* codes;
    const double* weights;  // null if all are 1
};

struct ExampleSums {
    double* gram;           // n_features x n_features, the upper triangle; null if not wanted
    double* class_sums;     // n_classes x n_features
    double* class_squares;  // n_classes, sums of weight times squared length
    std::size_t n_classes;
};

enum class SumsResult { kDone, kStopped, kTooLarge };

// Adds examples to the sums. kTooLarge if an input is larger than `largest`; the sums are invalid
// then, and after a stop.
SumsResult add_examples(const Blas& blas, const FeatureRule& rule, const Examples& examples,
                        double largest, const ExampleSums& sums, std::size_t n_threads,
                        const Poll& poll);

}  // namespace evergrow
