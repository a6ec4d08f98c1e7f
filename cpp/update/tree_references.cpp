#include "update/tree_references.hpp"

#include <algorithm>

#include "propose/class_means.hpp"
#include "samples/row_sampling.hpp"

namespace evergrow {
namespace {

Split split_of(const Tree& tree, const Node& node) {
    Split split;
    split.vectors.resize(as_index(node.centroid_size) * tree.codec().slot_bytes());
    for (std::size_t j = 0; j < as_index(node.centroid_size); ++j)
        split.centroids.push_back(tree.centroid(node, j));
    return split;
}

std::vector<ClassCount> counts_of(const Tree& tree, const Node& node) {
    std::vector<ClassCount> counts;
    for (std::size_t j = 0; j < as_index(node.count_size); ++j)
        counts.push_back(tree.count(node, j));
    return counts;
}

}  // namespace

std::vector<std::int32_t> live_nodes(const Tree& tree) {
    std::vector<std::int32_t> nodes, pending{kRoot};
    while (!pending.empty()) {
        const std::int32_t at = pending.back();
        pending.pop_back();
        nodes.push_back(at);
        if (tree.is_leaf(at)) continue;
        pending.push_back(tree.node(at).left + 1);
        pending.push_back(tree.node(at).left);
    }
    return nodes;
}

void detach_rows(Tree& tree, const Samples& samples, const std::vector<std::uint8_t>& flags) {
    if (tree.kind() != SplitKind::kNcm) return;
    AlignedVector<float> vector(tree.width());
    for (const std::int32_t i : live_nodes(tree)) {
        const Node node = tree.node(i);
        if (node.is_leaf()) continue;
        Split split = split_of(tree, node);
        bool changed = false;
        for (std::size_t j = 0; j < split.size(); ++j) {
            Centroid& centroid = split.centroids[j];
            const auto source = CentroidSource::from_code(centroid.source);
            if (!source.is_row() || flags[as_index(source.index())] == 0) continue;
            const float* row = samples.read(source.index(), vector.data());
            if (row != vector.data()) std::copy_n(row, tree.width(), vector.data());
            centroid.exponent = tree.codec().write(
                vector.data(), split.vectors.data() + j * tree.codec().slot_bytes());
            centroid.source = Centroid::kNewMean;
            centroid.offset = half_norm(vector.data(), tree.width());
            changed = true;
        }
        if (!changed) continue;
        tree.set_centroids(i, split);
        // Rounding moved the centroid, so cached scores are no longer exact.
        tree.score_cache.clear();
    }
}

void drop_class_counts(Tree& tree, const std::vector<std::int32_t>& classes) {
    if (classes.empty()) return;
    for (const std::int32_t i : live_nodes(tree)) {
        std::vector<ClassCount> counts = counts_of(tree, tree.node(i));
        const auto is_dropped = [&](const ClassCount& seen) {
            return std::find(classes.begin(), classes.end(), seen.class_id) != classes.end();
        };
        counts.erase(std::remove_if(counts.begin(), counts.end(), is_dropped), counts.end());
        tree.set_counts(i, counts.data(), counts.size());
    }
}

void relabel_tree(Tree& tree, const Samples& samples, const std::vector<std::int32_t>& map) {
    for (const std::int32_t i : live_nodes(tree)) {
        const Node node = tree.node(i);
        std::vector<ClassCount> renamed;
        for (const ClassCount& seen : counts_of(tree, node))
            renamed.push_back(ClassCount{map[as_index(seen.class_id)], seen.count});
        std::sort(renamed.begin(), renamed.end(),
                  [](const ClassCount& a, const ClassCount& b) { return a.class_id < b.class_id; });
        std::vector<ClassCount> joined;
        for (const ClassCount& seen : renamed) {
            if (!joined.empty() && joined.back().class_id == seen.class_id)
                joined.back().count += seen.count;
            else
                joined.push_back(seen);
        }
        tree.set_counts(i, joined.data(), joined.size());
        if (node.is_leaf()) {
            std::vector<std::int32_t> rows;
            tree.collect_rows(i, rows);
            sort_by_class(samples, rows);
            tree.set_rows(i, rows.data(), rows.size());
        } else if (tree.kind() == SplitKind::kNcm) {
            Split split = split_of(tree, node);
            for (Centroid& centroid : split.centroids)
                centroid.class_id = map[as_index(centroid.class_id)];
            tree.set_centroids(i, split);
        }
    }
}

void renumber_rows(Tree& tree, const std::vector<std::int32_t>& map) {
    tree.score_cache.clear();
    for (const std::int32_t i : live_nodes(tree)) {
        const Node node = tree.node(i);
        if (node.is_leaf()) {
            std::vector<std::int32_t> rows;
            tree.collect_rows(i, rows);
            for (std::int32_t& row : rows) row = map[as_index(row)];
            tree.set_rows(i, rows.data(), rows.size());
        } else if (tree.kind() == SplitKind::kNcm) {
            Split split = split_of(tree, node);
            for (Centroid& centroid : split.centroids)
                if (CentroidSource::from_code(centroid.source).is_row())
                    centroid.source = map[as_index(centroid.source)];
            tree.set_centroids(i, split);
        }
    }
}

}  // namespace evergrow
