// Every update strategy, one line each.
#include <stdexcept>

#include "update/rust.hpp"
#include "update/strategy.hpp"

namespace evergrow {
namespace {

// Retrain subtree (RTST): the topmost chosen nodes that new samples reach become leaves that hold
// all rows of their subtree, and grow again.
class RtstDecider final : public NodeDecider {
  public:
    NodeEdit decide(const NodeVisit&) override { return CutNode{}; }
};

std::unique_ptr<NodeDecider> make_rtst(const Tree&, const TreeContext&,
                                       const std::vector<std::int32_t>&, UpdateReport&) {
    return std::make_unique<RtstDecider>();
}

// A NodeDecider returns an edit and changes nothing itself. A new kind of edit is also a member of
// NodeEdit, a case of TreePass::visit and a function of TreeEditor.
constexpr Strategy kTable[] = {
    // name, grows, caches_scores, make_decider
    {"uls", false, false, nullptr},    // update leaf statistics: only leaves count new samples
    {"igt", true, false, nullptr},     // incrementally grow tree: leaves may also split
    {"rtst", true, false, make_rtst},  // retrain subtree
    {"rust", true, true, make_rust},   // reuse subtree
};

}  // namespace

const Strategy& strategy_named(const std::string& name) {
    for (const Strategy& strategy : kTable)
        if (name == strategy.name) return strategy;
    throw std::invalid_argument("unknown update strategy '" + name + "'");
}

}  // namespace evergrow
