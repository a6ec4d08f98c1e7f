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

void BatchGain::start(const CountTable& table) {
    table_ = table;
    total_.assign(table.n_centroids, 0);
    for (std::size_t c = 0; c < table.n_classes; ++c)
        for (std::size_t j = 0; j < table.n_centroids; ++j) total_[j] += table.of_class(c)[j];
    n_samples_ = std::accumulate(total_.begin(), total_.end(), 0);
}

void BatchGain::score(const Colourings& colourings, const StopFlag& stop) {
    score_.assign(colourings.size(), n_log_n_(n_samples_));
    right_.resize(colourings.size());
    for (std::size_t c = 0; c < table_.n_classes && !stop; ++c)
        add_class(table_.of_class(c), colourings);
    colourings.count_right(total_.data(), right_.data());
    for (std::size_t i = 0; i < colourings.size(); ++i)
        score_[i] -= n_log_n_(right_[i]) + n_log_n_(n_samples_ - right_[i]);
}

void BatchGain::add_class(const std::int32_t* counts, const Colourings& colourings) {
    std::int32_t n_class = 0;
    std::size_t n_reached = 0;
    for (std::size_t j = 0; j < table_.n_centroids; ++j) {
        n_class += counts[j];
        n_reached += counts[j] != 0 ? 1 : 0;
    }
    // Such a class stays whole under every colouring: f(r) + f(n - r) is f(n).
    if (n_reached < 2) return;
    colourings.count_right(counts, right_.data());
    const std::int64_t whole = n_log_n_(n_class);
    for (std::size_t i = 0; i < colourings.size(); ++i)
        score_[i] += n_log_n_(right_[i]) + n_log_n_(n_class - right_[i]) - whole;
}

void GainScorer::keep_best(const Colourings& colourings, std::int32_t min_side) {
    bool improved = false;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < colourings.size(); ++i) {
        const std::int32_t n_right = gain_.n_right(i);
        const std::int32_t n_left = gain_.n_samples() - n_right;
        if (n_right < min_side || n_left < min_side) continue;
        if (best_.found && gain_.n_times_gain(i) <= highest_) continue;
        highest_ = gain_.n_times_gain(i);
        best_.found = improved = true;
        winner = i;
    }
    if (!improved) return;
    for (std::size_t j = 0; j < best_.sides.size(); ++j)
        best_.sides[j] = colourings.goes_right(winner, j) ? 1 : 0;
}

const BestColouring& GainScorer::best(const CountTable& table, Colourings& colourings,
                                      std::int32_t min_side, const StopFlag& stop) {
    best_.found = false;
    best_.sides.resize(table.n_centroids);
    gain_.start(table);
    while (!stop && colourings.next_batch()) {
        gain_.score(colourings, stop);
        keep_best(colourings, min_side);
    }
    if (stop) best_.found = false;
    if (best_.found) best_.gain = gain_in_nats(highest_, gain_.n_samples());
    return best_;
}

}  // namespace evergrow
