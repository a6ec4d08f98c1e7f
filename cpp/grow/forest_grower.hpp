// Growing a forest from samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "propose/proposer.hpp"
#include "run/parallel_tasks.hpp"
#include "samples/row_sampling.hpp"
#include "samples/samples.hpp"
#include "tree/forest.hpp"

namespace evergrow {

// The parameters of one call that grows a forest.
struct GrowRequest {
    std::size_t n_trees;
    std::size_t n_classes;
    std::uint64_t seed;
    RowSampling sampling;
    SplitRules rules;
    // Index of the first tree, where a forest is grown in several parts.
    std::size_t first_tree = 0;
    // Whether every tree is copied to memory of its exact size. It does not pay for trees that are
    // needed for a short time, and needs memory for the copy.
    bool packs_trees = true;
    // By class, as in RowWeights.
    std::vector<double> class_weights;
};

// Grows a forest from all samples; nothing if the poll asked to stop.
std::optional<Forest> grow_forest(std::shared_ptr<const Samples> samples,
                                  const GrowRequest& request, std::size_t n_threads,
                                  const Poll& poll);

}  // namespace evergrow
