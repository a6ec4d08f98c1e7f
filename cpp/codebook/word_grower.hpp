// Growing clustering trees (Moosmann 2006): fully, then back to the wanted number of words.
#pragma once

#include <cstdint>
#include <vector>

#include "codebook/descriptors.hpp"
#include "codebook/trial_runner.hpp"
#include "codebook/word_tree.hpp"
#include "run/parallel_tasks.hpp"

namespace evergrow {

// Grows the leaves that new descriptors reach, and prunes what was grown to the rules' number of
// words; nodes that were there before stay. A leaf that is divided leaves its word to the part
// with most of the descriptors that had it, the other parts get new words.
// False if the poll asked to stop.
bool grow_words(std::vector<WordTree>& trees, const Descriptors& descriptors,
                const WordRules& rules, const std::vector<std::uint64_t>& keys,
                std::size_t n_threads, const Poll& poll);

}  // namespace evergrow
