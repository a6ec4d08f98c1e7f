#include "codebook/trial_runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace evergrow {

TrialRunner::TrialRunner(const Descriptors& descriptors, const WordRules& rules,
                         const EntropyTable& n_log_n)
    : descriptors_(descriptors), rules_(rules), n_log_n_(n_log_n) {}

bool TrialRunner::find(const std::int32_t* rows, std::size_t n_rows, Stream stream,
                       const StopFlag& stop) {
    if (!start(rows, n_rows)) return false;
    bool found = false;
    for (std::size_t n_tried = 0; n_tried < rules_.max_trials && !stop;) {
        if (n_undrawn_ == 0) start_round();
        if (n_undrawn_ == 0) break;
        const std::uint32_t at = stream.below(static_cast<std::uint32_t>(n_undrawn_));
        std::swap(order_[at], order_[--n_undrawn_]);
        const std::int32_t feature = order_[n_undrawn_];
        float threshold = 0;
        if (!read(feature, stream.uniform(), &threshold)) continue;
        usable_.push_back(feature);
        ++n_tried;
        const Test test = score(feature, threshold);
        if (!found || test.score > best_.score) best_ = test;
        found = true;
        if (best_.score >= rules_.min_score) break;
    }
    return found && !stop;
}

bool TrialRunner::start(const std::int32_t* rows, std::size_t n_rows) {
    rows_ = rows;
    n_rows_ = n_rows;
    class_ends_.clear();
    n_all_.clear();
    for (std::size_t i = 0; i < n_rows; ++i) {
        const bool last =
            i + 1 == n_rows || descriptors_.class_of(rows[i]) != descriptors_.class_of(rows[i + 1]);
        if (!last) continue;
        const std::int32_t begin = class_ends_.empty() ? 0 : class_ends_.back();
        class_ends_.push_back(static_cast<std::int32_t>(i) + 1);
        n_all_.push_back(class_ends_.back() - begin);
    }
    if (n_rows < 2 || (rules_.supervised && n_all_.size() < 2)) return false;
    n_right_.resize(n_all_.size());
    class_entropy_ = n_log_n_(static_cast<std::int32_t>(n_rows));
    for (const std::int32_t n : n_all_) class_entropy_ -= n_log_n_(n);
    values_.resize(n_rows);
    usable_.resize(descriptors_.n_features());
    std::iota(usable_.begin(), usable_.end(), 0);
    n_undrawn_ = 0;
    return true;
}

// Features are drawn in rounds, each once per round; constant features are not drawn again.
void TrialRunner::start_round() {
    order_.swap(usable_);
    usable_.clear();
    n_undrawn_ = order_.size();
}

// Reads the feature of all rows and places a threshold; false if the feature is constant.
bool TrialRunner::read(std::int32_t feature, double share, float* threshold) {
    const float* column = descriptors_.column(static_cast<std::size_t>(feature));
    float low = column[rows_[0]], high = low;
    for (std::size_t i = 0; i < n_rows_; ++i) {
        const float value = column[rows_[i]];
        values_[i] = value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    if (!(low < high)) return false;
    const double span = static_cast<double>(high) - static_cast<double>(low);
    *threshold = static_cast<float>(static_cast<double>(low) + share * span);
    // If it were rounded to the largest value, the right side would be empty.
    if (!(*threshold < high))
        *threshold = std::nextafter(high, -std::numeric_limits<float>::infinity());
    return true;
}

Test TrialRunner::score(std::int32_t feature, float threshold) {
    std::int32_t begin = 0;
    for (std::size_t c = 0; c < class_ends_.size(); ++c) {
        std::int32_t count = 0;
        for (std::int32_t i = begin; i < class_ends_[c]; ++i)
            count += values_[static_cast<std::size_t>(i)] > threshold ? 1 : 0;
        n_right_[c] = count;
        begin = class_ends_[c];
    }
    const auto n = static_cast<std::int32_t>(n_rows_);
    const std::int32_t n_right = std::accumulate(n_right_.begin(), n_right_.end(), 0);
    const std::int64_t side_entropy = n_log_n_(n) - n_log_n_(n_right) - n_log_n_(n - n_right);
    if (!rules_.supervised) {
        const double balance = 2.0 * std::min(n_right, n - n_right) / static_cast<double>(n);
        return Test{feature, threshold, balance, side_entropy};
    }
    // Rounding may make it slightly negative.
    const std::int64_t gain = std::max<std::int64_t>(0, gain_of_split(n_log_n_, n_all_, n_right_));
    const double entropies = static_cast<double>(class_entropy_ + side_entropy);
    return Test{feature, threshold, 2.0 * static_cast<double>(gain) / entropies, gain};
}

}  // namespace evergrow
