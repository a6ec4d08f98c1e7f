// Which splitting nodes an update may change: Eq. (7) of Ristin 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "score/information_gain.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// What makes a node likely: a small subtree, nothing, or a subtree that separates its classes
// badly (the report's RTSTQ).
enum class NodeWeights : std::uint8_t { kSize, kUniform, kQuality };

// For every node whether it is chosen: a share of the splitting nodes, rounded to the nearest
// number, without replacement. A node's number is drawn from its path, `key` being the root's.
std::vector<std::uint8_t> choose_nodes(const Tree& tree, double share, NodeWeights weights,
                                       std::uint64_t key, const EntropyTable& n_log_n);

}  // namespace evergrow
