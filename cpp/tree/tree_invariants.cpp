#include "tree/tree_invariants.hpp"

#include <map>
#include <stdexcept>
#include <string>

namespace evergrow {
namespace {

using Counts = std::map<std::int32_t, std::int64_t>;

void require(bool condition, std::int32_t node, const char* violation) {
    if (!condition) throw std::logic_error("node " + std::to_string(node) + ": " + violation);
}

Counts counts_of(const Tree& tree, std::int32_t i) {
    const Node& node = tree.node(i);
    Counts counts;
    std::int32_t before = -1;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.count_size); ++j) {
        const ClassCount& seen = tree.count(node, j);
        require(seen.class_id > before, i, "class counts are not sorted");
        require(seen.count > 0, i, "a class count is not positive");
        before = seen.class_id;
        counts[seen.class_id] = seen.count;
    }
    return counts;
}

void check_leaf(const Tree& tree, const Samples& samples, std::int32_t i, const Counts& counts) {
    const Node& node = tree.node(i);
    Counts held;
    std::int32_t before = -1;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.row_size); ++j) {
        const std::int32_t class_id = samples.class_of(tree.row(node, j));
        require(class_id != Samples::kRemoved, i, "holds a row that was removed");
        require(class_id >= before, i, "rows are not sorted by class");
        before = class_id;
        ++held[class_id];
    }
    for (const auto& [class_id, n] : held) {
        const auto found = counts.find(class_id);
        require(found != counts.end() && found->second >= n, i, "holds more rows than it counts");
    }
}

void check_split(const Tree& tree, const Samples& samples, std::int32_t i) {
    const Node& node = tree.node(i);
    require(node.row_size == 0, i, "a splitting node holds rows");
    bool sides[2] = {tree.kind() != SplitKind::kNcm, tree.kind() != SplitKind::kNcm};
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.centroid_size); ++j) {
        const Centroid& centroid = tree.centroid(node, j);
        sides[centroid.side] = true;
        const auto source = CentroidSource::from_code(centroid.source);
        if (tree.kind() != SplitKind::kAxis && source.is_row())
            require(samples.class_of(source.index()) != Samples::kRemoved, i,
                    "compares with a row that was removed");
    }
    require(sides[0] && sides[1], i, "all centroids are on one side");
}

}  // namespace

void check_tree(const Tree& tree, const Samples& samples) {
    std::vector<std::int32_t> pending{kRoot};
    std::size_t n_nodes = 0;
    require(tree.node(kRoot).parent == kNoParent, kRoot, "the root has a parent");
    while (!pending.empty()) {
        const std::int32_t i = pending.back();
        pending.pop_back();
        ++n_nodes;
        const Node& node = tree.node(i);
        Counts counts = counts_of(tree, i);
        if (node.is_leaf()) {
            check_leaf(tree, samples, i, counts);
            continue;
        }
        check_split(tree, samples, i);
        Counts below = counts_of(tree, node.left);
        for (const auto& [class_id, n] : counts_of(tree, node.left + 1)) below[class_id] += n;
        require(below == counts, i, "counts differ from those of the children");
        for (const std::int32_t child : {node.left, node.left + 1}) {
            require(tree.node(child).parent == i, child, "its parent link is wrong");
            pending.push_back(child);
        }
    }
    require(n_nodes == tree.n_nodes(), kRoot, "the number of nodes is wrong");
}

void check_trees(const Forest& forest) {
    for (const auto& tree : forest.trees) check_tree(*tree, *forest.samples);
}

}  // namespace evergrow
