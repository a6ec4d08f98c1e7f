#include "samples/standardizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/kernels.hpp"
#include "run/parallel_tasks.hpp"

namespace evergrow {
namespace {

constexpr double kLimit = 1e15;
// Power of the length of a row that is left where lengths are made nearly equal.
constexpr double kLengthPower = 0.1;
constexpr std::size_t kBandRows = kCacheLineFloats;
// Rows that are multiplied by a band of the matrix together.
constexpr std::size_t kBlock = 64;
// With fewer rows a kernel for four rows would do superfluous work.
constexpr std::size_t kFewRows = 4;
// Rows of one task.
constexpr std::size_t kTaskRows = 512;

float clip(double value) { return static_cast<float>(std::min(std::max(value, -kLimit), kLimit)); }

// Floats in all bands before this one: each has kBandRows rows of (band + 1) * kBandRows floats.
std::size_t band_begin(std::size_t band) { return kBandRows * kBandRows * (band * (band + 1) / 2); }

std::size_t band_width(std::size_t band) { return (band + 1) * kBandRows; }

}  // namespace

Standardizer::Standardizer(std::vector<double> mean, std::vector<double> scale,
                           const float* whitening, std::vector<std::uint8_t> length_features)
    : mean_(std::move(mean)),
      scale_(std::move(scale)),
      length_features_(std::move(length_features)) {
    if (whitening == nullptr) return;
    const std::size_t n = n_features();
    bands_.resize(band_begin(padded_width(n) / kBandRows));
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t band = i / kBandRows;
        float* row = bands_.data() + band_begin(band) + i % kBandRows * band_width(band);
        std::copy_n(whitening + i * n, i + 1, row);
    }
}

template <class T>
void Standardizer::scale_row(const T* row, float* out) const {
    const std::size_t n = n_features();
    const double* centre = mean_.data();
    const double* factor = scale_.data();
    for (std::size_t i = 0; i < n; ++i)
        out[i] = clip((static_cast<double>(row[i]) - centre[i]) * factor[i]);
    std::fill(out + n, out + padded_width(n), 0.0F);
}

// In place. A band reads only features before its end, so the last band comes first.
void Standardizer::whiten(float* const* rows, std::size_t n_rows) const {
    float products[kBandRows * kBlock];
    for (std::size_t first = 0; first < n_rows; first += kBlock) {
        const std::size_t n = std::min(kBlock, n_rows - first);
        for (std::size_t band = padded_width(n_features()) / kBandRows; band-- > 0;)
            whiten_band(band, rows + first, n, products);
    }
}

void Standardizer::whiten_band(std::size_t band, float* const* rows, std::size_t n_rows,
                               float* products) const {
    const std::size_t width = band_width(band), first = band * kBandRows;
    const std::size_t n = std::min(kBandRows, n_features() - first);
    const float* vectors[kBandRows];
    for (std::size_t j = 0; j < n; ++j) vectors[j] = bands_.data() + band_begin(band) + j * width;
    if (n_rows < kFewRows) {
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < n_rows; ++i)
                products[j * kBlock + i] = kernels().dot_full(rows[i], vectors[j], width);
    } else {
        kernels().dot_products(rows, n_rows, vectors, n, width, products, kBlock);
    }
    for (std::size_t i = 0; i < n_rows; ++i)
        for (std::size_t j = 0; j < n; ++j)
            rows[i][first + j] = clip(static_cast<double>(products[j * kBlock + i]));
}

// A row without length, the centre, stays.
void Standardizer::equalise(float* row) const {
    const std::size_t n = n_features();
    double square = 0;
    for (std::size_t i = 0; i < n; ++i)
        if (length_features_[i] != 0) square += static_cast<double>(row[i]) * row[i];
    if (!(square > 0)) return;
    const double factor = std::pow(static_cast<double>(n) / square, (1 - kLengthPower) / 2);
    for (std::size_t i = 0; i < n; ++i) row[i] = clip(row[i] * factor);
}

template <class T>
void Standardizer::apply(const T* rows, std::size_t n_rows, float* const* out) const {
    for (std::size_t i = 0; i < n_rows; ++i) scale_row(rows + i * n_features(), out[i]);
    if (!bands_.empty()) whiten(out, n_rows);
    if (!length_features_.empty())
        for (std::size_t i = 0; i < n_rows; ++i) equalise(out[i]);
}

template void Standardizer::apply(const float*, std::size_t, float* const*) const;
template void Standardizer::apply(const double*, std::size_t, float* const*) const;

namespace {

// Kernels need aligned memory, which the output may not be.
template <class T, class Stored>
void standardize_block(const Standardizer& standardizer, const T* rows, std::size_t n,
                       Stored* const* out) {
    const std::size_t width = padded_width(standardizer.n_features());
    AlignedVector<float> aligned(n * width);
    AlignedVector<std::uint16_t> halves(width);
    std::vector<float*> places(n);
    for (std::size_t i = 0; i < n; ++i) places[i] = aligned.data() + i * width;
    standardizer.apply(rows, n, places.data());
    for (std::size_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<Stored, float>) {
            std::copy_n(places[i], width, out[i]);
        } else {
            kernels().narrow(places[i], width, halves.data());
            std::copy_n(halves.data(), width, out[i]);
        }
    }
}

}  // namespace

template <class T, class Stored>
void standardize_rows(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                      Stored* const* out, std::size_t n_threads) {
    const auto task = [&](std::size_t index, std::size_t, const StopFlag&) {
        const std::size_t end = std::min(n_rows, (index + 1) * kTaskRows);
        for (std::size_t first = index * kTaskRows; first < end; first += kBlock)
            standardize_block(standardizer, rows + first * standardizer.n_features(),
                              std::min(kBlock, end - first), out + first);
    };
    const std::size_t n_tasks = (n_rows + kTaskRows - 1) / kTaskRows;
    if (n_threads > 1 && n_tasks > 1) {
        run_parallel(n_tasks, std::min(n_threads, n_tasks), task, [](std::size_t) { return true; });
        return;
    }
    const StopFlag never(false);
    for (std::size_t index = 0; index < n_tasks; ++index) task(index, 0, never);
}

template <class T, class Stored>
void standardize_matrix(const Standardizer& standardizer, const T* rows, std::size_t n_rows,
                        Stored* out, std::size_t n_threads) {
    const std::size_t width = padded_width(standardizer.n_features());
    std::vector<Stored*> places(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) places[i] = out + i * width;
    standardize_rows(standardizer, rows, n_rows, places.data(), n_threads);
}

using Halves = std::uint16_t;
template void standardize_rows(const Standardizer&, const float*, std::size_t, float* const*,
                               std::size_t);
template void standardize_rows(const Standardizer&, const double*, std::size_t, float* const*,
                               std::size_t);
template void standardize_rows(const Standardizer&, const float*, std::size_t, Halves* const*,
                               std::size_t);
template void standardize_rows(const Standardizer&, const double*, std::size_t, Halves* const*,
                               std::size_t);
template void standardize_matrix(const Standardizer&, const float*, std::size_t, float*,
                                 std::size_t);
template void standardize_matrix(const Standardizer&, const double*, std::size_t, float*,
                                 std::size_t);
template void standardize_matrix(const Standardizer&, const float*, std::size_t, Halves*,
                                 std::size_t);
template void standardize_matrix(const Standardizer&, const double*, std::size_t, Halves*,
                                 std::size_t);

}  // namespace evergrow
