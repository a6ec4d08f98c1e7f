#include "samples/feature_variance.hpp"

namespace evergrow {
namespace {

// Adds term(row[f], f) of every row to total[f], four rows per access of the total.
template <class T, class Term>
void add_terms(const T* rows, std::size_t n_rows, std::size_t n_features, double* total,
               Term term) {
    std::size_t i = 0;
    for (; i + 4 <= n_rows; i += 4) {
        const T* a = rows + i * n_features;
        const T* b = a + n_features;
        const T* c = b + n_features;
        const T* d = c + n_features;
        for (std::size_t f = 0; f < n_features; ++f)
            total[f] += (term(a[f], f) + term(b[f], f)) + (term(c[f], f) + term(d[f], f));
    }
    for (; i < n_rows; ++i)
        for (std::size_t f = 0; f < n_features; ++f) total[f] += term(rows[i * n_features + f], f);
}

}  // namespace

template <class T>
void add_sums(const T* rows, std::size_t n_rows, std::size_t n_features, double* total) {
    add_terms(rows, n_rows, n_features, total,
              [](T value, std::size_t) { return static_cast<double>(value); });
}

template <class T>
void add_squares(const T* rows, std::size_t n_rows, std::size_t n_features, const double* mean,
                 double* total) {
    add_terms(rows, n_rows, n_features, total, [mean](T value, std::size_t f) {
        const double distance = static_cast<double>(value) - mean[f];
        return distance * distance;
    });
}

template void add_sums(const float*, std::size_t, std::size_t, double*);
template void add_sums(const double*, std::size_t, std::size_t, double*);
template void add_squares(const float*, std::size_t, std::size_t, const double*, double*);
template void add_squares(const double*, std::size_t, std::size_t, const double*, double*);

}  // namespace evergrow
