#include "propose/class_means.hpp"

#include <algorithm>
#include <numeric>

namespace evergrow {

// Eight partial sums in double precision, so that additions overlap.
float half_norm(const float* vector, std::size_t width) {
    double sum[8] = {};
    for (std::size_t i = 0; i < width; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) {
            const double value = vector[i + lane];
            sum[lane] += value * value;
        }
    return static_cast<float>(0.5 * std::accumulate(sum, sum + 8, 0.0));
}

Centroid ClassMeans::centroid(std::int32_t class_id, const std::int32_t* rows, std::size_t n,
                              const VectorCodec& codec, float* mean, std::uint8_t* slot) {
    Centroid centroid{class_id, Centroid::kNewMean, 0, 0, 0, {}};
    // Rows may be copies of one.
    const bool is_one = std::all_of(rows, rows + n, [&](std::int32_t row) { return row == *rows; });
    if (is_one) {
        centroid.source = CentroidSource::row(rows[0]).code();
        const float* row = rows_.read(rows[0], mean);
        if (row != mean) std::copy_n(row, rows_.width(), mean);
    } else {
        average(rows, n, mean);
        // Rounded before it is used, so that growing and a saved and loaded tree route alike.
        centroid.exponent = codec.write(mean, slot);
    }
    centroid.offset = half_norm(mean, rows_.width());
    return centroid;
}

Centroid ClassMeans::known(const Tree& tree, const KnownMean& known, float* mean) {
    Centroid centroid = known.centroid;
    const auto source = CentroidSource::from_code(centroid.source);
    tree.codec().read(tree.vector(source.index()), centroid.exponent, mean);
    centroid.side = 0;
    return centroid;
}

// Sums of blocks in single precision, their total in double.
void ClassMeans::average(const std::int32_t* rows, std::size_t n, float* mean) {
    const std::size_t width = rows_.width();
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (std::size_t first = 0; first < n; first += RowReader::kBlock) {
        const std::size_t size = std::min(RowReader::kBlock, n - first);
        std::fill(partial_sum_.begin(), partial_sum_.end(), 0.0F);
        kernels().add_rows(reader_.read(rows + first, size), size, width, partial_sum_.data());
        for (std::size_t i = 0; i < width; ++i) sum_[i] += static_cast<double>(partial_sum_[i]);
    }
    const double share = 1.0 / static_cast<double>(n);
    for (std::size_t i = 0; i < width; ++i) mean[i] = static_cast<float>(sum_[i] * share);
}

}  // namespace evergrow
