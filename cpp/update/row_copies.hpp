// Which means of a tree are copies of given rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "samples/samples.hpp"

namespace evergrow {

// Where rows cannot be referred to, a class with one sample at a node has a copy of it there, in
// half precision. By a 64-bit hash: a mean that shares it by chance would only be forgotten too.
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
