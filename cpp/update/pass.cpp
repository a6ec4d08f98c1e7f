#include "update/pass.hpp"

#include <algorithm>
#include <utility>

#include "run/stopwatch.hpp"
#include "samples/row_sampling.hpp"
#include "tree/class_counts.hpp"
#include "update/tree_edits.hpp"

namespace evergrow {
namespace {

std::size_t place(std::int32_t n) { return static_cast<std::size_t>(n); }

// Both sorted by class; of one class the rows of `first` come first.
std::vector<std::int32_t> merge(const Samples& samples, const std::vector<std::int32_t>& first,
                                const std::vector<std::int32_t>& second) {
    if (first.empty()) return second;
    if (second.empty()) return first;
    std::vector<std::int32_t> merged(first.size() + second.size());
    std::merge(
        first.begin(), first.end(), second.begin(), second.end(), merged.begin(),
        [&](std::int32_t a, std::int32_t b) { return samples.class_of(a) < samples.class_of(b); });
    return merged;
}

std::vector<ClassCount> sum(const std::vector<ClassCount>& a, const std::vector<ClassCount>& b) {
    std::vector<ClassCount> merged;
    std::size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (j == b.size() || (i < a.size() && a[i].class_id < b[j].class_id))
            merged.push_back(a[i++]);
        else if (i == a.size() || b[j].class_id < a[i].class_id)
            merged.push_back(b[j++]);
        else
            merged.push_back(ClassCount{a[i].class_id, a[i++].count + b[j++].count});
    }
    return merged;
}

}  // namespace

void TreeUpdate::prepare(const Strategy& strategy) {
    if (!strategy.keeps_scores) {
        tree_.scores.drop();
        return;
    }
    tree_.scores.start();
    tree_.scores.extend_to(samples_.size());
}

void TreeUpdate::add(const std::vector<std::int32_t>& rows, const Strategy& strategy) {
    const Stopwatch watch(report_.pass_seconds);
    report_.n_added += rows.size();
    in_batch_.assign(plan_.n_classes, 0);
    for (const std::int32_t row : rows) in_batch_[place(samples_.class_of(row))] = 1;
    if (strategy.at_chosen == nullptr) {
        const AtNode nothing = [](std::int32_t, std::uint64_t, const std::vector<std::int32_t>&) {
            return true;
        };
        descend(rows, false, nothing);
        return;
    }
    const std::vector<std::uint8_t> chosen =
        choose_nodes(tree_, plan_.share, plan_.weights, root_key(), n_log_n_);
    report_.n_chosen += static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), 1));
    descend(rows, false,
            [&](std::int32_t node, std::uint64_t key, const std::vector<std::int32_t>& arrivals) {
                return chosen[place(node)] == 0 || strategy.at_chosen(*this, node, key, arrivals);
            });
}

// Not by recursion: a tree may be deeper than the stack of a thread.
void TreeUpdate::descend(const std::vector<std::int32_t>& rows, bool everywhere,
                         const AtNode& at_node) {
    std::vector<Group> pending;
    pending.push_back(Group{kRoot, root_key(), rows});
    while (!pending.empty() && !stop_) {
        Group group = std::move(pending.back());
        pending.pop_back();
        if (group.arrivals.empty() && !everywhere) continue;
        if (tree_.is_leaf(group.node))
            put(group.node, group.arrivals);
        else
            visit(group, at_node, pending);
    }
}

void TreeUpdate::visit(Group& group, const AtNode& at_node, std::vector<Group>& pending) {
    to_left_.clear();
    to_right_.clear();
    are_routed_ = false;
    if (!at_node(group.node, group.key, group.arrivals)) return;
    count(group.node, group.arrivals);
    std::vector<std::int32_t> left, right;
    if (are_routed_) {
        left.swap(left_);
        right.swap(right_);
    } else {
        route(group.node, group.arrivals, left, right);
    }
    if (!to_left_.empty()) left = merge(samples_, to_left_, left);
    if (!to_right_.empty()) right = merge(samples_, to_right_, right);
    const std::int32_t child = tree_.node(group.node).left;
    if (!left.empty()) fetch_centroids(samples_, tree_, child);
    if (!right.empty()) fetch_centroids(samples_, tree_, child + 1);
    pending.push_back(Group{child + 1, derive(group.key, 1), std::move(right)});
    pending.push_back(Group{child, derive(group.key, 0), std::move(left)});
}

