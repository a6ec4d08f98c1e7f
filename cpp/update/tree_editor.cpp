#include "update/tree_editor.hpp"

#include <algorithm>

#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "tree/class_counts.hpp"
#include "update/tree_references.hpp"

namespace evergrow {
void TreeEditor::count(std::int32_t node, const std::vector<std::int32_t>& rows) {
    if (rows.empty()) return;
    count_classes(context_.samples, rows, counts_);
    tree_.change_counts(node, counts_);
}

void TreeEditor::add_to_leaf(std::int32_t leaf, const std::vector<std::int32_t>& rows) {
    if (rows.empty()) return;
    count(leaf, rows);
    if (!context_.plan.keep_rows) return;
    std::vector<std::int32_t> held;
    tree_.collect_rows(leaf, held);
    held = merge_by_class(context_.samples, held, rows);
    tree_.set_rows(leaf, held.data(), held.size());
    changed_.push_back(leaf);
}

void TreeEditor::cut(std::int32_t node, const std::vector<std::int32_t>& rows) {
    std::vector<std::int32_t> held;
    tree_.collect_rows(node, held);
    held.insert(held.end(), rows.begin(), rows.end());
    sort_by_class(context_.samples, held);
    tree_.cut(node);
    tree_.set_rows(node, held.data(), held.size());
    count(node, rows);
    changed_.push_back(node);
    shrunk_.push_back(node);
    ++report_.n_cut;
}

SideRows TreeEditor::replace_centroids(std::int32_t node, const ReplaceCentroids& edit) {
    SideRows moved;
    // Nearest centroids are incomplete after a stop, and the tree is thrown away.
    if (context_.stop) return moved;
    ++report_.n_edited;
    tree_.set_centroids(node, edit.split);
    moving_.resize(context_.samples.size());
    const std::size_t level = depth_of(tree_, node, ScoreCache::kLevels);
    for (std::size_t i = 0; i < edit.below.rows.size(); ++i) {
        const std::uint16_t nearest = edit.nearest.index[i];
        if (nearest == kSameSide) continue;
        tree_.score_cache.store(edit.below.rows[i], level, edit.nearest.scores[i]);
        const bool right = edit.split.centroids[nearest].side != 0;
        if (right == (i >= edit.below.n_left)) continue;
        (right ? moved.right : moved.left).push_back(edit.below.rows[i]);
    }
    report_.n_rerouted += moved.left.size() + moved.right.size();
    const std::int32_t child = tree_.node(node).left;
    const auto take_out = [&](std::int32_t from, std::vector<std::int32_t>& rows) {
        if (rows.empty()) return;
        for (const std::int32_t row : rows) moving_[as_index(row)] = 1;
        remove_below(from, moving_, false);
        for (const std::int32_t row : rows) moving_[as_index(row)] = 0;
        sort_by_class(context_.samples, rows);
    };
    take_out(child, moved.right);
    take_out(child + 1, moved.left);
    return moved;
}

void TreeEditor::cache_scores(std::int32_t node, const std::int32_t* rows, const float* scores,
                              std::size_t n) {
    if (!tree_.score_cache.is_active()) return;
    const std::size_t level = depth_of(tree_, node, ScoreCache::kLevels);
    for (std::size_t i = 0; i < n; ++i) tree_.score_cache.store(rows[i], level, scores[i]);
}

void TreeEditor::remove_below(std::int32_t node, const RowFlags& flags, bool keep_counts) {
    const std::vector<std::int32_t> leaves = leaf_edits_.apply(
        tree_, node, keep_counts,
        [&](std::int32_t leaf) { return without_rows(tree_, context_.samples, leaf, flags); });
    shrunk_.insert(shrunk_.end(), leaves.begin(), leaves.end());
}

void TreeEditor::remove_rows(const RowFlags& flags, bool keep_counts) {
    const Stopwatch watch(report_.pass_seconds);
    remove_below(kRoot, flags, keep_counts);
}

void TreeEditor::relabel_rows(const RowFlags& flags, const Samples& before) {
    const Stopwatch watch(report_.pass_seconds);
    const std::vector<std::int32_t> leaves =
        leaf_edits_.apply(tree_, kRoot, false, [&](std::int32_t leaf) {
            return with_new_classes(tree_, context_.samples, before, leaf, flags);
        });
    changed_.insert(changed_.end(), leaves.begin(), leaves.end());
}

void TreeEditor::drop_classes(const std::vector<std::int32_t>& classes) {
    drop_class_counts(tree_, classes);
    // A leaf whose rows were evicted before may have counted these classes only.
    for (const std::int32_t node : live_nodes(tree_))
        if (tree_.is_leaf(node) && tree_.node(node).count_size == 0) shrunk_.push_back(node);
}

void TreeEditor::cut_small_leaves() {
    const Stopwatch watch(report_.pass_seconds);
    // By index: cut() appends to the list.
    for (std::size_t i = 0; i < shrunk_.size(); ++i) {
        std::int32_t leaf = shrunk_[i];
        if (!tree_.is_leaf(leaf) || !is_reachable(tree_, leaf)) continue;
        while (leaf != kRoot && tree_.node(leaf).row_size < context_.plan.rules.min_samples_leaf) {
            leaf = tree_.node(leaf).parent;
            cut(leaf, {});
        }
    }
}

std::vector<std::int32_t> TreeEditor::changed_leaves() const {
    std::vector<std::int32_t> leaves = changed_;
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    return leaves;
}

}  // namespace evergrow
