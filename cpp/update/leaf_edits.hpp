// Edits of leaves, and the class counts of the nodes above them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// By row number: 1 for the rows that an edit concerns.
using RowFlags = std::vector<std::uint8_t>;

RowFlags flags_of(const std::vector<std::int32_t>& rows, std::size_t n_samples);

// The new rows of a leaf and the changes of its class counts. Without changes the leaf stays as it
// is.
struct LeafEdit {
    std::vector<std::int32_t> rows;
    std::vector<ClassCount> changes;  // sorted by class
};

// The leaf without its flagged rows.
LeafEdit without_rows(const Tree& tree, const Samples& samples, std::int32_t leaf,
                      const RowFlags& flags);
// The leaf after its flagged rows got the classes that they have in `samples`; `before` has the old
// classes.
LeafEdit with_new_classes(const Tree& tree, const Samples& samples, const Samples& before,
                          std::int32_t leaf, const RowFlags& flags);

// Applies edits to all leaves below a node. Reuses its buffers.
class LeafEdits {
  public:
    using Decide = std::function<LeafEdit(std::int32_t leaf)>;

    // Also changes the counts of the node and of all nodes below it, unless `keep_counts`. Returns
    // the leaves that changed.
    std::vector<std::int32_t> apply(Tree& tree, std::int32_t node, bool keep_counts,
                                    const Decide& decide);

  private:
    // A node of the subtree, and the index of its parent in the list.
    struct Below {
        std::int32_t node;
        std::size_t parent;
    };
    std::vector<Below> below_;
    std::vector<std::vector<ClassCount>> changes_;  // by index in the list; empty between calls
};

}  // namespace evergrow
