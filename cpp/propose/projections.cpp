#include "propose/projections.hpp"

#include <algorithm>

namespace evergrow {
namespace {

// More vectors at once are not faster.
constexpr std::size_t kMaxVectors = 32;
constexpr std::size_t kMaxValues = std::size_t{1} << 22;

}  // namespace

std::size_t Projections::max_at_once(std::size_t n_rows) const {
    return std::min(kMaxVectors, std::max<std::size_t>(1, kMaxValues / n_rows));
}

void Projections::start(std::size_t count) {
    floats_.assign(count * width_, 0.0F);
    slots_.resize(count * codec_.slot_bytes());
    vectors_.resize(count);
    for (std::size_t j = 0; j < count; ++j) vectors_[j] = vector(j);
}

void Projections::compute(const NodeSamples& node, const StopFlag& stop) {
    for (std::size_t j = 0; j < count(); ++j)
        codec_.write(vector(j), slots_.data() + j * codec_.slot_bytes());
    n_rows_ = node.n_rows;
    values_.resize(count() * n_rows_);
    for (std::size_t begin = 0; begin < n_rows_ && !stop; begin += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, n_rows_ - begin);
        kernels().dot_products(reader_.read(node.rows + begin, n), n, vectors_.data(), count(),
                               width_, values_.data() + begin, n_rows_);
    }
}

void Projections::write_split(std::size_t j, float threshold, Split& split) const {
    split.centroids.assign(1, Centroid{0, Centroid::kNewMean, threshold, 0, 0, {}});
    const std::uint8_t* slot = slots_.data() + j * codec_.slot_bytes();
    split.vectors.assign(slot, slot + codec_.slot_bytes());
}

}  // namespace evergrow
