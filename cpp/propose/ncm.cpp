#include "propose/ncm.hpp"

#include <algorithm>
#include <numeric>

namespace evergrow {

NcmProposer::NcmProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n)
    : width_(rows.width()),
      rules_(rules),
      scorer_(n_log_n),
      class_means_(rows),
      reader_(rows),
      means_(rules.n_centroids * rows.width()) {}

bool NcmProposer::propose(const NodeSamples& node, Stream stream, const StopFlag& stop) {
    const auto min_rows = 2 * static_cast<std::size_t>(rules_.min_samples_leaf);
    if (node.ranges.size() < 2 || node.n_rows < min_rows) return false;
    draw_classes(node.ranges.size(), stream);
    compute_centroids(node);
    find_nearest(node, stop);
    if (stop) return false;
    assignments_.start(drawn_.size(), rules_.n_candidates, stream);
    const BestAssignment& best =
        scorer_.best(count(node), assignments_, rules_.min_samples_leaf, stop);
    if (!best.found || !(best.gain > rules_.min_gain)) return false;
    for (std::size_t j = 0; j < drawn_.size(); ++j) split_.centroids[j].side = best.sides[j];
    return true;
}

// A random subset of the classes present [Ristin2014 Sec. 3.3], sorted by class.
void NcmProposer::draw_classes(std::size_t n_present, Stream& stream) {
    drawn_.resize(n_present);
    std::iota(drawn_.begin(), drawn_.end(), 0);
    if (n_present <= rules_.n_centroids) return;
    for (std::size_t j = 0; j < rules_.n_centroids; ++j)
        std::swap(drawn_[j], drawn_[j + stream.below(static_cast<std::uint32_t>(n_present - j))]);
    drawn_.resize(rules_.n_centroids);
    std::sort(drawn_.begin(), drawn_.end());
}

void NcmProposer::compute_centroids(const NodeSamples& node) {
    const std::size_t k = drawn_.size();
    split_.centroids.resize(k);
    split_.counts.resize(k);
    const VectorCodec& codec = node.tree.codec();
    split_.vectors.resize(k * codec.slot_bytes());
    vectors_.resize(k);
    offsets_.resize(k);
    for (std::size_t j = 0; j < k; ++j) {
        const ClassRange& range = node.ranges[static_cast<std::size_t>(drawn_[j])];
        float* mean = means_.data() + j * width_;
        vectors_[j] = mean;
        split_.counts[j] = range.size();
        const KnownMean* known = node.known.find(range.class_id, range.size());
        split_.centroids[j] =
            known != nullptr
                ? ClassMeans::known(node.tree, *known, mean)
                : class_means_.centroid(range.class_id, node.rows + range.begin,
                                        static_cast<std::size_t>(range.size()), codec, mean,
                                        split_.vectors.data() + j * codec.slot_bytes());
        offsets_[j] = split_.centroids[j].offset;
    }
}

// The nearest centroid of every sample at the node [Ristin2014 Eq. 2].
void NcmProposer::find_nearest(const NodeSamples& node, const StopFlag& stop) {
    nearest_.resize(node.n_rows);
    scores_.resize(node.n_rows);
    const Centroids centroids{vectors_.data(), offsets_.data(), drawn_.size()};
    for (std::size_t begin = 0; begin < node.n_rows && !stop; begin += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, node.n_rows - begin);
        kernels().nearest_centroids(reader_.read(node.rows + begin, n), n, centroids, width_,
                                    nearest_.data() + begin, scores_.data() + begin);
    }
    n_comparisons_ += node.n_rows * drawn_.size();
}

CountTable NcmProposer::count(const NodeSamples& node) {
    counts_.assign(node.ranges.size() * drawn_.size(), 0);
    std::int32_t* counts = counts_.data();
    for (const ClassRange& range : node.ranges) {
        for (std::int32_t i = range.begin; i < range.end; ++i)
            ++counts[nearest_[static_cast<std::size_t>(i)]];
        counts += drawn_.size();
    }
    return CountTable{node.ranges.size(), drawn_.size(), counts_.data()};
}

}  // namespace evergrow
