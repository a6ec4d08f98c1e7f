#include "update/tree_pass.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "run/random_stream.hpp"
#include "samples/row_sampling.hpp"

namespace evergrow {

// Not by recursion: a tree may be deeper than the stack of a thread.
void TreePass::run(const std::vector<std::int32_t>& rows, Reach reach, NodeDecider* decider) {
    std::vector<Group> pending;
    pending.push_back(Group{kRoot, context_.root_key(), rows});
    while (!pending.empty() && !context_.stop) {
        const Group group = std::move(pending.back());
        pending.pop_back();
        if (group.arrivals.empty() && reach == Reach::kArrivals) continue;
        if (editor_.tree().is_leaf(group.node))
            editor_.add_to_leaf(group.node, group.arrivals);
        else
            visit(group, decider, pending);
    }
}

void TreePass::visit(const Group& group, NodeDecider* decider, std::vector<Group>& pending) {
    NodeEdit edit = KeepNode{};
    if (decider != nullptr)
        edit = decider->decide(NodeVisit{group.node, group.key, group.arrivals});
    if (std::holds_alternative<CutNode>(edit)) {
        editor_.cut(group.node, group.arrivals);
        return;
    }
    const auto* change = std::get_if<ReplaceCentroids>(&edit);
    SideRows moved;
    if (change != nullptr) moved = editor_.replace_centroids(group.node, *change);
    prefetch_children(editor_.tree(), editor_.tree().node(group.node));
    if (!context_.plan.leaves_only) editor_.count(group.node, group.arrivals);
    SideRows sides = change != nullptr && change->nearest_of_arrivals
                         ? route_by_nearest(group.node, change->split, group.arrivals,
                                            *change->nearest_of_arrivals)
                         : route(group.node, group.arrivals);
    const Samples& samples = context_.samples;
    if (!moved.left.empty()) sides.left = merge_by_class(samples, moved.left, sides.left);
    if (!moved.right.empty()) sides.right = merge_by_class(samples, moved.right, sides.right);
    const Tree& tree = editor_.tree();
    const std::int32_t child = tree.node(group.node).left;
    if (!sides.left.empty()) prefetch_centroids(samples, tree, child);
    if (!sides.right.empty()) prefetch_centroids(samples, tree, child + 1);
    pending.push_back(Group{child + 1, derive(group.key, 1), std::move(sides.right)});
    pending.push_back(Group{child, derive(group.key, 0), std::move(sides.left)});
}

SideRows TreePass::route(std::int32_t node, const std::vector<std::int32_t>& rows) {
    const Tree& tree = editor_.tree();
    SideRows sides;
    goes_right_.resize(RowReader::kBlock);
    scores_.resize(RowReader::kBlock);
    for (std::size_t first = 0; first < rows.size(); first += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, rows.size() - first);
        router_.route(tree, node, reader_.read(rows.data() + first, n), n, goes_right_.data(),
                      scores_.data());
        for (std::size_t i = 0; i < n; ++i)
            (goes_right_[i] != 0 ? sides.right : sides.left).push_back(rows[first + i]);
        editor_.cache_scores(node, rows.data() + first, scores_.data(), n);
    }
    report_.n_comparisons += rows.size() * static_cast<std::size_t>(tree.node(node).centroid_size);
    return sides;
}

SideRows TreePass::route_by_nearest(std::int32_t node, const Split& split,
                                    const std::vector<std::int32_t>& rows,
                                    const NearestCentroids& nearest) {
    SideRows sides;
    for (std::size_t r = 0; r < rows.size(); ++r)
        (split.centroids[nearest.index[r]].side != 0 ? sides.right : sides.left).push_back(rows[r]);
    editor_.cache_scores(node, rows.data(), nearest.scores.data(), rows.size());
    return sides;
}

}  // namespace evergrow
