// Mean and spread of every feature, in double precision, from blocks of rows.
#pragma once

#include <cstddef>

namespace evergrow {

// total[f] += sum over the rows of x[f].
template <class T>
void add_sums(const T* rows, std::size_t n_rows, std::size_t n_features, double* total) {
    for (std::size_t i = 0; i < n_rows; ++i, rows += n_features)
        for (std::size_t f = 0; f < n_features; ++f) total[f] += static_cast<double>(rows[f]);
}

// total[f] += sum over the rows of (x[f] - mean[f])^2. A second pass over the data: the difference
// of large sums that one pass would take loses the spread of features far from zero.
template <class T>
void add_squares(const T* rows, std::size_t n_rows, std::size_t n_features, const double* mean,
                 double* total) {
    for (std::size_t i = 0; i < n_rows; ++i, rows += n_features)
        for (std::size_t f = 0; f < n_features; ++f) {
            const double distance = static_cast<double>(rows[f]) - mean[f];
            total[f] += distance * distance;
        }
}

}  // namespace evergrow
