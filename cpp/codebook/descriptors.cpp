#include "codebook/descriptors.hpp"

#include <algorithm>
#include <numeric>

namespace evergrow {
namespace {

// A tile of both matrices fits into the first-level cache.
constexpr std::size_t kTile = 32;

}  // namespace

Descriptors::Descriptors(const float* rows, std::size_t n_rows, std::size_t n_features,
                         const std::int32_t* classes, std::size_t first_new)
    : n_features_(n_features),
      first_new_(first_new),
      classes_(classes, classes + n_rows),
      by_class_(n_rows),
      values_(n_rows * n_features) {
    std::iota(by_class_.begin(), by_class_.end(), 0);
    std::stable_sort(by_class_.begin(), by_class_.end(),
                     [this](std::int32_t a, std::int32_t b) { return class_of(a) < class_of(b); });
    for (std::size_t r = 0; r < n_rows; r += kTile)
        for (std::size_t f = 0; f < n_features; f += kTile)
            for (std::size_t i = r; i < std::min(r + kTile, n_rows); ++i)
                for (std::size_t j = f; j < std::min(f + kTile, n_features); ++j)
                    values_[j * n_rows + i] = rows[i * n_features + j];
}

}  // namespace evergrow
