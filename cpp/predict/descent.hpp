// The descent of rows from the root to the leaves of trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "tree/forest.hpp"
#include "tree/router.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Takes blocks of rows to the leaves of trees; owns the buffers for it.
class Descent {
  public:
    explicit Descent(const Forest& forest)
        : samples_(*forest.samples), width_(samples_.width()), router_(samples_) {}

    // Sets the leaf of each row, and adds the distances computed for it to `comparisons` if that is
    // not null. Returns the indices of the rows ordered by leaf, valid until the next call.
    const std::vector<std::uint32_t>& run(const Tree& tree, const AlignedVector<float>& rows,
                                          std::size_t n_rows, std::int32_t* leaf,
                                          std::uint64_t* comparisons);

  private:
    // Rows that have reached a node: [begin, end) of order_.
    struct Group {
        std::int32_t node;
        std::size_t begin, end;
    };

    std::size_t route(const Tree& tree, const Group& group);

    const Samples& samples_;
    const std::size_t width_;
    Router router_;
    const float* rows_ = nullptr;
    std::vector<Group> pending_;
    std::vector<std::uint32_t> order_, moved_;
    std::vector<std::uint8_t> right_;
    std::vector<const float*> row_vectors_;
};

}  // namespace evergrow
