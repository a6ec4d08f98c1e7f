// Information gain, Eq. (3) of Ristin 2014, of many two-way splits from one table of counts.
//
// With f(n) = n ln n and n samples of which n_c have class c and r_c of those go right,
//
//     n * gain = f(n) - sum_c f(n_c) - f(left) - f(right) + sum_c (f(r_c) + f(n_c - r_c)),
//
// so a split is scored by table look-ups alone. f is kept in fixed point: sums of integers do
// not depend on their order, and splits of equal gain compare equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/parallel_tasks.hpp"
#include "score/colourings.hpp"

namespace evergrow {

class EntropyTable {
  public:
    // 30 fraction bits leave room for n ln n of every n that a 28-bit count can hold.
    static constexpr double kOne = 1073741824.0;
    static constexpr std::size_t kMaxSamples = std::size_t{1} << 28;

    explicit EntropyTable(std::size_t max_samples);

    std::size_t max_samples() const { return n_log_n_.size() - 1; }
    const std::int64_t* data() const { return n_log_n_.data(); }
    std::int64_t operator()(std::int32_t n) const { return n_log_n_[static_cast<std::size_t>(n)]; }

    // f(r) + f(n - r) - f(n) for r = 0 to n, at hand for n up to kMaxHeld: most classes at most
    // nodes are that small, and one look-up is cheaper than three.
    // Padded for kernels that read several entries at once.
    static constexpr std::int32_t kMaxHeld = 48;
    const std::int64_t* of_parts(std::int32_t n) const {
        return of_parts_.data() + static_cast<std::size_t>(n) * static_cast<std::size_t>(n + 1) / 2;
    }

  private:
    std::vector<std::int64_t> n_log_n_;
    std::vector<std::int64_t> of_parts_;  // for n = 0, 1, ..., one after the other
};

// n * gain of one two-way split, in the fixed point of the table: of `all` samples of each class
// `right` go right.
std::int64_t gain_of_split(const EntropyTable& n_log_n, const std::vector<std::int32_t>& all,
                           const std::vector<std::int32_t>& right);
// The gain in nats from n * gain in fixed point.
double gain_in_nats(std::int64_t n_times_gain, std::int32_t n);

// How many samples of each class are nearest to each centroid; a view.
struct CountTable {
    std::size_t n_classes = 0;
    std::size_t n_centroids = 0;
    const std::int32_t* counts = nullptr;  // n_classes x n_centroids

    const std::int32_t* of_class(std::size_t c) const { return counts + c * n_centroids; }
};

// The gain of every colouring in a batch, from one table of counts.
class BatchGain {
  public:
    explicit BatchGain(const EntropyTable& n_log_n) : n_log_n_(n_log_n) {}

    // Of this table from now on; it must stay where it is.
    void start(const CountTable& table);
    // Of the current batch of colourings from now on. Incomplete if `stop` is set on the way.
    void score(const Colourings& colourings, const StopFlag& stop);

    std::int32_t n_samples() const { return n_samples_; }
    // Of a candidate: n * gain in fixed point, and the samples that go right.
    std::int64_t n_times_gain(std::size_t candidate) const { return score_[candidate]; }
    std::int32_t n_right(std::size_t candidate) const { return right_[candidate]; }
    const std::int32_t* n_right() const { return right_.data(); }

  private:
    // A class whose samples are nearest to more than one centroid. Any other stays whole under
    // every colouring: f(r) + f(n - r) is f(n).
    struct Spread {
        const std::int32_t* counts;
        std::int32_t n;
    };
    void add_class(const Spread& spread, const Colourings& colourings);

    const EntropyTable& n_log_n_;
    std::vector<Spread> spread_;
    std::vector<std::int64_t> score_;
    std::vector<std::int32_t> right_;
    std::vector<std::int32_t> total_;  // samples per centroid
    std::int32_t n_samples_ = 0;
};

struct BestColouring {
    bool found = false;
    double gain = 0;
    std::vector<std::uint8_t> sides;  // per centroid: 0 left, 1 right
};

class GainScorer {
  public:
    explicit GainScorer(const EntropyTable& n_log_n) : gain_(n_log_n) {}

    // The colouring of highest gain, the first of equals, among those that leave at least
    // `min_side` samples on both sides. None if `stop` is set on the way.
    const BestColouring& best(const CountTable& table, Colourings& colourings,
                              std::int32_t min_side, const StopFlag& stop);

  private:
    void keep_best(const Colourings& colourings, std::int32_t min_side);

    BatchGain gain_;
    std::int64_t highest_ = 0;
    BestColouring best_;
};

}  // namespace evergrow
