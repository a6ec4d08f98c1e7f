#include "score/information_gain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "kernels/gain_kernels.hpp"

namespace evergrow {

EntropyTable::EntropyTable(std::size_t max_samples) {
    if (max_samples > kMaxSamples)
        throw std::invalid_argument("a tree can have at most " + std::to_string(kMaxSamples) +
                                    " samples, got " + std::to_string(max_samples));
    n_log_n_.resize(max_samples + 1);
    for (std::size_t n = 1; n <= max_samples; ++n) {
        const auto x = static_cast<double>(n);
        n_log_n_[n] = static_cast<std::int64_t>(std::floor(x * std::log(x) * kOne + 0.5));
    }
    const std::int32_t n_tabulated =
        static_cast<std::int32_t>(std::min(max_samples, static_cast<std::size_t>(kMaxTabulated)));
    for (std::int32_t n = 0; n <= n_tabulated; ++n)
        for (std::int32_t r = 0; r <= n; ++r)
            split_terms_.push_back((*this)(r) + (*this)(n - r) - (*this)(n));
    split_terms_.resize(split_terms_.size() + kSplitTermsPadding);
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
    total_.assign(table.n_centroids, 0);
    spread_.clear();
    for (std::size_t c = 0; c < table.n_classes; ++c) {
        const std::int32_t* counts = table.of_class(c);
        std::int32_t n = 0;
        std::size_t n_reached = 0;
        for (std::size_t j = 0; j < table.n_centroids; ++j) {
            total_[j] += counts[j];
            n += counts[j];
            n_reached += counts[j] != 0 ? 1 : 0;
        }
        if (n_reached > 1) spread_.push_back(Spread{counts, n});
    }
    n_samples_ = std::accumulate(total_.begin(), total_.end(), 0);
}

void BatchGain::score(const SideAssignments& assignments, const StopFlag& stop) {
    const std::size_t n = assignments.size();
    right_.resize(n);
    score_.resize(n);
    std::fill(score_.begin(), score_.end(), n_log_n_(n_samples_));
    for (const Spread& spread : spread_) {
        if (stop) return;
        add_class(spread, assignments);
    }
    assignments.count_right(total_.data(), right_.data());
    for (std::size_t i = 0; i < n; ++i)
        score_[i] -= n_log_n_(right_[i]) + n_log_n_(n_samples_ - right_[i]);
}

void BatchGain::add_class(const Spread& spread, const SideAssignments& assignments) {
    assignments.count_right(spread.counts, right_.data());
    const std::size_t n = assignments.size();
    const std::int32_t* right = right_.data();
    std::int64_t* score = score_.data();
    if (spread.n <= EntropyTable::kMaxTabulated) {
        const std::int64_t* split_terms = n_log_n_.split_terms(spread.n);
        for (std::size_t i = 0; i < n; ++i) score[i] += split_terms[right[i]];
        return;
    }
    const std::int64_t whole = n_log_n_(spread.n);
    for (std::size_t i = 0; i < n; ++i)
        score[i] += n_log_n_(right[i]) + n_log_n_(spread.n - right[i]) - whole;
}

void GainScorer::keep_best(const SideAssignments& assignments, std::int32_t min_side) {
    bool improved = false;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < assignments.size(); ++i) {
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
        best_.sides[j] = assignments.goes_right(winner, j) ? 1 : 0;
}

const BestAssignment& GainScorer::best(const CountTable& table, SideAssignments& assignments,
                                       std::int32_t min_side, const StopFlag& stop) {
    best_.found = false;
    best_.sides.resize(table.n_centroids);
    gain_.start(table);
    while (!stop && assignments.next_batch()) {
        gain_.score(assignments, stop);
        keep_best(assignments, min_side);
    }
    if (stop) best_.found = false;
    if (best_.found) best_.gain = gain_in_nats(highest_, gain_.n_samples());
    return best_;
}

}  // namespace evergrow
