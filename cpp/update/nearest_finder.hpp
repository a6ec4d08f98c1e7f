// The nearest centroid of rows where a node is about to change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "kernels/kernels.hpp"
#include "samples/row_view.hpp"
#include "tree/tree.hpp"
#include "update/node_edit.hpp"
#include "update/plan.hpp"
#include "update/tree_context.hpp"

namespace evergrow {

// Reads the tree; counts the distances it computes in the report.
class NearestFinder {
  public:
    NearestFinder(const Tree& tree, const TreeContext& context, UpdateReport& report)
        : tree_(tree), context_(context), report_(report), reader_(context.samples) {}

    // The nearest centroid of a split, new means included [Ristin2014 Eq. 2]. Incomplete if the
    // update was asked to stop.
    NearestCentroids find(const Split& split, const std::vector<std::int32_t>& rows);

    // The same for stored rows of a node whose centroids at `new_places` differ from those of the
    // split. Cached scores show for most rows that they stay on their side (kSameSide) after a
    // comparison with the changed centroids alone.
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

// The rows that the leaves below a splitting node hold.
StoredRows collect_stored_rows(const Tree& tree, std::int32_t node);

}  // namespace evergrow
