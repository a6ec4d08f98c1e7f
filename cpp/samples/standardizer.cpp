#include "samples/standardizer.hpp"

#include <algorithm>

namespace evergrow {
namespace {

constexpr double kFarthest = 1e15;

}  // namespace

template <class T>
void Standardizer::apply(const T* row, std::size_t width, float* out) const {
    const std::size_t n = n_features();
    const double* centre = mean.data();
    const double* factor = scale.data();
    for (std::size_t i = 0; i < n; ++i) {
        const double scaled = (static_cast<double>(row[i]) - centre[i]) * factor[i];
        out[i] = static_cast<float>(std::min(std::max(scaled, -kFarthest), kFarthest));
    }
    std::fill(out + n, out + width, 0.0F);
}

template void Standardizer::apply(const float*, std::size_t, float*) const;
template void Standardizer::apply(const double*, std::size_t, float*) const;

}  // namespace evergrow
