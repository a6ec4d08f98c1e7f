// A splitting function as a node stores it: Eq. (6) of Ristin 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "aligned.hpp"

namespace evergrow {

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

// A split as a proposer found it: one entry per centroid, means not yet in any tree.
struct NcmSplit {
    // No slot has this code: a tree would have to hold 2^31 means.
    static constexpr std::int32_t kNewMean = std::numeric_limits<std::int32_t>::min();

    std::vector<std::int32_t> classes;
    std::vector<std::int32_t> counts;  // samples it is the mean of
    std::vector<std::int32_t>
        sources;  // codes of CentroidSource; kNewMean until the tree stores it
    std::vector<float> half_norms;
    std::vector<std::uint8_t> sides;      // 0 left, 1 right
    AlignedVector<std::uint16_t> halves;  // padded means, one per centroid; set for new ones

    std::size_t n_centroids() const { return classes.size(); }
};

}  // namespace evergrow
