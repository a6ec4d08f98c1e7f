// Sets of class means that a regularised node tries: Sec. 3.2 of Ristin 2015.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/random_stream.hpp"

namespace evergrow {

class Subsets {
  public:
    // All sets of 2 to `max_size` of `n` things when there are at most `max_count`, smaller ones
    // first and then in the order of their members; otherwise that many, drawn, each from a stream
    // of its own and of a size that is uniform; a lone one is of the largest. At least two things.
    void draw(std::size_t n, std::size_t max_size, std::size_t max_count, std::uint64_t key);

    std::size_t size() const { return begins_.size() - 1; }
    // Members of a set, in order.
    std::size_t size_of(std::size_t set) const { return begins_[set + 1] - begins_[set]; }
    const std::int32_t* members(std::size_t set) const { return members_.data() + begins_[set]; }

  private:
    void enumerate(std::size_t n, std::size_t size);
    void draw_one(std::size_t min_size, std::size_t max_size, Stream stream);

    std::vector<std::int32_t> members_;
    std::vector<std::size_t> begins_;
    std::vector<std::int32_t> order_;  // all things; in order between two draws
    std::vector<std::size_t> swaps_;
};

}  // namespace evergrow
