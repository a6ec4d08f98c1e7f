// Invents a split by a plane: linear SVMs between random halves of the classes, chosen by Eq. (3)
// of Ristin 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "propose/best_threshold.hpp"
#include "propose/linear_svm.hpp"
#include "propose/projections.hpp"
#include "propose/proposer.hpp"
#include "score/colourings.hpp"

namespace evergrow {

class SvmProposer final : public Proposer {
  public:
    // In a larger node SVMs are trained on this many of its samples, drawn at random; the split is
    // still chosen by all of them.
    static constexpr std::size_t kMaxTrained = 2000;

    SvmProposer(const RowView& rows, const SplitRules& rules, const EntropyTable& n_log_n)
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
    Colourings colourings_;
    std::size_t n_trainings_ = 0;         // at this node
    std::vector<std::int32_t> trained_;   // rows
    std::vector<std::int32_t> class_of_;  // per trained row, the place of its class in the node
    std::vector<std::int8_t> labels_;     // per trained row
    std::vector<float> biases_;
};

}  // namespace evergrow
