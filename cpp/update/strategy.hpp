// The ways in which a tree takes new samples [Ristin2014 Sec. 4].
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tree/tree.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"

namespace evergrow {

struct Strategy {
    const char* name;
    // Leaves that changed may split, and leaves that became too small are cut.
    bool grows;
    // Centroids change, so it pays to cache the scores of stored rows.
    bool caches_scores;
    // Makes the decider for the chosen nodes of one tree; null if the strategy chooses none.
    // `batch` are the rows that are new to the tree.
    std::unique_ptr<NodeDecider> (*make_decider)(const Tree& tree, const TreeContext& context,
                                                 const std::vector<std::int32_t>& batch,
                                                 UpdateReport& report);
};

// Throws std::invalid_argument if no strategy has this name.
const Strategy& strategy_named(const std::string& name);

}  // namespace evergrow
