// The trees of a codebook as one immutable value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codebook/descriptors.hpp"
#include "codebook/trial_runner.hpp"
#include "codebook/word_coder.hpp"
#include "codebook/word_tree.hpp"
#include "run/parallel_tasks.hpp"

namespace evergrow {

class WordTrees {
  public:
    // Throws std::invalid_argument if a tree is damaged.
    WordTrees(std::vector<WordTree> trees, std::size_t n_features);
    // Trees of one leaf each.
    static WordTrees stumps(std::size_t n_trees, std::size_t n_features);

    const std::vector<WordTree>& trees() const { return trees_; }
    std::size_t n_features() const { return n_features_; }
    std::vector<std::size_t> words_per_tree() const;

    // The trees after training on the new descriptors; see grow_words. `update` is the number of
    // the update, from 0. Nothing if the poll asked to stop.
    std::optional<WordTrees> grown(const Descriptors& descriptors, const WordRules& rules,
                                   std::uint64_t seed, std::uint64_t update, std::size_t n_threads,
                                   const Poll& poll) const;

    // Writes the words of each row, one per tree. False if the poll asked to stop.
    bool code(const float* rows, std::size_t n_rows, std::int32_t* words, std::size_t n_threads,
              const Poll& poll) const {
        return coder_.code(rows, n_rows, n_features_, words, n_threads, poll);
    }

  private:
    std::vector<WordTree> trees_;
    std::size_t n_features_;
    WordCoder coder_;
};

}  // namespace evergrow
