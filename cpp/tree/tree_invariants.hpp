// The invariants of a tree, for tests.
#pragma once

#include "samples/samples.hpp"
#include "tree/forest.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Throws std::logic_error with the first violation: parents and children link to each other, counts
// are the sums of the children's, rows are sorted by class and not more than the counts.
void check_tree(const Tree& tree, const Samples& samples);
void check_trees(const Forest& forest);

}  // namespace evergrow
