#include "update/strategy.hpp"

#include <stdexcept>

namespace evergrow {

const Strategy& strategy_named(const std::string& name) {
    for (const Strategy* strategy :
         {&kUpdateLeafStatistics, &kIncrementallyGrowTree, &kRetrainSubtree, &kReuseSubtree})
        if (name == strategy->name) return *strategy;
    throw std::invalid_argument("there is no update strategy named '" + name + "'");
}

}  // namespace evergrow
