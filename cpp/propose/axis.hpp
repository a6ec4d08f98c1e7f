// Finds a split by one feature: the random feature and threshold with the highest gain
// [Ristin2014 Eq. 3].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/best_threshold.hpp"
#include "propose/proposer.hpp"

namespace evergrow {

class AxisProposer final : public Proposer {
  public:
    AxisProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n);

    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) override;
    bool goes_right(std::size_t row) const override { return best_.goes_right(row); }

  private:
    void start_round();
    void draw_features(std::size_t count, Stream& stream);
    void read_columns(const NodeSamples& node, const StopFlag& stop);
    std::size_t try_columns(std::size_t n_rows, const StopFlag& stop);

    const std::size_t n_features_;
    const std::size_t n_candidates_;
    BestThreshold best_;
    RowReader reader_;
    // Features are drawn in rounds, each once per round: the first n_undrawn_ of order_ have not
    // been drawn in this round.
    std::vector<std::int32_t> order_;
    std::size_t n_undrawn_ = 0;
    std::vector<std::int32_t> usable_;  // features for the next round
    std::vector<std::int32_t> features_;
    std::vector<double> shares_;  // positions of the thresholds
    std::vector<float> columns_;  // values of the drawn features, feature by feature
};

}  // namespace evergrow
