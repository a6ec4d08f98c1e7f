// Finds the split of a node by nearest class means with the highest gain [Ristin2014 Eq. 3].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "kernels/kernels.hpp"
#include "propose/class_means.hpp"
#include "propose/proposer.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class NcmProposer final : public Proposer {
  public:
    NcmProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n);

    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) override;
    bool goes_right(std::size_t row) const override {
        return split_.centroids[nearest_[row]].side != 0;
    }
    const float* scores() const override { return scores_.data(); }

  private:
    void draw_classes(std::size_t n_present, Stream& stream);
    void compute_centroids(const NodeSamples& node);
    void find_nearest(const NodeSamples& node, const StopFlag& stop);
    CountTable count(const NodeSamples& node);

    const std::size_t width_;
    const SplitRules rules_;
    GainScorer scorer_;
    SideAssignments assignments_;
    ClassMeans class_means_;
    RowReader reader_;
    std::vector<std::int32_t> drawn_;
    std::vector<std::uint16_t> nearest_;
    std::vector<std::int32_t> counts_;
    std::vector<float> scores_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
    AlignedVector<float> means_;
};

}  // namespace evergrow
