// Finds a split by a plane: linear SVMs between random halves of the classes
// [GuoReport Sec. 2.1.1], of which the one with the highest gain is taken [Ristin2014 Eq. 3].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/best_threshold.hpp"
#include "propose/linear_svm.hpp"
#include "propose/projections.hpp"
#include "propose/proposer.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class SvmProposer final : public Proposer {
  public:
    // A larger node trains its SVMs on this many random samples; the gain is that of all samples.
    static constexpr std::size_t kMaxTrained = 2000;

    SvmProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n)
        : width_(rows.width()),
          n_candidates_(rules.n_candidates),
          best_(rules, n_log_n),
          projections_(rows),
          svm_(rows, rules.regularization) {}

    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) override;
    bool goes_right(std::size_t row) const override { return best_.goes_right(row); }

  private:
    void draw_trained(const NodeSamples& node, Stream& stream);
    void try_batch(const NodeSamples& node, std::uint64_t key, const StopFlag& stop);
    void train(std::size_t candidate, std::size_t j, std::uint64_t key, const StopFlag& stop);
    void try_planes(const NodeSamples& node, const StopFlag& stop);

    const std::size_t width_;
    const std::size_t n_candidates_;
    BestThreshold best_;
    Projections projections_;
    LinearSvm svm_;
    SideAssignments assignments_;
    std::size_t n_trainings_ = 0;         // SVMs trained at this node
    std::vector<std::int32_t> trained_;   // rows
    std::vector<std::int32_t> class_of_;  // by trained row, the index of its class at the node
    std::vector<std::int8_t> labels_;     // by trained row
    std::vector<float> biases_;
};

}  // namespace evergrow
