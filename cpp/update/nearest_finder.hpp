// Nearest centroids of rows at a node that is about to change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "kernels/kernels.hpp"
#include "samples/row_reader.hpp"
#include "tree/tree.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"

namespace evergrow {

// Reads the tree and adds the distances that it computes to the report.
class NearestFinder {
  public:
    NearestFinder(const Tree& tree, const TreeContext& context, UpdateReport& report)
        : tree_(tree), context_(context), report_(report), reader_(context.samples) {}

    // The nearest centroid of each row [Ristin2014 Eq. 2]; the split may have new means. Incomplete
    // if the update was asked to stop.
    NearestCentroids find(const Split& split, const std::vector<std::int32_t>& rows);

    // The same for stored rows of a node, where the split differs from the node at `new_places`.
    // With cached scores most rows need a comparison with the changed centroids only; rows that
    // certainly stay on their side get the index kSameSide.
    NearestCentroids find_changed(std::int32_t node, const Split& split,
                                  const std::vector<std::size_t>& new_places,
                                  const std::vector<std::int32_t>& rows);

  private:
    Centroids unpack(const Split& split);
    const Split& changed_centroids(const Node& node, const Split& split,
                                   const std::vector<std::size_t>& new_places);

    const Tree& tree_;
    const TreeContext& context_;
    UpdateReport& report_;
    RowReader reader_;
    // Buffers, so that small nodes do not allocate memory.
    Split changed_;
    AlignedVector<float> unpacked_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
    std::vector<std::int32_t> unsure_;
    std::vector<std::size_t> unsure_places_;
};

// The training rows in the leaves below a splitting node.
RowsBelow collect_rows_below(const Tree& tree, std::int32_t node);

}  // namespace evergrow
