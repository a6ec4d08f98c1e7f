// A splitting function: as a node stores it, and as a proposer found it.
//
// Three kinds. The score of a vector c with offset b is b - x.c.
//   ncm     the side of the vector with the lowest score, b = |c|^2 / 2: Eq. (6) of Ristin 2014
//   linear  one vector; right where the score is negative
//   axis    one feature; right where x[feature] > b
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {

enum class SplitKind : std::uint8_t { kNcm = 0, kLinear = 1, kAxis = 2 };

// Where the vector of a centroid lies. A class with one sample at the node is that sample: a
// reference to its row. Any other mean has a slot of half-precision numbers in the tree.
class CentroidSource {
  public:
    static CentroidSource row(std::int32_t row) { return CentroidSource(row); }
    static CentroidSource slot(std::int32_t slot) { return CentroidSource(~slot); }
    static CentroidSource from_code(std::int32_t code) { return CentroidSource(code); }

    bool is_row() const { return code_ >= 0; }
    std::int32_t index() const { return is_row() ? code_ : ~code_; }
    std::int32_t code() const { return code_; }

  private:
    explicit CentroidSource(std::int32_t code) : code_(code) {}
    std::int32_t code_;
};

// One vector of a splitting node.
struct Centroid {
    // No slot has this code: a tree would have to hold 2^31 means.
    static constexpr std::int32_t kNewMean = std::numeric_limits<std::int32_t>::min();

    std::int32_t class_id;  // ncm: whose mean it is; axis: the feature
    std::int32_t source;    // code of CentroidSource; kNewMean until a tree stores it
    float offset;           // ncm: |c|^2 / 2; linear and axis: the threshold
    std::uint8_t side;      // ncm: 0 left, 1 right
    std::uint8_t unused[3];
};

// A split as a proposer found it, its new vectors not yet in any tree.
struct Split {
    std::vector<Centroid> centroids;
    std::vector<std::int32_t> counts;     // ncm: samples each is the mean of
    AlignedVector<std::uint16_t> halves;  // padded vectors, one per centroid; set for new ones

    std::size_t size() const { return centroids.size(); }
};

// Whether all centroids are on one side.
inline bool is_void(const Split& split) {
    return std::all_of(
        split.centroids.begin(), split.centroids.end(),
        [&](const Centroid& centroid) { return centroid.side == split.centroids[0].side; });
}

}  // namespace evergrow
