#include "update/side_counts.hpp"

#include <numeric>

namespace evergrow {

SideCounts::SideCounts(const EntropyTable& n_log_n, const Objective& objective,
                       std::size_t n_classes, std::size_t n_open)
    : n_log_n_(n_log_n),
      n_cells_(2 + n_open),
      counts_(n_classes * n_cells_),
      right_(n_classes),
      all_(n_classes) {
    std::vector<std::int32_t> classes(n_classes);
    std::iota(classes.begin(), classes.end(), 0);
    objective.make_levels(classes, levels_);
}

std::uint8_t SideCounts::assign_side(std::size_t cell) {
    const std::uint8_t side = gain(cell, 1) > gain(cell, 0) ? 1 : 0;
    for (std::size_t at = 0; at < counts_.size(); at += n_cells_)
        counts_[at + side] += counts_[at + cell];
    return side;
}

// The gain of the split over all levels with a cell on this side, without the other open cells.
double SideCounts::gain(std::size_t cell, std::size_t side) {
    const std::int32_t* counts = counts_.data();
    for (std::size_t c = 0; c < all_.size(); ++c, counts += n_cells_) {
        all_[c] = counts[0] + counts[1] + counts[cell];
        right_[c] = counts[1] + (side == 1 ? counts[cell] : 0);
    }
    double sum = 0;
    for (const Level& level : levels_) {
        add_up(level, all_, group_all_);
        add_up(level, right_, group_right_);
        const std::int32_t n = std::accumulate(group_all_.begin(), group_all_.end(), 0);
        sum += scale_of_gain(level, n) *
               static_cast<double>(gain_of_split(n_log_n_, group_all_, group_right_));
    }
    return sum;
}

}  // namespace evergrow
