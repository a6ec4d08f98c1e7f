// Grows a forest from samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "propose/proposer.hpp"
#include "run/parallel_tasks.hpp"
#include "samples/row_sampling.hpp"
#include "samples/samples.hpp"
#include "tree/forest.hpp"

namespace evergrow {

struct ForestPlan {
    std::size_t n_trees;
    std::size_t n_classes;
    std::uint64_t seed;
    RowSampling sampling;
    SplitRules rules;
    // Where a forest is grown by groups of trees, the first of this one; the trees are the same.
    std::size_t first_tree = 0;
    // Bytes of rows that each thread may copy, where they lie in a file; 0 where in memory.
    std::size_t row_budget = 0;
    // Copies every tree to memory of its exact size. Trees that are soon let go need none, and
    // where memory is short there is none for a copy.
    bool packs_trees = true;
};

// Grows a forest from all the samples; nothing if the poll asked to stop.
std::optional<Forest> grow_forest(std::shared_ptr<const Samples> samples, const ForestPlan& plan,
                                  std::size_t n_threads, const Poll& poll);

}  // namespace evergrow