void TreeUpdate::route(std::int32_t node, const std::vector<std::int32_t>& rows,
                       std::vector<std::int32_t>& left, std::vector<std::int32_t>& right) {
    goes_right_.resize(RowReader::kBlock);
    const std::size_t level = tree_.scores.is_kept() ? depth_of(tree_, node) : 0;
    for (std::size_t first = 0; first < rows.size(); first += RowReader::kBlock) {
        const std::size_t n = std::min(RowReader::kBlock, rows.size() - first);
        router_.route(tree_, node, reader_.read(rows.data() + first, n), n, goes_right_.data());
        for (std::size_t i = 0; i < n; ++i)
            (goes_right_[i] != 0 ? right : left).push_back(rows[first + i]);
        if (!tree_.scores.is_kept()) continue;
        for (std::size_t i = 0; i < n; ++i)
            tree_.scores.keep(rows[first + i], level, router_.scores()[i]);
    }
    report_.n_comparisons += rows.size() * place(tree_.node(node).centroid_size);
}

void TreeUpdate::count(std::int32_t node, const std::vector<std::int32_t>& arrivals) {
    if (arrivals.empty()) return;
    count_classes(samples_, arrivals, counts_);
    tree_.change_counts(node, counts_);
}

void TreeUpdate::put(std::int32_t leaf, const std::vector<std::int32_t>& arrivals) {
    if (arrivals.empty()) return;
    count(leaf, arrivals);
    if (!plan_.keep_rows) return;
    std::vector<std::int32_t> rows;
    tree_.collect_rows(leaf, rows);
    rows = merge(samples_, rows, arrivals);
    tree_.set_rows(leaf, rows.data(), rows.size());
    changed_.push_back(leaf);
}

void TreeUpdate::cut(std::int32_t node, const std::vector<std::int32_t>& arrivals) {
    std::vector<std::int32_t> rows;
    tree_.collect_rows(node, rows);
    rows.insert(rows.end(), arrivals.begin(), arrivals.end());
    sort_by_class(samples_, rows);
    tree_.cut(node);
    tree_.set_rows(node, rows.data(), rows.size());
    count(node, arrivals);
    changed_.push_back(node);
    shrunk_.push_back(node);
    ++report_.n_cut;
}

void TreeUpdate::start_again(const std::vector<std::int32_t>& rows) {
    report_.n_added += rows.size();
    cut(kRoot, rows);
}

void TreeUpdate::remove(const RowFlags& flags, bool keep_counts) {
    const Stopwatch watch(report_.pass_seconds);
    remove_below(kRoot, flags, keep_counts);
}

// Takes flagged rows out of a leaf; returns what leaves, as negative counts.
std::vector<ClassCount> TreeUpdate::remove_from_leaf(std::int32_t leaf, const RowFlags& flags) {
    const Node node = tree_.node(leaf);
    std::vector<ClassCount> changes;
    std::vector<std::int32_t> kept;
    for (std::size_t j = 0; j < place(node.row_size); ++j) {
        const std::int32_t row = tree_.row(node, j);
        if (flags[place(row)] == 0) {
            kept.push_back(row);
            continue;
        }
        const std::int32_t class_id = samples_.class_of(row);
        if (changes.empty() || changes.back().class_id != class_id)
            changes.push_back(ClassCount{class_id, 0});
        --changes.back().count;
    }
    if (changes.empty()) return changes;
    tree_.set_rows(leaf, kept.data(), kept.size());
    shrunk_.push_back(leaf);
    return changes;
}

