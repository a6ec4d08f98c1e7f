#include "grow/grower.hpp"

#include <algorithm>
#include <stdexcept>

namespace evergrow {

Grower::Grower(const Samples& samples, std::size_t n_classes, const SplitRules& rules,
               const EntropyTable& n_log_n)
    : samples_(samples), n_classes_(n_classes), proposer_(make_proposer(samples, rules, n_log_n)) {
    if (!rules.hierarchy->is_flat() && rules.hierarchy->size() != n_classes)
        throw std::invalid_argument("parents must have an entry for every class");
}

void Grower::grow(Tree& tree, std::int32_t leaf, std::vector<std::int32_t>& rows, std::uint64_t key,
                  const StopFlag& stop) {
    const std::uint64_t before = proposer_->n_comparisons();
    known_.reset(n_classes_);
    const std::size_t level = depth_of(tree, leaf, kMaxDepth);
    pending_.assign(1, Pending{leaf, 0, 0, rows.size(), key});
    while (!pending_.empty() && !stop) {
        const Pending next = pending_.back();
        pending_.pop_back();
        std::int32_t* own = rows.data() + next.begin;
        const std::size_t n_rows = next.end - next.begin;
        find_ranges(own, n_rows);
        known_.descend(next.depth);
        const NodeSamples samples{own, n_rows, ranges_, known_, tree};
        const std::size_t depth = level + static_cast<std::size_t>(next.depth);
        if (depth >= kMaxDepth || !proposer_->propose(samples, Stream(next.key), stop)) {
            // The leaf itself has its rows already if an update grows it.
            if (next.node != leaf || tree.node(leaf).row_size == 0)
                tree.set_rows(next.node, own, n_rows);
            continue;
        }
        cache_scores(tree, depth, own, n_rows);
        const std::size_t middle = next.begin + partition(own, n_rows);
        const std::int32_t child = tree.split(next.node, proposer_->split());
        share_counts(tree, next.node);
        record_means(tree, next.node);
        pending_.push_back(
            Pending{child + 1, next.depth + 1, middle, next.end, derive(next.key, 1)});
        pending_.push_back(Pending{child, next.depth + 1, next.begin, middle, derive(next.key, 0)});
    }
    tree.n_comparisons += proposer_->n_comparisons() - before;
}

void Grower::cache_scores(Tree& tree, std::size_t level, const std::int32_t* rows,
                          std::size_t n_rows) {
    const float* scores = proposer_->scores();
    if (!tree.score_cache.is_active() || scores == nullptr) return;
    for (std::size_t i = 0; i < n_rows; ++i) tree.score_cache.store(rows[i], level, scores[i]);
}

void Grower::find_ranges(const std::int32_t* rows, std::size_t n_rows) {
    ranges_.clear();
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::int32_t class_id = samples_.class_of(rows[i]);
        const auto place = static_cast<std::int32_t>(i);
        if (ranges_.empty() || ranges_.back().class_id != class_id)
            ranges_.push_back(ClassRange{class_id, place, place});
        ranges_.back().end = place + 1;
    }
}

// Stable: rows sorted by class stay sorted on both sides. Returns the number on the left.
std::size_t Grower::partition(std::int32_t* rows, std::size_t n_rows) {
    moved_.clear();
    n_right_.clear();
    std::int32_t* left = rows;
    for (const ClassRange& range : ranges_) {
        const std::size_t before = moved_.size();
        for (auto i = static_cast<std::size_t>(range.begin);
             i < static_cast<std::size_t>(range.end); ++i) {
            if (proposer_->goes_right(i))
                moved_.push_back(rows[i]);
            else
                *left++ = rows[i];
        }
        n_right_.push_back(static_cast<std::int32_t>(moved_.size() - before));
    }
    std::copy(moved_.begin(), moved_.end(), left);
    return n_rows - moved_.size();
}

void Grower::record_means(const Tree& tree, std::int32_t i) {
    if (tree.kind() != SplitKind::kNcm) return;
    const Node& node = tree.node(i);
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.centroid_size); ++j) {
        const Centroid& centroid = tree.centroid(node, j);
        const auto source = CentroidSource::from_code(centroid.source);
        if (!source.is_row()) known_.record(KnownMean{centroid, proposer_->split().counts[j]});
    }
}

// Sets the class counts of the children. If a node counts more samples of a class than it has rows,
// because others were evicted, the count is divided in proportion to the rows of the class, or to
// all rows if the class has none.
void Grower::share_counts(Tree& tree, std::int32_t i) {
    left_counts_.clear();
    right_counts_.clear();
    const Node& node = tree.node(i);
    std::int64_t n_right = 0, n_rows = 0;
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
        n_right += n_right_[r];
        n_rows += ranges_[r].size();
    }
    std::size_t r = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.count_size); ++j) {
        const ClassCount seen = tree.count(node, j);
        std::int64_t right = n_right, all = n_rows;
        if (r < ranges_.size() && ranges_[r].class_id == seen.class_id) {
            right = n_right_[r];
            all = ranges_[r].size();
            ++r;
        }
        const auto to_right = static_cast<std::int32_t>(seen.count * right / all);
        if (to_right > 0) right_counts_.push_back(ClassCount{seen.class_id, to_right});
        if (to_right < seen.count)
            left_counts_.push_back(ClassCount{seen.class_id, seen.count - to_right});
    }
    const std::int32_t child = node.left;
    tree.set_counts(child, left_counts_.data(), left_counts_.size());
    tree.set_counts(child + 1, right_counts_.data(), right_counts_.size());
}

}  // namespace evergrow
