// The choice of the splitting nodes that an update may change [Ristin2014 Eq. 7].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "score/information_gain.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Nodes that are drawn more often: with a small subtree (kSize), none (kUniform), or with badly
// separated classes below them (kQuality, RTSTQ) [GuoReport Sec. 2.2].
enum class NodeWeights : std::uint8_t { kSize, kUniform, kQuality };

// By node, 1 for the chosen ones: a share of the splitting nodes, rounded to the nearest integer,
// without replacement. `key` is that of the root; the draw of a node depends on its path only.
std::vector<std::uint8_t> choose_nodes(const Tree& tree, double share, NodeWeights weights,
                                       std::uint64_t key, const EntropyTable& n_log_n);

}  // namespace evergrow
