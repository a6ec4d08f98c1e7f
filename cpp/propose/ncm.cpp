#include "ncm.hpp"

#include <algorithm>
#include <numeric>

namespace evergrow {
namespace {

// Rows handed to the kernel at once; single precision adds up this many without visible error.
constexpr std::size_t kRowBlock = 512;

// |c|^2 / 2, added up in double over eight places so that additions overlap.
float half_norm(const float* vector, std::size_t width) {
    double sum[8] = {};
    for (std::size_t i = 0; i < width; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) {
            const double value = vector[i + lane];
            sum[lane] += value * value;
        }
    return static_cast<float>(0.5 * std::accumulate(sum, sum + 8, 0.0));
}

}  // namespace

NcmProposer::NcmProposer(const Samples& samples, const NcmRules& rules, const EntropyTable& n_log_n)
    : samples_(samples),
      rules_(rules),
      kernels_(kernels()),
      scorer_(n_log_n),
      row_vectors_(kRowBlock),
      means_(rules.n_centroids * samples.width()),
      partial_sum_(samples.width()),
      sum_(samples.width()) {}

bool NcmProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    const auto min_rows = 2 * static_cast<std::size_t>(rules_.min_samples_leaf);
    if (node.ranges.size() < 2 || node.n_rows < min_rows) return false;
    draw_classes(node.ranges.size(), stream);
    place_centroids(node);
    assign(node, stop);
    if (stop) return false;
    count(node);
    colourings_.start(drawn_.size(), rules_.n_assignments, stream);
    const BestColouring& best = scorer_.best(table_, colourings_, rules_.min_samples_leaf, stop);
    if (!best.found || !(best.gain > rules_.min_gain)) return false;
    split_.sides = best.sides;
    return true;
}

// A random subset of the classes present, in the order of the classes.
void NcmProposer::draw_classes(std::size_t n_present, Stream& stream) {
    drawn_.resize(n_present);
    std::iota(drawn_.begin(), drawn_.end(), 0);
    if (n_present <= rules_.n_centroids) return;
    for (std::size_t j = 0; j < rules_.n_centroids; ++j)
        std::swap(drawn_[j], drawn_[j + stream.below(static_cast<std::uint32_t>(n_present - j))]);
    drawn_.resize(rules_.n_centroids);
    std::sort(drawn_.begin(), drawn_.end());
}

void NcmProposer::place_centroids(const NodeSamples& node) {
    const std::size_t width = samples_.width();
    const std::size_t k = drawn_.size();
    split_.classes.resize(k);
    split_.counts.resize(k);
    split_.sources.resize(k);
    split_.half_norms.resize(k);
    split_.halves.resize(k * width);
    centroid_vectors_.resize(k);
    for (std::size_t j = 0; j < k; ++j) {
        const ClassRange& range = node.ranges[static_cast<std::size_t>(drawn_[j])];
        split_.classes[j] = range.class_id;
        split_.counts[j] = range.size();
        float* mean = means_.data() + j * width;
        centroid_vectors_[j] = mean;
        const KnownMean* known = node.known.find(range.class_id, range.size());
        if (range.size() == 1) {
            const std::int32_t row = node.rows[range.begin];
            split_.sources[j] = CentroidSource::row(row).code();
            centroid_vectors_[j] = samples_.row(static_cast<std::size_t>(row));
        } else if (known != nullptr) {
            split_.sources[j] = CentroidSource::slot(known->slot).code();
            split_.half_norms[j] = known->half_norm;
            kernels_.widen(node.halves + static_cast<std::size_t>(known->slot) * width, width,
                           mean);
            continue;
        } else {
            mean_of(node, range, mean);
            // Rounded to its stored precision before it routes anything: growing, saving and
            // loading see the same centroid.
            kernels_.narrow(mean, width, split_.halves.data() + j * width);
            split_.sources[j] = NcmSplit::kNewMean;
        }
        split_.half_norms[j] = half_norm(centroid_vectors_[j], width);
    }
}

// Eq. (5): blocks in single precision, their sum in double.
void NcmProposer::mean_of(const NodeSamples& node, const ClassRange& range, float* mean) {
    const std::size_t width = samples_.width();
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (std::int32_t begin = range.begin; begin < range.end;) {
        const std::size_t n =
            std::min<std::size_t>(kRowBlock, static_cast<std::size_t>(range.end - begin));
        for (std::size_t i = 0; i < n; ++i)
            row_vectors_[i] = samples_.row(
                static_cast<std::size_t>(node.rows[begin + static_cast<std::int32_t>(i)]));
        std::fill(partial_sum_.begin(), partial_sum_.end(), 0.0F);
        kernels_.add_rows(row_vectors_.data(), n, width, partial_sum_.data());
        for (std::size_t i = 0; i < width; ++i) sum_[i] += static_cast<double>(partial_sum_[i]);
        begin += static_cast<std::int32_t>(n);
    }
    const double share = 1.0 / range.size();
    for (std::size_t i = 0; i < width; ++i) mean[i] = static_cast<float>(sum_[i] * share);
}

// Eq. (2): the nearest centroid of every sample at the node.
void NcmProposer::assign(const NodeSamples& node, const StopFlag& stop) {
    nearest_.resize(node.n_rows);
    const Centroids centroids{centroid_vectors_.data(), split_.half_norms.data(), drawn_.size()};
    for (std::size_t begin = 0; begin < node.n_rows && !stop; begin += kRowBlock) {
        const std::size_t n = std::min(kRowBlock, node.n_rows - begin);
        for (std::size_t i = 0; i < n; ++i)
            row_vectors_[i] = samples_.row(static_cast<std::size_t>(node.rows[begin + i]));
        kernels_.nearest_centroids(row_vectors_.data(), n, centroids, samples_.width(),
                                   nearest_.data() + begin);
    }
    n_comparisons_ += node.n_rows * drawn_.size();
}

void NcmProposer::count(const NodeSamples& node) {
    table_.n_classes = node.ranges.size();
    table_.n_centroids = drawn_.size();
    table_.counts.assign(table_.n_classes * table_.n_centroids, 0);
    std::int32_t* counts = table_.counts.data();
    for (const ClassRange& range : node.ranges) {
        for (std::int32_t i = range.begin; i < range.end; ++i)
            ++counts[nearest_[static_cast<std::size_t>(i)]];
        counts += table_.n_centroids;
    }
}

}  // namespace evergrow
