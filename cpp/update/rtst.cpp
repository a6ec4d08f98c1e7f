// Retrain subtree (RTST): the topmost chosen nodes that new samples reach become leaves that hold
// all samples of their subtree, and are grown again.
#include "update/pass.hpp"
#include "update/strategy.hpp"

namespace evergrow {
namespace {

bool retrain(TreeUpdate& update, std::int32_t node, std::uint64_t /*key*/,
             const std::vector<std::int32_t>& arrivals) {
    update.cut(node, arrivals);
    return false;
}

}  // namespace

const Strategy kRetrainSubtree{"rtst", true, false, retrain};

}  // namespace evergrow
