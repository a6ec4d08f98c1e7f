// Taking rows down trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "tree/forest.hpp"
#include "tree/router.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// Takes blocks of rows down trees; owns the space this needs.
class Descent {
  public:
    explicit Descent(const Forest& forest)
        : samples_(*forest.samples), width_(samples_.width()), router_(samples_) {}

    // The leaf of each row; adds the distances computed for it to `comparisons` if not null.
    void run(const Tree& tree, const AlignedVector<float>& rows, std::size_t n_rows,
             std::int32_t* leaf, std::uint64_t* comparisons);
    // The rows of the last run, those of one leaf after the other.
    const std::vector<std::uint32_t>& order() const { return order_; }

  private:
    // Rows that have reached a node: places [begin, end) in order_.
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
