// The invariants of a tree, for tests.
#pragma once

#include "samples/samples.hpp"
#include "tree/forest.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Throws std::logic_error that names the first invariant broken: links are mutual, counts are
// those of the children together, rows are sorted by class and no more than the counts.
void check_tree(const Tree& tree, const Samples& samples);
void check_trees(const Forest& forest);

}  // namespace evergrow
