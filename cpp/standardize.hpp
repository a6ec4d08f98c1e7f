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
    // in either give the same rows. Returns false if a result is beyond 1e15 or not finite.
    template <class T>
    bool apply(const T* row, std::size_t width, float* out) const;
};

}  // namespace evergrow
