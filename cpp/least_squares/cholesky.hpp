// A Cholesky factor that follows its matrix: A = R'R with R upper triangular, sec. IV-B of
// Camoriano 2017.
//
// A row x enters by Givens rotations that turn [R; x'] into [R_new; 0], and leaves by hyperbolic
// ones. The same rotations turn [0; 1] into R_new^-T x, so that the gains A_new^-1 x, which bring
// the weights up to date, cost one more pass over the triangle and not two.
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

// Brings the factor, n_features rows of n_features of which only the upper triangle is touched, up
// to date. Leaves A_new^-1 x of the rows in `gains`, count rows of n_features, if that is not null.
// False if the matrix is no longer positive definite: the factor is then of no use.
bool update_factor(const Kernels& kernels, double* factor, std::size_t n_features,
                   const FactorRows& rows, double* gains);

// Weights after rows entered or left: w_t + sum_i sign_i gain_i (target_i[t] - w_t.x_i) for every
// class t, where target_i is `targets[i]` at the class `codes[i]` and 0 elsewhere. `weights` and
// `result` have n_classes rows of n_features and may be the same.
struct WeightRows {
    FactorRows examples;
    const double* gains;
    const std::int32_t* codes;
    const double* targets;
};
void update_weights(const Kernels& kernels, const double* weights, std::size_t n_classes,
                    std::size_t n_features, const WeightRows& rows, double* result);

}  // namespace evergrow
