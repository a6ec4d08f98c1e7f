// Finds the NCM split of a node among many subsets of classes [Ristin2015 Sec. 3.2].
//
// The means of all classes at the node, and the scores of all rows with them, are computed once. A
// subset of classes then only needs minima over its columns of scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "propose/best_candidate.hpp"
#include "propose/mean_pool.hpp"
#include "propose/proposer.hpp"
#include "propose/subsets.hpp"
#include "score/objective.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class RegularisedProposer final : public Proposer {
  public:
    RegularisedProposer(const Samples& rows, const SplitRules& rules, const EntropyTable& n_log_n);

    bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) override;
    bool goes_right(std::size_t row) const override {
        return split_.centroids[nearest_[row]].side != 0;
    }
    const float* scores() const override { return lowest_.data(); }

  private:
    bool can_gain(const NodeSamples& node);
    void score_all(const NodeSamples& node);
    void draw_scored(const NodeSamples& node, Stream& stream);
    bool find_split(const NodeSamples& node, const StopFlag& stop);
    void score_sets(std::size_t first, std::size_t n_sets, std::size_t at_once,
                    const StopFlag& stop);
    std::size_t rows_at_once() const;
    void compute_scores(std::size_t begin, std::size_t n, const StopFlag& stop);
    SideAssignments& assignments(std::size_t n_centroids);
    void take_nearest(std::size_t set, std::size_t n, std::uint16_t* nearest, float* lowest);
    void find_nearest(const NodeSamples& node, const StopFlag& stop);

    const std::size_t width_;
    const SplitRules rules_;
    const Objective objective_;
    MeanPool pool_;
    Subsets subsets_;
    // By number of centroids, shared by all subsets of that size at a node.
    std::vector<SideAssignments> assignments_;
    std::vector<std::uint8_t> are_started_;
    std::uint64_t assignment_key_ = 0;
    BestCandidate best_;
    RowReader reader_;
    std::vector<std::int32_t> classes_;
    std::vector<Level> levels_;
    // The rows on which candidates are scored, sorted by class: all rows, or some drawn at random.
    const std::int32_t* scored_ = nullptr;
    std::size_t n_scored_ = 0;
    std::vector<std::int32_t> drawn_;
    std::vector<std::size_t> class_ends_;  // of each class in the scored rows
    // Scores of some of these rows, one column per mean of the pool.
    AlignedVector<float> columns_;
    std::size_t stride_ = 0;
    std::vector<const float*> column_of_;  // by centroid of a subset
    // The nearest centroids of the scored rows, for several subsets.
    std::vector<std::uint16_t> nearest_of_sets_;
    std::size_t rows_per_set_ = 0;
    // The nearest centroid of every row of the node, by the split found, and its score.
    std::vector<std::uint16_t> nearest_;
    std::vector<float> lowest_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
};

}  // namespace evergrow
