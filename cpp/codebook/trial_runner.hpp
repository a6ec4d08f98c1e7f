// Random tests for one node of a clustering tree [Moosmann2006 Sec. 2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codebook/descriptors.hpp"
#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "score/information_gain.hpp"

namespace evergrow {

struct WordRules {
    bool supervised = true;
    std::size_t max_trials = 1;  // T_max
    double min_score = 0.5;      // S_min
    std::size_t max_words = 0;   // leaves per tree after pruning; 0 for no limit
    double min_gain = 0.0;       // in nats per descriptor of the tree
    bool stop_early = false;     // whether to not split below min_gain instead of pruning later
};

// A test of one feature.
struct Test {
    std::int32_t feature = 0;
    float threshold = 0;
    double score = 0;
    // n times the information gain in the fixed point of EntropyTable: about the class, or without
    // supervision the entropy of the two sides.
    std::int64_t gain = 0;
};

// The gain of a test in nats per row of the tree.
inline double gain_per_row(std::int64_t gain, std::size_t n_rows) {
    return static_cast<double>(gain) / (EntropyTable::kOne * static_cast<double>(n_rows));
}

class TrialRunner {
  public:
    TrialRunner(const Descriptors& descriptors, const WordRules& rules,
                const EntropyTable& n_log_n);

    // Draws features and thresholds until a test has a score of min_score, at most max_trials
    // times. The rows must be sorted by class. False if no test divides them, or if they are too
    // few or of one class.
    bool find(const std::int32_t* rows, std::size_t n_rows, Stream stream, const StopFlag& stop);

    const Test& best() const { return best_; }

  private:
    bool start(const std::int32_t* rows, std::size_t n_rows);
    void start_round();
    bool read(std::int32_t feature, double share, float* threshold);
    Test score(std::int32_t feature, float threshold);

    const Descriptors& descriptors_;
    const WordRules& rules_;
    const EntropyTable& n_log_n_;
    Test best_;

    const std::int32_t* rows_ = nullptr;
    std::size_t n_rows_ = 0;
    std::vector<std::int32_t> class_ends_;
    std::vector<std::int32_t> n_all_, n_right_;  // by class
    std::int64_t class_entropy_ = 0;             // n H_C
    std::vector<float> values_;
    std::vector<std::int32_t> order_, usable_;
    std::size_t n_undrawn_ = 0;
};

}  // namespace evergrow
