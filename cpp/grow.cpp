#include "grow.hpp"

#include <algorithm>

namespace evergrow {

void Grower::grow(Tree& tree, std::int32_t leaf, std::uint64_t key, const StopFlag& stop) {
    const std::uint64_t before = proposer_.n_comparisons();
    known_.reset(n_classes_);
    pending_.assign(1, Pending{leaf, 0, key});
    while (!pending_.empty() && !stop) {
        const Pending next = pending_.back();
        pending_.pop_back();
        const auto node = static_cast<std::size_t>(next.node);
        std::int32_t* rows = tree.rows.data() + tree.row_begin[node];
        const auto n_rows = static_cast<std::size_t>(tree.row_size[node]);
        find_ranges(rows, n_rows);
        known_.descend(next.depth);
        const NodeSamples samples{rows, n_rows, ranges_, known_, tree.halves.data()};
        if (!proposer_.propose(samples, Stream(next.key), stop)) {
            close(tree, next.node);
            continue;
        }
        const std::int32_t n_left = partition(rows, n_rows);
        const std::int32_t child =
            tree.split(next.node, proposer_.split(), samples_.width(), n_left);
        remember_means(tree, next.node);
        pending_.push_back(Pending{child + 1, next.depth + 1, derive(next.key, 1)});
        pending_.push_back(Pending{child, next.depth + 1, derive(next.key, 0)});
    }
    tree.n_comparisons += proposer_.n_comparisons() - before;
}

void Grower::find_ranges(const std::int32_t* rows, std::size_t n_rows) {
    ranges_.clear();
    const std::vector<std::int32_t>& classes = samples_.classes();
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::int32_t class_id = classes[static_cast<std::size_t>(rows[i])];
        const auto place = static_cast<std::int32_t>(i);
        if (ranges_.empty() || ranges_.back().class_id != class_id)
            ranges_.push_back(ClassRange{class_id, place, place});
        ranges_.back().end = place + 1;
    }
}

// Stable: rows sorted by class stay sorted on both sides.
std::int32_t Grower::partition(std::int32_t* rows, std::size_t n_rows) {
    moved_.clear();
    std::int32_t* left = rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (proposer_.goes_right(i))
            moved_.push_back(rows[i]);
        else
            *left++ = rows[i];
    }
    std::copy(moved_.begin(), moved_.end(), left);
    return static_cast<std::int32_t>(left - rows);
}

void Grower::remember_means(const Tree& tree, std::int32_t node) {
    const NcmSplit& split = proposer_.split();
    const auto begin =
        static_cast<std::size_t>(tree.centroid_begin[static_cast<std::size_t>(node)]);
    for (std::size_t j = 0; j < split.n_centroids(); ++j) {
        const auto source = CentroidSource::from_code(tree.centroid_source[begin + j]);
        if (!source.is_row())
            known_.record(split.classes[j],
                          KnownMean{source.index(), split.counts[j], split.half_norms[j]});
    }
}

void Grower::close(Tree& tree, std::int32_t leaf) {
    counts_.clear();
    for (const ClassRange& range : ranges_)
        counts_.push_back(ClassCount{range.class_id, range.size()});
    tree.set_counts(leaf, counts_);
}

}  // namespace evergrow
