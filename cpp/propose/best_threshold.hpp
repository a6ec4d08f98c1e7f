// The best of several splits by a threshold.
//
// A split sends the samples right whose value is above the threshold. The caller provides the
// values: a feature, or the dot product of each sample and a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/proposer.hpp"

namespace evergrow {

class BestThreshold {
  public:
    BestThreshold(const SplitRules& rules, const EntropyTable& n_log_n)
        : min_side_(rules.min_samples_leaf), min_gain_(rules.min_gain), n_log_n_(n_log_n) {}

    // Starts a node; false if it has too few samples or a single class.
    bool start(const NodeSamples& node);

    // Sets the threshold at this share of the interval of thresholds that leave enough samples on
    // both sides; false if the interval is empty. Every threshold in it is valid, and outliers do
    // not stretch it.
    bool place_threshold(const float* values, double share, float* threshold);

    // Keeps the split if it leaves enough samples on both sides and its gain is higher than that of
    // all earlier ones. Returns whether it was kept.
    bool offer(const float* values, float threshold);

    // Whether the gain of the best split is above the minimum.
    bool found() const;
    bool goes_right(std::size_t row) const { return right_[row] != 0; }

  private:
    float smallest(const float* values, std::size_t rank);
    float largest(const float* values, std::size_t rank);

    const std::int32_t min_side_;
    const double min_gain_;
    const EntropyTable& n_log_n_;
    const std::vector<ClassRange>* ranges_ = nullptr;
    std::size_t n_rows_ = 0;
    bool any_ = false;
    std::int64_t highest_ = 0;                 // n * gain
    std::vector<std::int32_t> all_, n_right_;  // per class
    std::vector<std::uint8_t> right_;          // per row, of the best split
    std::vector<float> ranked_;
};

}  // namespace evergrow
