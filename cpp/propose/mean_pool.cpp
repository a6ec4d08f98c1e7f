#include "propose/mean_pool.hpp"

#include <algorithm>

namespace evergrow {

void MeanPool::fill(const NodeSamples& node, const StopFlag& stop) {
    choose_classes(node);
    const std::size_t n = pooled_.size();
    centroids_.resize(n);
    counts_.resize(n);
    vectors_.resize(n);
    offsets_.resize(n);
    const VectorCodec& codec = node.tree.codec();
    slot_bytes_ = codec.slot_bytes();
    if (means_.size() < n * width_) means_.resize(n * width_);
    if (slots_.size() < n * slot_bytes_) slots_.resize(n * slot_bytes_);
    for (std::size_t i = 0; i < n && !stop; ++i) {
        std::size_t n_rows = 0;
        const std::int32_t* rows = rows_of(node, i, &n_rows);
        const std::int32_t class_id = pooled_.class_id(i);
        float* mean = means_.data() + i * width_;
        counts_[i] = static_cast<std::int32_t>(n_rows);
        vectors_[i] = mean;
        const KnownMean* known = node.known.find(class_id, counts_[i]);
        centroids_[i] = known != nullptr
                            ? ClassMeans::known(node.tree, *known, mean)
                            : class_means_.centroid(class_id, rows, n_rows, codec, mean,
                                                    slots_.data() + i * slot_bytes_);
        offsets_[i] = centroids_[i].offset;
    }
}

// If fewer than two of the selected classes are present, the node uses all classes.
void MeanPool::choose_classes(const NodeSamples& node) {
    present_.clear();
    for (const ClassRange& range : node.ranges) present_.push_back(range.class_id);
    objective_.pool(present_, pooled_);
    if (pooled_.size() >= 2) return;
    pooled_.clear();
    for (std::size_t i = 0; i < present_.size(); ++i) {
        pooled_.add(present_[i]);
        pooled_.join(i);
    }
}

const std::int32_t* MeanPool::rows_of(const NodeSamples& node, std::size_t i, std::size_t* n) {
    if (pooled_.end(i) - pooled_.begin(i) == 1) {
        const ClassRange& range = node.ranges[*pooled_.begin(i)];
        *n = static_cast<std::size_t>(range.size());
        return node.rows + range.begin;
    }
    gathered_.clear();
    for (const std::size_t* at = pooled_.begin(i); at != pooled_.end(i); ++at)
        gathered_.insert(gathered_.end(), node.rows + node.ranges[*at].begin,
                         node.rows + node.ranges[*at].end);
    *n = gathered_.size();
    return gathered_.data();
}

void MeanPool::write_split(const std::int32_t* places, std::size_t n, Split& split) const {
    split.centroids.resize(n);
    split.counts.resize(n);
    split.vectors.resize(n * slot_bytes_);
    for (std::size_t j = 0; j < n; ++j) {
        const auto i = static_cast<std::size_t>(places[j]);
        split.centroids[j] = centroids_[i];
        split.counts[j] = counts_[i];
        std::copy_n(slots_.data() + i * slot_bytes_, slot_bytes_,
                    split.vectors.data() + j * slot_bytes_);
    }
}

}  // namespace evergrow
