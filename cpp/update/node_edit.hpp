// What an update decides about a splitting node, as values that the `TreeEditor` applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tree/split.hpp"

namespace evergrow {

// New samples that have reached a splitting node; its counts do not include them yet.
struct NodeVisit {
    std::int32_t node;
    std::uint64_t key;                          // of the node's random numbers
    const std::vector<std::int32_t>& arrivals;  // rows, sorted by class
};

// The centroid with the lowest score for each of some rows, and that score.
struct NearestCentroids {
    std::vector<std::uint16_t> index;
    std::vector<float> scores;
};

// Index for a row that stays on its side because no changed centroid is nearest to it. Its score is
// undefined.
constexpr std::uint16_t kSameSide = 0xFFFF;

// The training rows in the leaves below a splitting node, from left to right.
struct RowsBelow {
    std::vector<std::int32_t> rows;
    std::size_t n_left = 0;  // rows below the left child
};

struct KeepNode {};

// The node becomes a leaf that holds its stored rows and the arrivals.
struct CutNode {};

// The node gets other centroids, and stored rows whose nearest centroid is on the other side move
// there.
struct ReplaceCentroids {
    Split split;
    RowsBelow below;
    NearestCentroids nearest;  // of the rows below
    // Of the arrivals, if the decision computed it; the pass then does not route them again.
    std::optional<NearestCentroids> nearest_of_arrivals;
};

using NodeEdit = std::variant<KeepNode, CutNode, ReplaceCentroids>;

// Decides about one splitting node at a time, from the root down. It reads the tree but does not
// change it.
class NodeDecider {
  public:
    virtual ~NodeDecider() = default;
    virtual NodeEdit decide(const NodeVisit& visit) = 0;
};

}  // namespace evergrow
