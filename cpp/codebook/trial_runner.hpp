// Random tests for one node of a clustering tree, Moosmann 2006, sec. 2.
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
    std::size_t max_words = 0;   // leaves per tree after pruning; 0 for any number
    double min_gain = 0.0;       // nats, averaged over the descriptors of the tree
    bool stop_early = false;     // do not split below min_gain instead of pruning afterwards
};

// The test that a node adopts.
struct Test {
    std::int32_t feature = 0;
    float threshold = 0;
    double score = 0;
    // n times the information that the test gives, in the fixed point of EntropyTable: about the
    // class, or about which descriptor it is when classes are not to be used.
    std::int64_t gain = 0;
};

// What a test tells on average over the rows of a tree, in nats.
inline double gain_per_row(std::int64_t gain, std::size_t n_rows) {
    return static_cast<double>(gain) / (EntropyTable::kOne * static_cast<double>(n_rows));
}

class TrialRunner {
  public:
    TrialRunner(const Descriptors& descriptors, const WordRules& rules,
                const EntropyTable& n_log_n);

    // Draws features and thresholds until a test scores min_score or max_trials are made; the rows
    // are sorted by class. False if no test divides the rows, or if there is nothing to tell apart.
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
    std::vector<std::int32_t> n_all_, n_right_;  // per class
    std::int64_t class_entropy_ = 0;             // n H_C
    std::vector<float> values_;
    std::vector<std::int32_t> order_, usable_;
    std::size_t n_undrawn_ = 0;
};

}  // namespace evergrow
