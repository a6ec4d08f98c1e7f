// The best of many candidates by an objective: Eq. (5) and (6) of Ristin 2015.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/proposer.hpp"
#include "score/colourings.hpp"
#include "score/objective.hpp"
#include "score/row_gain.hpp"

namespace evergrow {

class BestCandidate {
  public:
    BestCandidate(const SplitRules& rules, const EntropyTable& n_log_n)
        : min_gain_(rules.min_gain),
          cost_weight_(rules.cost_weight),
          n_log_n_(n_log_n),
          all_(n_log_n) {}

    // Begins a node whose classes are seen on these levels. The samples scored are sorted by class;
    // class c ends before class_ends[c]. A candidate must leave `min_side` of them on both sides.
    void start(const std::vector<Level>& levels, const std::vector<std::size_t>& class_ends,
               std::size_t min_side);
    // Looks at colourings of one set of centroids; `nearest` is the one of each sample. A candidate
    // must gain enough; equals stay with the first.
    void offer(std::size_t set, std::size_t n_centroids, const std::uint16_t* nearest,
               Colourings& colourings, const StopFlag& stop);

    bool found() const { return found_; }
    std::size_t set() const { return set_; }
    // By centroid: 0 left, 1 right.
    const std::vector<std::uint8_t>& sides() const { return sides_; }

  private:
    double cost(std::size_t n_centroids) const {
        return cost_weight_ * static_cast<double>(n_centroids);
    }
    bool may_hold_best(std::size_t n_centroids) const;
    void add_up_levels(std::size_t n_candidates);
    void keep_best(std::size_t set, std::size_t n_centroids, const Colourings& colourings);

    const double min_gain_;
    const double cost_weight_;
    const EntropyTable& n_log_n_;
    std::size_t n_levels_ = 0;
    std::vector<RowGain> gains_;      // one per level
    std::vector<double> scales_;      // one per level
    RowGain all_;                     // counts samples where no level sees all of them
    const RowGain* whole_ = nullptr;  // the one that sees all of them
    std::vector<double> gain_;        // of each candidate, on all levels together
    std::int32_t n_samples_ = 0;
    std::int32_t min_side_ = 0;
    bool found_ = false;
    double highest_ = 0;
    std::size_t set_ = 0;
    std::vector<std::uint8_t> sides_;
};

}  // namespace evergrow
