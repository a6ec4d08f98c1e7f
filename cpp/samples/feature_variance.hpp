// Sums for the mean and variance of every feature, in double precision, from blocks of rows.
#pragma once

#include <cstddef>

namespace evergrow {

// total[f] += sum over the rows of x[f]. T is float or double.
template <class T>
void add_sums(const T* rows, std::size_t n_rows, std::size_t n_features, double* total);

// total[f] += sum over the rows of (x[f] - mean[f])^2. This needs a second pass over the data, but
// a difference of large sums in one pass would lose the variance of features far from zero.
template <class T>
void add_squares(const T* rows, std::size_t n_rows, std::size_t n_features, const double* mean,
                 double* total);

}  // namespace evergrow
