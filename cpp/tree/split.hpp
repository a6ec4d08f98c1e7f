// The splitting function of a node, as it is stored and as a proposer found it.
//
// There are three kinds. The score of a vector c with offset b is b - x.c.
//   ncm     the side of the vector with the lowest score, b = |c|^2 / 2 [Ristin2014 Eq. 6]
//   linear  one vector; right if the score is negative
//   axis    one feature; right if x[feature] > b
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arrays/aligned.hpp"

namespace evergrow {

enum class SplitKind : std::uint8_t { kNcm = 0, kLinear = 1, kAxis = 2 };

// Where the vector of a centroid is stored. The mean of a single sample is a reference to its row;
// other vectors have a slot in the tree, in its vector format.
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
    // Not the code of any slot: a tree cannot hold 2^31 means.
    static constexpr std::int32_t kNewMean = std::numeric_limits<std::int32_t>::min();

    std::int32_t class_id;  // ncm: the class of the mean; axis: the feature
    std::int32_t source;    // code of CentroidSource; kNewMean until a tree stores it
    float offset;           // ncm: |c|^2 / 2; linear and axis: the threshold
    std::uint8_t side;      // ncm: 0 left, 1 right
    std::int8_t exponent;   // of the stored vector, see VectorFormat
    std::uint8_t unused[2];
};

// A split as a proposer found it; its new vectors are not in a tree yet.
struct Split {
    std::vector<Centroid> centroids;
    std::vector<std::int32_t> counts;     // ncm: number of samples of each mean
    AlignedVector<std::uint8_t> vectors;  // one slot per centroid; set for new vectors

    std::size_t size() const { return centroids.size(); }
};

// Whether all centroids are on one side.
inline bool is_one_sided(const Split& split) {
    return std::all_of(
        split.centroids.begin(), split.centroids.end(),
        [&](const Centroid& centroid) { return centroid.side == split.centroids[0].side; });
}

}  // namespace evergrow
