// The best of many candidates: the highest value of the objective [Ristin2015 Eq. 6] minus the cost
// of its centroids [Ristin2015 Eq. 5].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/proposer.hpp"
#include "score/objective.hpp"
#include "score/row_gain.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class BestCandidate {
  public:
    BestCandidate(const SplitRules& rules, const EntropyTable& n_log_n)
        : min_gain_(rules.min_gain),
          cost_weight_(rules.cost_weight),
          n_log_n_(n_log_n),
          all_(n_log_n) {}

    // Starts a node with these levels. The scored samples are sorted by class; those of class c end
    // before class_ends[c]. A candidate must leave `min_side` of them on both sides.
    void start(const std::vector<Level>& levels, const std::vector<std::size_t>& class_ends,
               std::size_t min_side);
    // Scores the assignments of one set of centroids; `nearest` is the nearest centroid of each
    // sample. Keeps the best candidate with enough gain, the first of ties.
    void offer(std::size_t set, std::size_t n_centroids, const std::uint16_t* nearest,
               SideAssignments& assignments, const StopFlag& stop);

    bool found() const { return found_; }
    std::size_t set() const { return set_; }
    // By centroid: 0 for left, 1 for right.
    const std::vector<std::uint8_t>& sides() const { return sides_; }

  private:
    double cost(std::size_t n_centroids) const {
        return cost_weight_ * static_cast<double>(n_centroids);
    }
    bool may_contain_best(std::size_t n_centroids) const;
    void add_up_levels(std::size_t n_candidates);
    void keep_best(std::size_t set, std::size_t n_centroids, const SideAssignments& assignments);

    const double min_gain_;
    const double cost_weight_;
    const EntropyTable& n_log_n_;
    std::size_t n_levels_ = 0;
    std::vector<RowGain> gains_;      // one per level
    std::vector<double> scales_;      // one per level
    RowGain all_;                     // counts samples if no level counts all of them
    const RowGain* whole_ = nullptr;  // the one that counts all samples
    std::vector<double> gain_;        // of each candidate, on all levels together
    std::int32_t n_samples_ = 0;
    std::int32_t min_side_ = 0;
    bool found_ = false;
    double highest_ = 0;
    std::size_t set_ = 0;
    std::vector<std::uint8_t> sides_;
};

}  // namespace evergrow
