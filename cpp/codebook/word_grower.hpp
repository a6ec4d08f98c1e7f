// Growing clustering trees fully, then pruning them to the number of words [Moosmann2006 Sec. 2].
#pragma once

#include <cstdint>
#include <vector>

#include "codebook/descriptors.hpp"
#include "codebook/trial_runner.hpp"
#include "codebook/word_tree.hpp"
#include "run/parallel_tasks.hpp"

namespace evergrow {

// Grows the leaves that new descriptors reach, and prunes the new nodes to the number of words in
// the rules; old nodes stay. If a leaf is divided, the part with most of its old descriptors keeps
// the word and the other parts get new words. False if the poll asked to stop.
bool grow_words(std::vector<WordTree>& trees, const Descriptors& descriptors,
                const WordRules& rules, const std::vector<std::uint64_t>& keys,
                std::size_t n_threads, const Poll& poll);

}  // namespace evergrow
