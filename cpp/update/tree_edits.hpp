// Edits of a whole tree that keep its shape.
#pragma once

#include <cstdint>
#include <vector>

#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Nodes that can be reached from the root, a node before its children; edits leave others behind.
std::vector<std::int32_t> live_nodes(const Tree& tree);

// Gives the tree copies of its own, in half precision, of centroids that are flagged rows.
void detach_rows(Tree& tree, const Samples& samples, const std::vector<std::uint8_t>& flags);

// Takes the classes out of the class counts of every node.
void drop_class_counts(Tree& tree, const std::vector<std::int32_t>& classes);

// Names every class c map[c] instead, in counts and centroids; the rows of a leaf are sorted by
// the new names, those of `samples`.
void relabel_tree(Tree& tree, const Samples& samples, const std::vector<std::int32_t>& map);

// Gives every row r the number map[r] instead.
void renumber_rows(Tree& tree, const std::vector<std::int32_t>& map);

}  // namespace evergrow
