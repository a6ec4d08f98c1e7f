// The best of several splits by a threshold, each on values of its own.
//
// A split sends right the samples whose value is above the threshold. A value is a feature or the
// product of the sample and a vector; how it came about is the caller's business.
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

    // Begins a node; false if its samples are too few or of one class.
    bool start(const NodeSamples& node);

    // The thresholds that leave enough samples on both sides are an interval, the values' own
    // range less its rarely occupied ends. Sets the threshold at this share of it; false if it is
    // empty. Drawing there spares drawing again, and a wild value cannot stretch it.
    bool place(const float* values, double share, float* threshold);

    // Takes the split if it leaves enough samples on both sides and gains more than all before
    // it; equals stay with the first.
    bool offer(const float* values, float threshold);

    // Whether the best split gains enough to be made.
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
