#include "standardize.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace evergrow {
namespace {

constexpr std::uint32_t kExponent = 0x7F800000U;  // all ones: infinity or not a number

}  // namespace

template <class T>
bool Standardizer::apply(const T* row, std::size_t width, float* out) const {
    const std::size_t n = n_features();
    const double* centre = mean.data();
    const double* factor = scale.data();
    for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<float>((static_cast<double>(row[i]) - centre[i]) * factor[i]);
    std::fill(out + n, out + width, 0.0F);
    std::uint32_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, out + i, sizeof bits);
        bad |= (bits & kExponent) == kExponent ? 1U : 0U;
    }
    return bad == 0;
}

template bool Standardizer::apply(const float*, std::size_t, float*) const;
template bool Standardizer::apply(const double*, std::size_t, float*) const;

}  // namespace evergrow
