// Mean and spread of every feature, in double precision, from blocks of rows.
#pragma once

#include <cstddef>

namespace evergrow {

// total[f] += sum over the rows of x[f]. T is float or double.
template <class T>
void add_sums(const T* rows, std::size_t n_rows, std::size_t n_features, double* total);

// total[f] += sum over the rows of (x[f] - mean[f])^2. A second pass over the data: the difference
// of large sums that one pass would take loses the spread of features far from zero.
template <class T>
void add_squares(const T* rows, std::size_t n_rows, std::size_t n_features, const double* mean,
                 double* total);

}  // namespace evergrow
