#include "codebook/pruner.hpp"

#include <limits>
#include <queue>
#include <tuple>

namespace evergrow {
namespace {

// A node to prune; the next one is the largest in this order.
struct Candidate {
    std::int64_t gain;
    std::int32_t node;
    bool operator<(const Candidate& other) const {
        return std::tie(other.gain, node) < std::tie(gain, other.node);
    }
};

std::vector<std::int32_t> parents_of(const WordTree& tree) {
    std::vector<std::int32_t> parent(tree.n_nodes(), -1);
    for (std::size_t i = 0; i < tree.n_nodes(); ++i) {
        if (tree.is_leaf(i)) continue;
        const auto left = static_cast<std::size_t>(tree.child[i]);
        parent[left] = parent[left + 1] = static_cast<std::int32_t>(i);
    }
    return parent;
}

}  // namespace

void prune(WordTree& tree, const std::vector<std::int64_t>& gain, const WordRules& rules,
           std::size_t n_rows) {
    const std::vector<std::int32_t> parent = parents_of(tree);
    std::priority_queue<Candidate> candidates;
    const auto consider = [&](std::int32_t i) {
        const auto node = static_cast<std::size_t>(i);
        if (tree.is_leaf(node) || gain[node] == kNotPrunable) return;
        const auto left = static_cast<std::size_t>(tree.child[node]);
        if (tree.is_leaf(left) && tree.is_leaf(left + 1)) candidates.push({gain[node], i});
    };
    for (std::size_t i = 0; i < tree.n_nodes(); ++i) consider(static_cast<std::int32_t>(i));
    const std::size_t limit =
        rules.max_words == 0 ? std::numeric_limits<std::size_t>::max() : rules.max_words;
    std::size_t n_words = tree.n_words();
    while (!candidates.empty()) {
        const Candidate lowest = candidates.top();
        if (n_words <= limit && gain_per_row(lowest.gain, n_rows) >= rules.min_gain) break;
        candidates.pop();
        tree.child[static_cast<std::size_t>(lowest.node)] = WordTree::kLeaf;
        --n_words;
        const std::int32_t above = parent[static_cast<std::size_t>(lowest.node)];
        if (above >= 0) consider(above);
    }
}

}  // namespace evergrow
