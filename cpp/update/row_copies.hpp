// Recognises means that are copies of given rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Where centroids cannot reference rows, the mean of a single sample is a copy of it, rounded as
// the tree stores vectors. Compares 64-bit hashes; on a collision, or if two rows are rounded to
// the same vector, the mean of the other one would be removed as well.
class RowCopies {
  public:
    RowCopies(const Samples& samples, const std::vector<std::int32_t>& rows);

    // Whether the vector of a centroid, in a slot of the tree, is such a copy.
    bool holds(const Tree& tree, const Centroid& centroid) const;

  private:
    std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace evergrow
