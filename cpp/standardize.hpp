// Features as the forest sees them: (x - mean) * scale, rounded once, padded with zeros.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace evergrow {

struct Standardizer {
    std::vector<double> mean;
    std::vector<double> scale;

    std::size_t n_features() const { return mean.size(); }

    // The arithmetic is in double whatever the input, so that the same numbers in float32 and
    // float64 give the same rows. Returns false if a result is not finite.
    template <class T>
    bool apply(const T* row, std::size_t width, float* out) const {
        const std::size_t n = n_features();
        float sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = static_cast<float>((static_cast<double>(row[i]) - mean[i]) * scale[i]);
            sum += out[i] * 0.0F;  // zero, or not a number
        }
        std::fill(out + n, out + width, 0.0F);
        return sum == 0.0F;
    }
};

}  // namespace evergrow
