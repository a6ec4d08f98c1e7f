#include "update/regrowth.hpp"

#include <vector>

#include "run/random_stream.hpp"
#include "run/stopwatch.hpp"
#include "tree/router.hpp"

namespace evergrow {
namespace {

// The key of the node's random numbers, by the path that leads to it.
std::uint64_t key_of(const Tree& tree, std::int32_t node, std::uint64_t root_key) {
    std::vector<std::uint64_t> sides;
    for (; node != kRoot; node = tree.node(node).parent)
        sides.push_back(node == tree.node(tree.node(node).parent).left ? 0 : 1);
    std::uint64_t key = root_key;
    for (std::size_t i = sides.size(); i-- > 0;) key = derive(key, sides[i]);
    return key;
}

}  // namespace

void start_again(TreeTask& task, const std::vector<std::int32_t>& rows) {
    task.report.n_added += rows.size();
    task.editor.cut(kRoot, rows);
}

void regrow(TreeTask& task) {
    task.editor.cut_small_leaves();
    const Stopwatch watch(task.report.grow_seconds);
    const TreeContext& context = task.context;
    std::vector<std::int32_t> rows, leaves;
    for (const std::int32_t leaf : task.editor.changed_leaves()) {
        const Node& node = task.tree.node(leaf);
        const bool may_split =
            node.count_size > 1 && node.row_size >= 2 * context.plan.rules.min_samples_leaf;
        if (may_split && node.is_leaf() && is_reachable(task.tree, leaf)) leaves.push_back(leaf);
    }
    for (std::size_t i = 0; i < leaves.size() && !context.stop; ++i) {
        const std::int32_t leaf = leaves[i];
        // One leaf ahead: its rows lie scattered in memory, and growing would wait for each.
        if (i + 1 < leaves.size()) prefetch_rows(context.samples, task.tree, leaves[i + 1]);
        rows.clear();
        task.tree.collect_rows(leaf, rows);
        task.grower.grow(task.tree, leaf, rows, key_of(task.tree, leaf, context.root_key()),
                         context.stop);
        ++task.report.n_grown;
    }
}

}  // namespace evergrow
