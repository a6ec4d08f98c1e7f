// Updates of a Cholesky factor A = R'R, R upper triangular, for rows that enter or leave the matrix
// [Camoriano2017 Sec. IV-B].
//
// A row x enters by Givens rotations that turn [R; x'] into [R_new; 0], and leaves by hyperbolic
// rotations. The same rotations turn [0; 1] into R_new^-T x, so that the gains A_new^-1 x, which
// update the weights, need one more pass over the triangle instead of two.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kernels.hpp"

namespace evergrow {

// Rows that enter (sign 1) or leave (sign -1) a factor or the weights.
struct FactorRows {
    const double* values;  // count x n_features
    const double* signs;
    std::size_t count;  // at most kFactorVectors
};

// Updates the upper triangle of the factor, an n_features x n_features matrix, in place. Writes
// A_new^-1 x of each row to `gains`, a count x n_features matrix, if that is not null. Returns
// false if the new matrix is not positive definite; the factor is invalid then.
bool update_factor(const Kernels& kernels, double* factor, std::size_t n_features,
                   const FactorRows& rows, double* gains);

// Updates the weights: w_t + sum_i sign_i gain_i (target_i[t] - w_t.x_i) for every class t, where
// target_i is `targets[i]` at class `codes[i]` and 0 elsewhere. `weights` and `result` are
// n_classes x n_features matrices and may be the same. Writes sign_i (target_i[t] - w_t.x_i) to
// `errors`, an n_classes x count matrix.
struct WeightRows {
    FactorRows examples;
    const double* gains;
    const std::int32_t* codes;
    const double* targets;
};
void update_weights(const Kernels& kernels, const double* weights, std::size_t n_classes,
                    std::size_t n_features, const WeightRows& rows, double* result, double* errors);

}  // namespace evergrow
