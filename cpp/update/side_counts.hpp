// The side of a new centroid by the gain of the split [Ristin2014 Eq. 8].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "score/information_gain.hpp"
#include "score/objective.hpp"

namespace evergrow {

// Samples per class in cells: cell 0 is the left side, cell 1 the right one, and each further cell
// holds the samples that are nearest to one centroid whose side is still open.
class SideCounts {
  public:
    SideCounts(const EntropyTable& n_log_n, const Objective& objective, std::size_t n_classes,
               std::size_t n_open);

    void add(std::int32_t class_id, std::size_t cell) {
        ++counts_[static_cast<std::size_t>(class_id) * n_cells_ + cell];
    }
    // The side on which the samples of an open cell gain more, the left one if both gain the same.
    // From then on they count there.
    std::uint8_t assign_side(std::size_t cell);

  private:
    double gain(std::size_t cell, std::size_t side);

    const EntropyTable& n_log_n_;
    std::size_t n_cells_;
    std::vector<std::int32_t> counts_;  // n_classes x n_cells
    std::vector<Level> levels_;
    std::vector<std::int32_t> right_, all_;              // by class
    std::vector<std::int32_t> group_right_, group_all_;  // by group of a level
};

}  // namespace evergrow
