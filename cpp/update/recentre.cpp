// The part of a pass that changes the centroids of a node: which stored rows change sides.
#include <algorithm>

#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "update/pass.hpp"

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

}  // namespace

StoredRows& TreeUpdate::stored_rows(std::int32_t node) {
    stored_.rows.clear();
    tree_.collect_rows(tree_.node(node).left, stored_.rows);
    stored_.n_left = stored_.rows.size();
    tree_.collect_rows(tree_.node(node).left + 1, stored_.rows);
    return stored_;
}

void TreeUpdate::assign(const Split& split, const std::vector<std::int32_t>& rows,
                        std::vector<std::uint16_t>& nearest) {
    nearest.resize(rows.size());
    scores_.resize(rows.size());
    if (rows.empty()) return;
    const std::size_t width = samples_.width();
    unpacked_.resize(split.size() * width);
    vectors_.resize(split.size());
    offsets_.resize(split.size());
    for (std::size_t j = 0; j < split.size(); ++j) {
        const Centroid& centroid = split.centroids[j];
        const auto where = CentroidSource::from_code(centroid.source);
        float* space = unpacked_.data() + j * width;
        vectors_[j] = space;
        offsets_[j] = centroid.offset;
        if (centroid.source == Centroid::kNewMean)
            kernels().widen(split.halves.data() + j * width, width, space);
        else if (where.is_row())
            vectors_[j] = samples_.read(where.index(), space);
        else
            kernels().widen(tree_.mean(where.index()), width, space);
    }
    const Centroids centroids{vectors_.data(), offsets_.data(), split.size()};
    for (std::size_t first = 0; first < rows.size() && !stop_; first += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, rows.size() - first);
        kernels().nearest_centroids(reader_.read(rows.data() + first, n), n, centroids, width,
                                    nearest.data() + first, scores_.data() + first);
    }
    report_.n_comparisons += rows.size() * split.size();
}

void TreeUpdate::assign_stored(std::int32_t i, const Split& split,
                               const std::vector<std::size_t>& new_places, StoredRows& stored) {
    const Node node = tree_.node(i);
    const std::size_t level = depth_of(tree_, i);
    stored.nearest.assign(stored.rows.size(), kSameSide);
    // The new centroids, then those that they took the place of.
    Split& changed = changed_split_;
    changed.centroids.clear();
    changed.halves.resize(new_places.size() * samples_.width());
    for (const std::size_t j : new_places) {
        std::copy_n(split.halves.data() + j * samples_.width(), samples_.width(),
                    changed.halves.data() + changed.size() * samples_.width());
        changed.centroids.push_back(split.centroids[j]);
    }
    for (const std::size_t j : new_places)
        if (j < place(node.centroid_size)) changed.centroids.push_back(tree_.centroid(node, j));
    // With many new centroids a look at all of them is no longer than two.
    const bool is_known =
        tree_.scores.is_kept() && level < ScoreCache::kLevels && 2 * changed.size() <= split.size();
    unsure_.clear();
    unsure_places_.clear();
    if (is_known) assign(changed, stored.rows, stored.nearest);
    for (std::size_t r = 0; r < stored.rows.size(); ++r) {
        const std::int32_t row = stored.rows[r];
        const ScoreCache::Interval best = tree_.scores.at(row, level);
        if (is_known && scores_[r] > best.high) {
            stored.nearest[r] = kSameSide;
        } else if (is_known && scores_[r] < best.low && stored.nearest[r] < new_places.size()) {
            tree_.scores.keep(row, level, scores_[r]);
            stored.nearest[r] = static_cast<std::uint16_t>(new_places[stored.nearest[r]]);
        } else {
            unsure_.push_back(row);
            unsure_places_.push_back(r);
        }
    }
    assign(split, unsure_, unsure_nearest_);
    for (std::size_t r = 0; r < unsure_.size(); ++r) {
        stored.nearest[unsure_places_[r]] = unsure_nearest_[r];
        tree_.scores.keep(unsure_[r], level, scores_[r]);
    }
}

void TreeUpdate::replace_centroids(std::int32_t node, const Split& split,
                                   const StoredRows& stored) {
    if (stop_) return;
    ++report_.n_edited;
    tree_.set_centroids(node, split);
    moving_.resize(samples_.size());
    for (std::size_t i = 0; i < stored.rows.size(); ++i) {
        if (stored.nearest[i] == kSameSide) continue;
        const bool right = split.centroids[stored.nearest[i]].side != 0;
        if (right == (i >= stored.n_left)) continue;
        (right ? to_right_ : to_left_).push_back(stored.rows[i]);
    }
    report_.n_rerouted += to_left_.size() + to_right_.size();
    const std::int32_t child = tree_.node(node).left;
    const auto leave = [&](std::int32_t from, std::vector<std::int32_t>& rows) {
        if (rows.empty()) return;
        for (const std::int32_t row : rows) moving_[place(row)] = 1;
        remove_below(from, moving_, false);
        for (const std::int32_t row : rows) moving_[place(row)] = 0;
        sort_by_class(samples_, rows);
    };
    leave(child, to_right_);
    leave(child + 1, to_left_);
}

void TreeUpdate::route_arrivals(std::int32_t node, const Split& split,
                                const std::vector<std::int32_t>& arrivals,
                                const std::vector<std::uint16_t>& nearest) {
    const std::size_t level = depth_of(tree_, node);
    left_.clear();
    right_.clear();
    for (std::size_t r = 0; r < arrivals.size(); ++r) {
        (split.centroids[nearest[r]].side != 0 ? right_ : left_).push_back(arrivals[r]);
        tree_.scores.keep(arrivals[r], level, scores_[r]);
    }
    are_routed_ = true;
}

void TreeUpdate::drop_centroids(const std::function<bool(const Centroid&)>& named) {
    const Stopwatch watch(report_.pass_seconds);
    descend({}, true,
            [&](std::int32_t i, std::uint64_t, const std::vector<std::int32_t>& arrivals) {
                const Node node = tree_.node(i);
                Split split;
                for (std::size_t j = 0; j < place(node.centroid_size); ++j) {
                    const Centroid& centroid = tree_.centroid(node, j);
                    if (!named(centroid)) split.centroids.push_back(centroid);
                }
                if (split.size() == place(node.centroid_size)) return true;
                if (is_void(split)) {
                    cut(i, arrivals);
                    return false;
                }
                StoredRows& stored = stored_rows(i);
                assign(split, stored.rows, stored.nearest);
                replace_centroids(i, split, stored);
                return true;
            });
}

}  // namespace evergrow
