// The subsets of class means that a regularised node tries [Ristin2015 Sec. 3.2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/random_stream.hpp"

namespace evergrow {

class Subsets {
  public:
    // All subsets with 2 to `max_size` of n >= 2 elements, if there are at most `max_count`, by
    // size and then in lexicographic order. Otherwise `max_count` random subsets of uniform size,
    // each from its own stream; a single subset has the maximum size.
    void draw(std::size_t n, std::size_t max_size, std::size_t max_count, std::uint64_t key);

    std::size_t size() const { return begins_.size() - 1; }
    // The members of a subset, sorted.
    std::size_t size_of(std::size_t set) const { return begins_[set + 1] - begins_[set]; }
    const std::int32_t* members(std::size_t set) const { return members_.data() + begins_[set]; }

  private:
    void enumerate(std::size_t n, std::size_t size);
    void draw_one(std::size_t min_size, std::size_t max_size, Stream stream);

    std::vector<std::int32_t> members_;
    std::vector<std::size_t> begins_;
    std::vector<std::int32_t> order_;  // all elements; sorted between two draws
    std::vector<std::size_t> swaps_;
};

}  // namespace evergrow
