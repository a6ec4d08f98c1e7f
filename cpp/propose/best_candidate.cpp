#include "best_candidate.hpp"

namespace evergrow {

void BestCandidate::start(const std::vector<Level>& levels, std::size_t n_samples) {
    levels_ = &levels;
    n_samples_ = static_cast<std::int32_t>(n_samples);
    found_ = false;
    while (gains_.size() < levels.size()) gains_.emplace_back(n_log_n_);
    by_group_.resize(gains_.size());
    scales_.resize(levels.size());
}

void BestCandidate::offer(std::size_t set, const CountTable& table, Colourings& colourings,
                          const StopFlag& stop) {
    const BatchGain* whole = nullptr;
    for (std::size_t l = 0; l < levels_->size(); ++l) {
        const Level& level = (*levels_)[l];
        const std::int32_t* counts = table.counts;
        if (!level.is_plain()) {
            add_up(level, table.counts, table.n_centroids, by_group_[l]);
            counts = by_group_[l].data();
        }
        gains_[l].start(CountTable{level.n_groups, table.n_centroids, counts});
        scales_[l] = scale_of_gain(level, gains_[l].n_samples());
        if (gains_[l].n_samples() == n_samples_) whole = &gains_[l];
    }
    if (whole == nullptr) add_up_centroids(table);
    while (!stop && colourings.next_batch()) {
        for (std::size_t l = 0; l < levels_->size(); ++l) gains_[l].score(colourings, stop);
        if (whole == nullptr) {
            n_right_.resize(colourings.size());
            colourings.count_right(total_.data(), n_right_.data());
        }
        const std::int32_t* n_right = whole == nullptr ? n_right_.data() : whole->n_right();
        if (!stop) keep_best(set, table.n_centroids, n_right, colourings);
    }
}

// Samples per centroid, where no level sees all of them.
void BestCandidate::add_up_centroids(const CountTable& table) {
    total_.assign(table.n_centroids, 0);
    for (std::size_t c = 0; c < table.n_classes; ++c)
        for (std::size_t j = 0; j < table.n_centroids; ++j) total_[j] += table.of_class(c)[j];
}

void BestCandidate::keep_best(std::size_t set, std::size_t n_centroids, const std::int32_t* n_right,
                              const Colourings& colourings) {
    const double cost = cost_weight_ * static_cast<double>(n_centroids);
    bool improved = false;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < colourings.size(); ++i) {
        if (n_right[i] < min_side_ || n_samples_ - n_right[i] < min_side_) continue;
        double gain = 0;
        for (std::size_t l = 0; l < scales_.size(); ++l)
            gain += scales_[l] * static_cast<double>(gains_[l].n_times_gain(i));
        if (!(gain > min_gain_)) continue;
        const double score = gain - cost;
        if (found_ && score <= highest_) continue;
        highest_ = score;
        found_ = improved = true;
        winner = i;
    }
    if (!improved) return;
    set_ = set;
    sides_.resize(n_centroids);
    for (std::size_t j = 0; j < n_centroids; ++j)
        sides_[j] = colourings.goes_right(winner, j) ? 1 : 0;
}

}  // namespace evergrow
