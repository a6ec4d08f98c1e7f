#include "propose/best_candidate.hpp"

#include <algorithm>
#include <limits>

namespace evergrow {

void BestCandidate::start(const std::vector<Level>& levels,
                          const std::vector<std::size_t>& class_ends, std::size_t min_side) {
    n_levels_ = levels.size();
    min_side_ = static_cast<std::int32_t>(min_side);
    n_samples_ = static_cast<std::int32_t>(class_ends.back());
    found_ = false;
    while (gains_.size() < n_levels_) gains_.emplace_back(n_log_n_);
    scales_.resize(n_levels_);
    whole_ = &all_;
    for (std::size_t l = 0; l < n_levels_; ++l) {
        gains_[l].start(levels[l], class_ends);
        scales_[l] = scale_of_gain(levels[l], gains_[l].n_samples());
        if (gains_[l].n_samples() == n_samples_) whole_ = &gains_[l];
    }
    if (whole_ == &all_) all_.start_counting(class_ends.back());
}

void BestCandidate::offer(std::size_t set, std::size_t n_centroids, const std::uint16_t* nearest,
                          SideAssignments& assignments, const StopFlag& stop) {
    while (!stop && assignments.next_batch()) {
        for (std::size_t l = 0; l < n_levels_; ++l) gains_[l].score(nearest, assignments);
        if (whole_ == &all_) all_.score(nearest, assignments);
        if (may_contain_best(n_centroids)) keep_best(set, n_centroids, assignments);
    }
}

// An upper bound from the highest gain of each level, which rules out most sets. Rounding is
// monotonic, so the bound holds.
bool BestCandidate::may_contain_best(std::size_t n_centroids) const {
    double gain = 0;
    for (std::size_t l = 0; l < n_levels_; ++l)
        gain += scales_[l] * static_cast<double>(gains_[l].highest());
    return gain > min_gain_ && !(found_ && gain - cost(n_centroids) <= highest_);
}

// The gain of a candidate that is not a valid split is minus infinity.
void BestCandidate::add_up_levels(std::size_t n_candidates) {
    const std::int32_t* n_right = whole_->n_right();
    const std::int32_t most = n_samples_ - min_side_;
    gain_.resize(n_candidates);
    for (std::size_t i = 0; i < n_candidates; ++i) {
        double gain = 0;
        for (std::size_t l = 0; l < n_levels_; ++l)
            gain += scales_[l] * static_cast<double>(gains_[l].n_times_gain()[i]);
        const bool is_split = n_right[i] >= min_side_ && n_right[i] <= most;
        gain_[i] = is_split ? gain : -std::numeric_limits<double>::infinity();
    }
}

void BestCandidate::keep_best(std::size_t set, std::size_t n_centroids,
                              const SideAssignments& assignments) {
    const double own_cost = cost(n_centroids);
    add_up_levels(assignments.size());
    const double highest_gain = *std::max_element(gain_.begin(), gain_.end());
    const double score = highest_gain - own_cost;
    if (!(highest_gain > min_gain_) || (found_ && score <= highest_)) return;
    found_ = true;
    highest_ = score;
    // Subtracting the cost may round different gains to the same score; the first of ties wins.
    const auto winner = static_cast<std::size_t>(
        std::find_if(gain_.begin(), gain_.end(),
                     [&](double gain) { return gain > min_gain_ && gain - own_cost == score; }) -
        gain_.begin());
    set_ = set;
    sides_.resize(n_centroids);
    for (std::size_t j = 0; j < n_centroids; ++j)
        sides_[j] = assignments.goes_right(winner, j) ? 1 : 0;
}

}  // namespace evergrow
