#include "update/nearest_finder.hpp"

#include <algorithm>

namespace evergrow {

// Single-precision vectors of the centroids; new means lie in the split, others in the tree or in
// the samples.
Centroids NearestFinder::unpack(const Split& split) {
    const Samples& samples = context_.samples;
    const VectorCodec& codec = tree_.codec();
    const std::size_t width = samples.width();
    unpacked_.resize(split.size() * width);
    vectors_.resize(split.size());
    offsets_.resize(split.size());
    for (std::size_t j = 0; j < split.size(); ++j) {
        const Centroid& centroid = split.centroids[j];
        const auto source = CentroidSource::from_code(centroid.source);
        float* buffer = unpacked_.data() + j * width;
        vectors_[j] = buffer;
        offsets_[j] = centroid.offset;
        if (centroid.source == Centroid::kNewMean)
            codec.read(split.vectors.data() + j * codec.slot_bytes(), centroid.exponent, buffer);
        else if (source.is_row())
            vectors_[j] = samples.read(source.index(), buffer);
        else
            codec.read(tree_.vector(source.index()), centroid.exponent, buffer);
    }
    return Centroids{vectors_.data(), offsets_.data(), split.size()};
}

NearestCentroids NearestFinder::find(const Split& split, const std::vector<std::int32_t>& rows) {
    NearestCentroids nearest;
    nearest.index.resize(rows.size());
    nearest.scores.resize(rows.size());
    if (rows.empty()) return nearest;
    const Centroids centroids = unpack(split);
    for (std::size_t first = 0; first < rows.size() && !context_.stop; first += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, rows.size() - first);
        kernels().nearest_centroids(reader_.read(rows.data() + first, n), n, centroids,
                                    context_.samples.width(), nearest.index.data() + first,
                                    nearest.scores.data() + first);
    }
    report_.n_comparisons += rows.size() * split.size();
    return nearest;
}

// The new centroids, then those that they replace.
const Split& NearestFinder::changed_centroids(const Node& node, const Split& split,
                                              const std::vector<std::size_t>& new_places) {
    const std::size_t slot_bytes = tree_.codec().slot_bytes();
    changed_.centroids.clear();
    changed_.vectors.resize(new_places.size() * slot_bytes);
    for (const std::size_t j : new_places) {
        std::copy_n(split.vectors.data() + j * slot_bytes, slot_bytes,
                    changed_.vectors.data() + changed_.size() * slot_bytes);
        changed_.centroids.push_back(split.centroids[j]);
    }
    for (const std::size_t j : new_places)
        if (j < static_cast<std::size_t>(node.centroid_size))
            changed_.centroids.push_back(tree_.centroid(node, j));
    return changed_;
}

NearestCentroids NearestFinder::find_changed(std::int32_t node, const Split& split,
                                             const std::vector<std::size_t>& new_places,
                                             const std::vector<std::int32_t>& rows) {
    const std::size_t level = depth_of(tree_, node, ScoreCache::kLevels);
    const Split& changed = changed_centroids(tree_.node(node), split, new_places);
    // With many changed centroids, comparing with all of them is as fast.
    const bool is_cached = tree_.score_cache.is_active() && level < ScoreCache::kLevels &&
                           2 * changed.size() <= split.size();
    if (!is_cached) return find(split, rows);
    NearestCentroids nearest = find(changed, rows);
    unsure_.clear();
    unsure_places_.clear();
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const ScoreCache::Interval best = tree_.score_cache.interval(rows[r], level);
        if (nearest.scores[r] > best.high) {
            nearest.index[r] = kSameSide;
        } else if (nearest.scores[r] < best.low && nearest.index[r] < new_places.size()) {
            nearest.index[r] = static_cast<std::uint16_t>(new_places[nearest.index[r]]);
        } else {
            unsure_.push_back(rows[r]);
            unsure_places_.push_back(r);
        }
    }
    const NearestCentroids of_unsure = find(split, unsure_);
    for (std::size_t r = 0; r < unsure_.size(); ++r) {
        nearest.index[unsure_places_[r]] = of_unsure.index[r];
        nearest.scores[unsure_places_[r]] = of_unsure.scores[r];
    }
    return nearest;
}

RowsBelow collect_rows_below(const Tree& tree, std::int32_t node) {
    RowsBelow below;
    tree.collect_rows(tree.node(node).left, below.rows);
    below.n_left = below.rows.size();
    tree.collect_rows(tree.node(node).left + 1, below.rows);
    return below;
}

}  // namespace evergrow
