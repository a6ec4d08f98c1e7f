// A trained forest. It is immutable: an update makes a new one, so readers need no lock.
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
    // Reused by updates: making it takes time linear in the number of samples.
    std::shared_ptr<const EntropyTable> n_log_n;

    std::size_t n_features() const { return samples->n_features(); }
    std::size_t n_bytes() const;
    // Distances computed to train each tree.
    std::vector<std::uint64_t> n_comparisons() const;
    // Whether leaves have their training rows; false in a forest for inference only.
    bool keeps_rows() const;
};

// Joins the trees of several forests, in order, over samples with the rows of all of them. Throws
// std::invalid_argument if the forests do not match.
Forest joined(std::shared_ptr<const Samples> samples,
              const std::vector<std::shared_ptr<Forest>>& forests);

}  // namespace evergrow
