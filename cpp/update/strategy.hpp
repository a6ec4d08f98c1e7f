// The ways a tree takes new samples: Sec. 4 of Ristin 2014. One file each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace evergrow {

class TreeUpdate;

struct Strategy {
    const char* name;
    // Leaves that changed are offered to the grower, and leaves that became too small are cut.
    bool grows;
    // Centroids change, so the scores of stored rows are worth keeping.
    bool keeps_scores;
    // What happens at a chosen splitting node that samples reach; null where none are chosen.
    // `arrivals` are sorted by class and not yet counted at the node. False if the node is now a
    // leaf that holds the arrivals and the pass ends there.
    bool (*at_chosen)(TreeUpdate& update, std::int32_t node, std::uint64_t key,
                      const std::vector<std::int32_t>& arrivals);
};

extern const Strategy kUpdateLeafStatistics;
extern const Strategy kIncrementallyGrowTree;
extern const Strategy kRetrainSubtree;
extern const Strategy kReuseSubtree;

// Throws std::invalid_argument if there is none of this name.
const Strategy& strategy_named(const std::string& name);

}  // namespace evergrow
