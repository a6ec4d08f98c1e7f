// One pass of rows through a tree: each node receives its arrivals once, is edited as decided, and
// routes them to its children.
#pragma once

#include <cstdint>
#include <vector>

#include "samples/row_reader.hpp"
#include "tree/router.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"
#include "update/tree_editor.hpp"

namespace evergrow {

class TreePass {
  public:
    TreePass(TreeEditor& editor, const TreeContext& context, UpdateReport& report)
        : editor_(editor),
          context_(context),
          report_(report),
          router_(context.samples),
          reader_(context.samples) {}

    enum class Reach { kArrivals, kAllNodes };  // which nodes are visited

    // Takes rows, sorted by class, from the root to the leaves. `decider` is asked at every
    // splitting node that is visited; null if all of them stay as they are.
    void run(const std::vector<std::int32_t>& rows, Reach reach, NodeDecider* decider);

  private:
    // Rows on their way to a node.
    struct Group {
        std::int32_t node;
        std::uint64_t key;
        std::vector<std::int32_t> arrivals;
    };

    void visit(const Group& group, NodeDecider* decider, std::vector<Group>& pending);
    SideRows route(std::int32_t node, const std::vector<std::int32_t>& rows);
    SideRows route_by_nearest(std::int32_t node, const Split& split,
                              const std::vector<std::int32_t>& rows,
                              const NearestCentroids& nearest);

    TreeEditor& editor_;
    const TreeContext& context_;
    UpdateReport& report_;
    Router router_;
    RowReader reader_;
    std::vector<std::uint8_t> goes_right_;  // buffers for a block of rows
    std::vector<float> scores_;
};

}  // namespace evergrow
