// Standardised features: (x - mean) * scale in double precision, rounded once, padded with zeros.
#pragma once

#include <cstddef>
#include <vector>

namespace evergrow {

struct Standardizer {
    std::vector<double> mean;
    std::vector<double> scale;

    std::size_t n_features() const { return mean.size(); }

    // T is float or double; equal numbers of either type give the same row. Results are clipped to
    // +-1e15, so that sums of their squares do not overflow single precision.
    template <class T>
    void apply(const T* row, std::size_t width, float* out) const;
};

// Rows as samples hold them, of the padded width: float, or the bits of half precision.
template <class T, class Stored>
void standardize_rows(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                      Stored* out);

}  // namespace evergrow
