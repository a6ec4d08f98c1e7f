// Coding: finding the word of each descriptor in each tree [Moosmann2006 Sec. 2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codebook/word_tree.hpp"
#include "run/parallel_tasks.hpp"

namespace evergrow {

// Trees in a layout for fast descent.
class WordCoder {
  public:
    // The trees must have passed check_word_tree.
    explicit WordCoder(const std::vector<WordTree>& trees);

    std::size_t n_trees() const { return trees_.size(); }

    // Writes n_trees words per row. False if the poll asked to stop.
    bool code(const float* rows, std::size_t n_rows, std::size_t n_features, std::int32_t* words,
              std::size_t n_threads, const Poll& poll) const;

  private:
    // A leaf is its own left child and sends every descriptor there.
    struct Step {
        float threshold;
        std::int32_t feature;
        std::int32_t child;
    };
    struct Steps {
        std::vector<Step> steps;
        std::vector<std::int32_t> word;
    };

    void descend(const Steps& tree, const float* rows, std::size_t n_rows, std::size_t n_features,
                 std::int32_t* words) const;

    std::vector<Steps> trees_;
};

}  // namespace evergrow
