#include "update/leaf_edits.hpp"

#include <algorithm>
#include <utility>

#include "samples/row_sampling.hpp"

namespace evergrow {
namespace {

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

// Sorts by class and adds up changes of the same class.
void combine(std::vector<ClassCount>& changes) {
    std::sort(changes.begin(), changes.end(),
              [](const ClassCount& a, const ClassCount& b) { return a.class_id < b.class_id; });
    std::size_t n = 0;
    for (std::size_t i = 1; i < changes.size(); ++i) {
        if (changes[i].class_id == changes[n].class_id)
            changes[n].count += changes[i].count;
        else
            changes[++n] = changes[i];
    }
    changes.resize(n + 1);
}

}  // namespace

RowFlags flags_of(const std::vector<std::int32_t>& rows, std::size_t n_samples) {
    RowFlags flags(n_samples, 0);
    for (const std::int32_t row : rows) flags[as_index(row)] = 1;
    return flags;
}

LeafEdit without_rows(const Tree& tree, const Samples& samples, std::int32_t leaf,
                      const RowFlags& flags) {
    const Node& node = tree.node(leaf);
    LeafEdit edit;
    for (std::size_t j = 0; j < as_index(node.row_size); ++j) {
        const std::int32_t row = tree.row(node, j);
        if (flags[as_index(row)] == 0) {
            edit.rows.push_back(row);
            continue;
        }
        const std::int32_t class_id = samples.class_of(row);
        if (edit.changes.empty() || edit.changes.back().class_id != class_id)
            edit.changes.push_back(ClassCount{class_id, 0});
        --edit.changes.back().count;
    }
    return edit;
}

LeafEdit with_new_classes(const Tree& tree, const Samples& samples, const Samples& before,
                          std::int32_t leaf, const RowFlags& flags) {
    const Node& node = tree.node(leaf);
    LeafEdit edit;
    for (std::size_t j = 0; j < as_index(node.row_size); ++j) {
        const std::int32_t row = tree.row(node, j);
        edit.rows.push_back(row);
        if (flags[as_index(row)] == 0) continue;
        edit.changes.push_back(ClassCount{before.class_of(row), -1});
        edit.changes.push_back(ClassCount{samples.class_of(row), 1});
    }
    if (edit.changes.empty()) return edit;
    sort_by_class(samples, edit.rows);
    combine(edit.changes);
    return edit;
}

// Children before their parents, so that the counts of every node change once.
std::vector<std::int32_t> LeafEdits::apply(Tree& tree, std::int32_t top, bool keep_counts,
                                           const Decide& decide) {
    std::vector<std::int32_t> changed;
    below_.assign(1, Below{top, 0});
    for (std::size_t i = 0; i < below_.size(); ++i) {
        const std::int32_t left = tree.node(below_[i].node).left;
        if (left == kLeaf) continue;
        below_.push_back(Below{left, i});
        below_.push_back(Below{left + 1, i});
    }
    if (changes_.size() < below_.size()) changes_.resize(below_.size());
    for (std::size_t i = below_.size(); i-- > 0;) {
        const Below at = below_[i];
        if (tree.is_leaf(at.node)) {
            LeafEdit edit = decide(at.node);
            if (edit.changes.empty()) continue;
            tree.set_rows(at.node, edit.rows.data(), edit.rows.size());
            changed.push_back(at.node);
            changes_[i] = std::move(edit.changes);
        }
        if (changes_[i].empty()) continue;
        if (!keep_counts) tree.change_counts(at.node, changes_[i]);
        if (i > 0) changes_[at.parent] = sum(changes_[at.parent], changes_[i]);
        changes_[i].clear();
    }
    return changed;
}

}  // namespace evergrow
