#include "gain.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace evergrow {

EntropyTable::EntropyTable(std::size_t max_samples) {
    if (max_samples > kMaxSamples)
        throw std::invalid_argument("a tree holds at most " + std::to_string(kMaxSamples) +
                                    " samples, got " + std::to_string(max_samples));
    n_log_n_.resize(max_samples + 1);
    for (std::size_t n = 1; n <= max_samples; ++n) {
        const auto x = static_cast<double>(n);
        n_log_n_[n] = static_cast<std::int64_t>(std::floor(x * std::log(x) * kOne + 0.5));
    }
}

std::int64_t gain_of_split(const EntropyTable& n_log_n, const std::vector<std::int32_t>& all,
                           const std::vector<std::int32_t>& right) {
    std::int32_t n = 0, n_right = 0;
    std::int64_t gain = 0;
    for (std::size_t c = 0; c < all.size(); ++c) {
        n += all[c];
        n_right += right[c];
        gain += n_log_n(right[c]) + n_log_n(all[c] - right[c]) - n_log_n(all[c]);
    }
    return gain + n_log_n(n) - n_log_n(n_right) - n_log_n(n - n_right);
}

double gain_in_nats(std::int64_t n_times_gain, std::int32_t n) {
    return static_cast<double>(n_times_gain) / (EntropyTable::kOne * static_cast<double>(n));
}

void GainScorer::add_class(const std::int32_t* counts, std::size_t n_centroids,
                           const Colourings& colourings) {
    std::int32_t n_class = 0;
    std::size_t n_reached = 0;
    for (std::size_t j = 0; j < n_centroids; ++j) {
        n_class += counts[j];
        n_reached += counts[j] != 0 ? 1 : 0;
    }
    // Such a class stays whole under every colouring: f(r) + f(n - r) is f(n), a constant that
    // the caller leaves out on both sides.
    if (n_reached < 2) return;
    const std::size_t n = colourings.size();
    colourings.count_right(counts, right_.data());
    const std::int64_t whole = n_log_n_(n_class);
    for (std::size_t i = 0; i < n; ++i)
        score_[i] += n_log_n_(right_[i]) + n_log_n_(n_class - right_[i]) - whole;
}

void GainScorer::score_batch(const CountTable& table, const Colourings& colourings,
                             const StopFlag& stop) {
    score_.assign(colourings.size(), 0);
    right_.resize(colourings.size());
    for (std::size_t c = 0; c < table.n_classes && !stop; ++c)
        add_class(table.of_class(c), table.n_centroids, colourings);
}

void GainScorer::keep_best(const Colourings& colourings, std::int32_t min_side) {
    colourings.count_right(total_.data(), right_.data());
    bool improved = false;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < colourings.size(); ++i) {
        const std::int32_t n_right = right_[i];
        const std::int32_t n_left = n_samples_ - n_right;
        if (n_right < min_side || n_left < min_side) continue;
        const std::int64_t score = score_[i] - n_log_n_(n_left) - n_log_n_(n_right);
        if (best_.found && score <= highest_) continue;
        highest_ = score;
        best_.found = improved = true;
        winner = i;
    }
    if (!improved) return;
    best_.sides.resize(total_.size());
    for (std::size_t j = 0; j < total_.size(); ++j)
        best_.sides[j] = colourings.goes_right(winner, j) ? 1 : 0;
}

const BestColouring& GainScorer::best(const CountTable& table, Colourings& colourings,
                                      std::int32_t min_side, const StopFlag& stop) {
    best_.found = false;
    total_.assign(table.n_centroids, 0);
    for (std::size_t c = 0; c < table.n_classes; ++c)
        for (std::size_t j = 0; j < table.n_centroids; ++j) total_[j] += table.of_class(c)[j];
    n_samples_ = std::accumulate(total_.begin(), total_.end(), 0);
    while (!stop && colourings.next_batch()) {
        score_batch(table, colourings, stop);
        keep_best(colourings, min_side);
    }
    if (stop) best_.found = false;
    if (best_.found) best_.gain = gain_in_nats(highest_ + n_log_n_(n_samples_), n_samples_);
    return best_;
}

}  // namespace evergrow
