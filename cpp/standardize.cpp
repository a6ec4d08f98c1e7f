#include "standardize.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace evergrow {
namespace {

// 1e15 as bits: squares of such numbers still add up within single precision. Positive floats
// order like their bits, and infinity and not-a-number come after all others.
constexpr std::int32_t kLargest = 0x58635FA9;
constexpr std::int32_t kWithoutSign = 0x7FFFFFFF;

}  // namespace

template <class T>
bool Standardizer::apply(const T* row, std::size_t width, float* out) const {
    const std::size_t n = n_features();
    const double* centre = mean.data();
    const double* factor = scale.data();
    for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<float>((static_cast<double>(row[i]) - centre[i]) * factor[i]);
    std::fill(out + n, out + width, 0.0F);
    std::int32_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::int32_t bits = 0;
        std::memcpy(&bits, out + i, sizeof bits);
        bad |= (bits & kWithoutSign) > kLargest ? 1 : 0;
    }
    return bad == 0;
}

template bool Standardizer::apply(const float*, std::size_t, float*) const;
template bool Standardizer::apply(const double*, std::size_t, float*) const;

}  // namespace evergrow