void TreeUpdate::remove_below(std::int32_t top, const RowFlags& flags, bool keep_counts) {
    change_below(top, keep_counts,
                 [&](std::int32_t leaf) { return remove_from_leaf(leaf, flags); });
}

// Children before their parents, so that every node changes its counts once.
void TreeUpdate::change_below(std::int32_t top, bool keep_counts, const AtLeaf& at_leaf) {
    below_.assign(1, Below{top, 0});
    for (std::size_t i = 0; i < below_.size(); ++i) {
        const std::int32_t left = tree_.node(below_[i].node).left;
        if (left == kLeaf) continue;
        below_.push_back(Below{left, i});
        below_.push_back(Below{left + 1, i});
    }
    if (changes_.size() < below_.size()) changes_.resize(below_.size());
    for (std::size_t i = below_.size(); i-- > 0;) {
        const Below at = below_[i];
        if (tree_.is_leaf(at.node)) changes_[i] = at_leaf(at.node);
        if (changes_[i].empty()) continue;
        if (!keep_counts) tree_.change_counts(at.node, changes_[i]);
        if (i > 0) changes_[at.parent] = sum(changes_[at.parent], changes_[i]);
        changes_[i].clear();
    }
}

void TreeUpdate::drop_classes(const std::vector<std::int32_t>& classes) {
    drop_class_counts(tree_, classes);
    // Leaves that only counted such classes, their rows gone before, hold nothing now.
    for (const std::int32_t node : live_nodes(tree_))
        if (tree_.is_leaf(node) && tree_.node(node).count_size == 0) shrunk_.push_back(node);
}

void TreeUpdate::settle(Grower& grower) {
    cut_small_leaves();
    const Stopwatch watch(report_.grow_seconds);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    std::vector<std::int32_t> rows;
    for (const std::int32_t leaf : changed_) {
        if (stop_) return;
        const Node& node = tree_.node(leaf);
        const bool may_split =
            node.count_size > 1 && node.row_size >= 2 * plan_.rules.min_samples_leaf;
        if (!may_split || !node.is_leaf() || !is_alive(leaf)) continue;
        rows.clear();
        tree_.collect_rows(leaf, rows);
        grower.grow(tree_, leaf, rows, key_of(leaf), stop_);
        ++report_.n_grown;
    }
}

// Too small a leaf: its parent becomes one, holding what its subtree holds, and so on upwards.
void TreeUpdate::cut_small_leaves() {
    const Stopwatch watch(report_.pass_seconds);
    // Not a loop over iterators: cutting adds to the list.
    for (std::size_t i = 0; i < shrunk_.size(); ++i) {
        std::int32_t leaf = shrunk_[i];
        if (!tree_.is_leaf(leaf) || !is_alive(leaf)) continue;
        while (leaf != kRoot && tree_.node(leaf).row_size < plan_.rules.min_samples_leaf) {
            leaf = tree_.node(leaf).parent;
            cut(leaf, {});
        }
    }
}

// A cut node no longer knows its children.
bool TreeUpdate::is_alive(std::int32_t node) const {
    while (node != kRoot) {
        const std::int32_t parent = tree_.node(node).parent;
        const std::int32_t left = tree_.node(parent).left;
        if (left == kLeaf || (left != node && left + 1 != node)) return false;
        node = parent;
    }
    return true;
}

std::uint64_t TreeUpdate::root_key() const { return purpose_key(plan_.tree_key, Purpose::kNodes); }

std::uint64_t TreeUpdate::key_of(std::int32_t node) const {
    std::vector<std::uint64_t> sides;
    for (; node != kRoot; node = tree_.node(node).parent)
        sides.push_back(node == tree_.node(tree_.node(node).parent).left ? 0 : 1);
    std::uint64_t key = root_key();
    for (std::size_t i = sides.size(); i-- > 0;) key = derive(key, sides[i]);
    return key;
}

}  // namespace evergrow
