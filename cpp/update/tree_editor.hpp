// Edits of one tree, from whole subtrees to single leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.hpp"
#include "update/leaf_edits.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"

namespace evergrow {

// Rows by the child that they go to, each list sorted by class.
struct SideRows {
    std::vector<std::int32_t> left, right;
};

// Keeps class counts, rows and score cache of the tree consistent, and remembers the leaves that
// may have to be cut or grown afterwards. The edits are decided elsewhere, by a `NodeDecider`.
class TreeEditor {
  public:
    TreeEditor(Tree& tree, const TreeContext& context, UpdateReport& report)
        : tree_(tree), context_(context), report_(report) {}

    const Tree& tree() const { return tree_; }

    // Adds rows, sorted by class, to the counts of a node.
    void count(std::int32_t node, const std::vector<std::int32_t>& rows);
    // Adds rows, sorted by class, to a leaf and its counts.
    void add_to_leaf(std::int32_t leaf, const std::vector<std::int32_t>& rows);
    // Makes a node a leaf that holds the rows of its subtree and these new rows.
    void cut(std::int32_t node, const std::vector<std::int32_t>& rows);
    // Replaces the centroids and takes the stored rows that change sides out of their leaves.
    // Returns them by their new side; the caller routes them to leaves.
    SideRows replace_centroids(std::int32_t node, const ReplaceCentroids& edit);
    // Stores the scores of rows at a node in the cache of the tree, if it has one.
    void cache_scores(std::int32_t node, const std::int32_t* rows, const float* scores,
                      std::size_t n);

    // Takes flagged rows out of all leaves; the class counts stay if `keep_counts`.
    void remove_rows(const RowFlags& flags, bool keep_counts);
    // Counts flagged rows under their new classes; `before` has the old ones.
    void relabel_rows(const RowFlags& flags, const Samples& before);
    // Removes classes from all class counts.
    void drop_classes(const std::vector<std::int32_t>& classes);

    // Cuts the parents of leaves that lost rows and have too few, repeatedly.
    void cut_small_leaves();
    // Leaves whose rows changed, without duplicates; some may have been cut since.
    std::vector<std::int32_t> changed_leaves() const;

  private:
    void remove_below(std::int32_t node, const RowFlags& flags, bool keep_counts);

    Tree& tree_;
    const TreeContext& context_;
    UpdateReport& report_;
    LeafEdits leaf_edits_;
    std::vector<std::int32_t> changed_;  // leaves that may be worth splitting
    std::vector<std::int32_t> shrunk_;   // leaves that may be too small
    std::vector<ClassCount> counts_;     // buffer
    RowFlags moving_;                    // buffer, all zero between calls
};

}  // namespace evergrow
