// Pruning a clustering tree bottom-up, Moosmann 2006, sec. 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codebook/trial_runner.hpp"
#include "codebook/word_tree.hpp"

namespace evergrow {

// The gain of a leaf, and of a split that must stay.
constexpr std::int64_t kNotPrunable = -1;

// Removes, again and again, the splitting node of two leaves with the lowest gain, the latest of
// equals, until the tree has at most max_words leaves and no such node gains less than min_gain.
// `gain` has an entry per node; `n_rows` descriptors lie in the tree. The children of a node that
// becomes a leaf stay in the arrays, out of reach.
void prune(WordTree& tree, const std::vector<std::int64_t>& gain, const WordRules& rules,
           std::size_t n_rows);

}  // namespace evergrow
