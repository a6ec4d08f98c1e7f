// A grown forest. It never changes: an update makes a new one, so readers need no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "samples/samples.hpp"
#include "score/information_gain.hpp"
#include "tree/tree.hpp"

namespace evergrow {

struct Forest {
    std::shared_ptr<const Samples> samples;
    std::vector<std::shared_ptr<const Tree>> trees;
    std::size_t n_classes = 0;
    // Kept from update to update: to make it anew would cost by the samples stored.
    std::shared_ptr<const EntropyTable> n_log_n;

    std::size_t n_features() const { return samples->n_features(); }
    std::size_t n_bytes() const;
    // Of every tree, the distances computed to train it.
    std::vector<std::uint64_t> n_comparisons() const;
    // Whether leaves know their training rows; not so in a forest kept for inference.
    bool keeps_rows() const;
    // Some of its trees, one after the other.
    Forest group(std::size_t first_tree, std::size_t n_trees) const;
};

// The trees of several forests, in their order, as one over samples that hold the rows of all.
// Throws std::invalid_argument if they do not fit together.
Forest joined(std::shared_ptr<const Samples> samples,
              const std::vector<std::shared_ptr<Forest>>& forests);

}  // namespace evergrow
