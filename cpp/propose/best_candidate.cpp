#include "best_candidate.hpp"

#include <numeric>

namespace evergrow {

void BestCandidate::start(const std::vector<Level>& levels) {
    levels_ = &levels;
    found_ = false;
    while (gains_.size() < levels.size()) gains_.emplace_back(n_log_n_);
    by_group_.resize(gains_.size());
}

void BestCandidate::offer(std::size_t set, const CountTable& table, Colourings& colourings,
                          const StopFlag& stop) {
    for (std::size_t l = 0; l < levels_->size(); ++l) {
        const Level& level = (*levels_)[l];
        const std::int32_t* counts = table.counts;
        if (!level.is_plain()) {
            add_up(level, table.counts, table.n_centroids, by_group_[l]);
            counts = by_group_[l].data();
        }
        gains_[l].start(CountTable{level.n_groups, table.n_centroids, counts});
    }
    total_.assign(table.n_centroids, 0);
    for (std::size_t c = 0; c < table.n_classes; ++c)
        for (std::size_t j = 0; j < table.n_centroids; ++j) total_[j] += table.of_class(c)[j];
    n_samples_ = std::accumulate(total_.begin(), total_.end(), 0);
    while (!stop && colourings.next_batch()) {
        for (std::size_t l = 0; l < levels_->size(); ++l) gains_[l].score(colourings, stop);
        n_right_.resize(colourings.size());
        colourings.count_right(total_.data(), n_right_.data());
        if (!stop) keep_best(set, colourings);
    }
}

double BestCandidate::gain_of(std::size_t candidate) const {
    double gain = 0;
    for (std::size_t l = 0; l < levels_->size(); ++l)
        gain +=
            weighted_gain((*levels_)[l], gains_[l].n_times_gain(candidate), gains_[l].n_samples());
    return gain;
}

void BestCandidate::keep_best(std::size_t set, const Colourings& colourings) {
    const std::size_t k = total_.size();
    const double cost = cost_weight_ * static_cast<double>(k);
    bool improved = false;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < colourings.size(); ++i) {
        if (n_right_[i] < min_side_ || n_samples_ - n_right_[i] < min_side_) continue;
        const double gain = gain_of(i);
        if (!(gain > min_gain_)) continue;
        const double score = gain - cost;
        if (found_ && score <= highest_) continue;
        highest_ = score;
        found_ = improved = true;
        winner = i;
    }
    if (!improved) return;
    set_ = set;
    sides_.resize(k);
    for (std::size_t j = 0; j < k; ++j) sides_[j] = colourings.goes_right(winner, j) ? 1 : 0;
}

}  // namespace evergrow
