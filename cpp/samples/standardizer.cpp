#include "samples/standardizer.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "arrays/aligned.hpp"
#include "kernels/kernels.hpp"

namespace evergrow {
namespace {

constexpr double kLimit = 1e15;

}  // namespace

template <class T>
void Standardizer::apply(const T* row, std::size_t width, float* out) const {
    const std::size_t n = n_features();
    const double* centre = mean.data();
    const double* factor = scale.data();
    for (std::size_t i = 0; i < n; ++i) {
        const double scaled = (static_cast<double>(row[i]) - centre[i]) * factor[i];
        out[i] = static_cast<float>(std::min(std::max(scaled, -kLimit), kLimit));
    }
    std::fill(out + n, out + width, 0.0F);
}

template void Standardizer::apply(const float*, std::size_t, float*) const;
template void Standardizer::apply(const double*, std::size_t, float*) const;

template <class T, class Stored>
void standardize_rows(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                      Stored* out) {
    const std::size_t n_features = standardizer.n_features(), width = padded_width(n_features);
    AlignedVector<float> scaled(width);
    AlignedVector<std::uint16_t> halves(width);
    for (std::size_t i = 0; i < n_rows; ++i, rows += n_features, out += width) {
        if constexpr (std::is_same_v<Stored, float>) {
            standardizer.apply(rows, width, out);
        } else {
            standardizer.apply(rows, width, scaled.data());
            // The kernel needs aligned memory, which the output may not be.
            kernels().narrow(scaled.data(), width, halves.data());
            std::copy(halves.begin(), halves.end(), out);
        }
    }
}

template void standardize_rows(const Standardizer&, const float*, std::size_t, float*);
template void standardize_rows(const Standardizer&, const double*, std::size_t, float*);
template void standardize_rows(const Standardizer&, const float*, std::size_t, std::uint16_t*);
template void standardize_rows(const Standardizer&, const double*, std::size_t, std::uint16_t*);

}  // namespace evergrow
