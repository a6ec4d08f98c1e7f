// Recognises means that are copies of given rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "samples/samples.hpp"

namespace evergrow {

// Where centroids cannot reference rows, the mean of a single sample is a copy of it in half
// precision. Compares 64-bit hashes; on a collision an unrelated mean would be removed as well.
class RowCopies {
  public:
    RowCopies(const Samples& samples, const std::vector<std::int32_t>& rows);

    bool holds(const std::uint16_t* mean) const {
        return !hashes_.empty() && hashes_.count(hash(mean)) != 0;
    }

  private:
    std::uint64_t hash(const std::uint16_t* mean) const;

    std::size_t width_;
    std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace evergrow
