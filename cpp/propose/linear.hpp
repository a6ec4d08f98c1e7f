// Finds a split by a plane: the random direction and threshold with the highest gain
// [Ristin2014 Eq. 3].
#pragma once

#include <cstddef>
#include <vector>

#include "propose/best_threshold.hpp"
#include "propose/projections.hpp"
#include "propose/proposer.hpp"

namespace evergrow {

class LinearProposer final : public Proposer {
  public:
    LinearProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n)
        : n_features_(rows.n_features()),
          n_candidates_(rules.n_candidates),
          best_(rules, n_log_n),
          projections_(rows) {}

    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) override;
    bool goes_right(std::size_t row) const override { return best_.goes_right(row); }

  private:
    void draw_directions(std::size_t count, Stream& stream);
    void try_directions(const StopFlag& stop);

    const std::size_t n_features_;
    const std::size_t n_candidates_;
    BestThreshold best_;
    Projections projections_;
    std::vector<double> shares_;  // positions of the thresholds
};

}  // namespace evergrow
