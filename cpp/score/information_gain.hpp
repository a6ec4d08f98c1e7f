// Information gain [Ristin2014 Eq. 3] of many binary splits from one table of counts.
//
// With f(n) = n ln n, and n samples of which n_c have class c and r_c of these go right,
//
//     n * gain = f(n) - sum_c f(n_c) - f(left) - f(right) + sum_c (f(r_c) + f(n_c - r_c)),
//
// so a split is scored by table look-ups. f is stored in fixed point: sums of integers do not
// depend on their order, and splits of equal gain compare equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/parallel_tasks.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class EntropyTable {
  public:
    // With 30 fraction bits n ln n fits into 64 bits for every 28-bit n.
    static constexpr double kOne = 1073741824.0;
    static constexpr std::size_t kMaxSamples = std::size_t{1} << 28;

    explicit EntropyTable(std::size_t max_samples);

    std::size_t max_samples() const { return n_log_n_.size() - 1; }
    const std::int64_t* data() const { return n_log_n_.data(); }
    std::int64_t operator()(std::int32_t n) const { return n_log_n_[static_cast<std::size_t>(n)]; }

    // f(r) + f(n - r) - f(n) for r = 0 to n, for n up to kMaxTabulated. Most classes have that few
    // samples at most nodes, and one look-up is faster than three. Padded for kernels that read
    // several entries at once.
    static constexpr std::int32_t kMaxTabulated = 48;
    const std::int64_t* split_terms(std::int32_t n) const {
        return split_terms_.data() +
               static_cast<std::size_t>(n) * static_cast<std::size_t>(n + 1) / 2;
    }

  private:
    std::vector<std::int64_t> n_log_n_;
    std::vector<std::int64_t> split_terms_;  // for n = 0, 1, ... in sequence
};

// n * gain of one binary split, in the fixed point of the table: `right` of `all` samples of each
// class go right.
std::int64_t gain_of_split(const EntropyTable& n_log_n, const std::vector<std::int32_t>& all,
                           const std::vector<std::int32_t>& right);
// Converts n * gain in fixed point to the gain in nats.
double gain_in_nats(std::int64_t n_times_gain, std::int32_t n);

// A view of how many samples of each class are nearest to each centroid.
struct CountTable {
    std::size_t n_classes = 0;
    std::size_t n_centroids = 0;
    const std::int32_t* counts = nullptr;  // n_classes x n_centroids

    const std::int32_t* of_class(std::size_t c) const { return counts + c * n_centroids; }
};

// Gains of all candidates of a batch, from one table of counts.
class BatchGain {
  public:
    explicit BatchGain(const EntropyTable& n_log_n) : n_log_n_(n_log_n) {}

    // Sets the table, which must stay valid.
    void start(const CountTable& table);
    // Scores the current batch. Incomplete if `stop` is set meanwhile.
    void score(const SideAssignments& assignments, const StopFlag& stop);

    std::int32_t n_samples() const { return n_samples_; }
    // n * gain of a candidate in fixed point, and the samples that it sends right.
    std::int64_t n_times_gain(std::size_t candidate) const { return score_[candidate]; }
    std::int32_t n_right(std::size_t candidate) const { return right_[candidate]; }
    const std::int32_t* n_right() const { return right_.data(); }

  private:
    // A class whose samples are nearest to more than one centroid. No candidate divides any other
    // class, whose f(r) + f(n - r) - f(n) is zero.
    struct Spread {
        const std::int32_t* counts;
        std::int32_t n;
    };
    void add_class(const Spread& spread, const SideAssignments& assignments);

    const EntropyTable& n_log_n_;
    std::vector<Spread> spread_;
    std::vector<std::int64_t> score_;
    std::vector<std::int32_t> right_;
    std::vector<std::int32_t> total_;  // samples per centroid
    std::int32_t n_samples_ = 0;
};

struct BestAssignment {
    bool found = false;
    double gain = 0;
    std::vector<std::uint8_t> sides;  // per centroid: 0 left, 1 right
};

class GainScorer {
  public:
    explicit GainScorer(const EntropyTable& n_log_n) : gain_(n_log_n) {}

    // The candidate with the highest gain, the first of ties, among those with at least `min_side`
    // samples on both sides. None if `stop` is set meanwhile.
    const BestAssignment& best(const CountTable& table, SideAssignments& assignments,
                               std::int32_t min_side, const StopFlag& stop);

  private:
    void keep_best(const SideAssignments& assignments, std::int32_t min_side);

    BatchGain gain_;
    std::int64_t highest_ = 0;
    BestAssignment best_;
};

}  // namespace evergrow
