#include "propose/best_threshold.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace evergrow {
namespace {

// Up to this rank a pass with a heap is faster than partitioning a copy.
constexpr std::size_t kHeapRank = 64;

// The value of this rank, from 1, in the given order.
template <class Order>
float value_of_rank(const float* values, std::size_t n, std::size_t rank, Order before,
                    std::vector<float>& space) {
    if (rank <= kHeapRank) {
        space.resize(rank);
        std::partial_sort_copy(values, values + n, space.begin(), space.end(), before);
        return space.back();
    }
    space.assign(values, values + n);
    const auto at = space.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(space.begin(), at, space.end(), before);
    return *at;
}

}  // namespace

bool BestThreshold::start(const NodeSamples& node) {
    if (node.ranges.size() < 2 || node.n_rows < 2 * static_cast<std::size_t>(min_side_))
        return false;
    ranges_ = &node.ranges;
    n_rows_ = node.n_rows;
    any_ = false;
    all_.clear();
    for (const ClassRange& range : node.ranges) all_.push_back(range.size());
    n_right_.resize(all_.size());
    right_.resize(n_rows_);
    return true;
}

float BestThreshold::smallest(const float* values, std::size_t rank) {
    return value_of_rank(values, n_rows_, rank, std::less<float>(), ranked_);
}

float BestThreshold::largest(const float* values, std::size_t rank) {
    return value_of_rank(values, n_rows_, rank, std::greater<float>(), ranked_);
}

bool BestThreshold::place_threshold(const float* values, double share, float* threshold) {
    const auto rank = static_cast<std::size_t>(min_side_);
    const double low = smallest(values, rank);
    const double high = largest(values, rank);
    if (!(low < high)) return false;
    *threshold = static_cast<float>(low + share * (high - low));
    return true;
}

bool BestThreshold::offer(const float* values, float threshold) {
    // A tree stores finite thresholds only.
    if (!std::isfinite(threshold)) return false;
    for (std::size_t c = 0; c < ranges_->size(); ++c) {
        const ClassRange& range = (*ranges_)[c];
        std::int32_t count = 0;
        for (std::int32_t i = range.begin; i < range.end; ++i)
            count += values[i] > threshold ? 1 : 0;
        n_right_[c] = count;
    }
    const std::int32_t n_right = std::accumulate(n_right_.begin(), n_right_.end(), 0);
    const std::int32_t n_left = static_cast<std::int32_t>(n_rows_) - n_right;
    if (n_right < min_side_ || n_left < min_side_) return false;
    const std::int64_t gain = gain_of_split(n_log_n_, all_, n_right_);
    if (any_ && gain <= highest_) return false;
    any_ = true;
    highest_ = gain;
    for (std::size_t i = 0; i < n_rows_; ++i) right_[i] = values[i] > threshold ? 1 : 0;
    return true;
}

bool BestThreshold::found() const {
    return any_ && gain_in_nats(highest_, static_cast<std::int32_t>(n_rows_)) > min_gain_;
}

}  // namespace evergrow
