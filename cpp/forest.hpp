// A grown forest. It never changes: an update makes a new one, so readers need no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gain.hpp"
#include "parallel.hpp"
#include "propose/proposer.hpp"
#include "sample_rows.hpp"
#include "samples.hpp"
#include "tree.hpp"

namespace evergrow {

struct Forest {
    std::shared_ptr<const Samples> samples;
    std::vector<std::shared_ptr<const Tree>> trees;
    std::size_t n_classes = 0;
    // Kept from update to update: to make it anew would cost by the samples stored.
    std::shared_ptr<const EntropyTable> n_log_n;

    std::size_t n_features() const { return samples->n_features(); }
    std::size_t n_bytes() const;
    // Whether leaves know their training rows; not so in a forest kept for inference.
    bool keeps_rows() const;
    // Some of its trees, one after the other.
    Forest group(std::size_t first_tree, std::size_t n_trees) const;
};

// The trees of several forests, in their order, as one over samples that hold the rows of all.
// Throws std::invalid_argument if they do not fit together.
Forest joined(std::shared_ptr<const Samples> samples,
              const std::vector<std::shared_ptr<Forest>>& forests);

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
