// Bottom-up pruning of a clustering tree [Moosmann2006 Sec. 2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codebook/trial_runner.hpp"
#include "codebook/word_tree.hpp"

namespace evergrow {

// Gain of a leaf, or of a split that must stay.
constexpr std::int64_t kNotPrunable = -1;

// Repeatedly makes the splitting node with two leaves and the lowest gain a leaf, the last one of
// ties, until the tree has at most max_words leaves and no such node has a gain below min_gain.
// `gain` has an entry per node; the tree was trained on `n_rows` descriptors. The children of a
// node that becomes a leaf stay in the arrays but are not reachable.
void prune(WordTree& tree, const std::vector<std::int64_t>& gain, const WordRules& rules,
           std::size_t n_rows);

}  // namespace evergrow
