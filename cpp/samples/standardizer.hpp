// Features as the forest sees them: (x - mean) * scale, rounded once, padded with zeros.
#pragma once

#include <cstddef>
#include <vector>

namespace evergrow {

struct Standardizer {
    std::vector<double> mean;
    std::vector<double> scale;

    std::size_t n_features() const { return mean.size(); }

    // The arithmetic is in double whatever the input (float or double), so that the same numbers
    // in either give the same rows. Results beyond +-1e15 become +-1e15: squares of such numbers
    // still add up within single precision, and farther away is no different.
    template <class T>
    void apply(const T* row, std::size_t width, float* out) const;
};

// Rows as samples hold them, of the padded width: float, or the bits of half precision.
template <class T, class Stored>
void standardize_rows(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                      Stored* out);

}  // namespace evergrow
