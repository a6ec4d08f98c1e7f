// Replaces or removes the references of a tree to rows and classes; its structure stays.
#pragma once

#include <cstdint>
#include <vector>

#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// The reachable nodes, parents before their children; other nodes are dead.
std::vector<std::int32_t> live_nodes(const Tree& tree);

// Replaces centroids that reference flagged rows by copies in the format of the tree.
void detach_rows(Tree& tree, const Samples& samples, const std::vector<std::uint8_t>& flags);

// Removes classes from the class counts of every node.
void drop_class_counts(Tree& tree, const std::vector<std::int32_t>& classes);

// Replaces class c by map[c] in counts and centroids, and sorts the rows of leaves by their classes
// in `samples`, which are the new ones.
void relabel_tree(Tree& tree, const Samples& samples, const std::vector<std::int32_t>& map);

// Replaces row r by row map[r] everywhere.
void renumber_rows(Tree& tree, const std::vector<std::int32_t>& map);

}  // namespace evergrow
