// Invents the NCM split of a node among many sets of classes: Sec. 3.2 of Ristin 2015.
//
// The means of all classes at the node, and the distances to them, are computed once; a set of
// classes then only takes minima over its columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "propose/best_candidate.hpp"
#include "propose/mean_pool.hpp"
#include "propose/proposer.hpp"
#include "propose/subsets.hpp"
#include "score/colourings.hpp"
#include "score/objective.hpp"

namespace evergrow {

class RegularisedProposer final : public Proposer {
  public:
    RegularisedProposer(const RowView& rows, const SplitRules& rules, const EntropyTable& n_log_n);

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
    void measure(std::size_t begin, std::size_t n, const StopFlag& stop);
    Colourings& colourings(std::size_t n_centroids);
    void take_nearest(std::size_t set, std::size_t n, std::uint16_t* nearest, float* lowest);
    void assign(const NodeSamples& node, const StopFlag& stop);

    const std::size_t width_;
    const SplitRules rules_;
    const Objective objective_;
    MeanPool pool_;
    Subsets subsets_;
    // By number of centroids, the same for all sets of a node; drawn at the first of them.
    std::vector<Colourings> colourings_;
    std::vector<std::uint8_t> are_started_;
    std::uint64_t colouring_key_ = 0;
    BestCandidate best_;
    RowReader reader_;
    std::vector<std::int32_t> classes_;
    std::vector<Level> levels_;
    // The rows that candidates are scored on: all, or some drawn, in the order of their classes.
    const std::int32_t* scored_ = nullptr;
    std::size_t n_scored_ = 0;
    std::vector<std::int32_t> drawn_;
    std::vector<std::size_t> class_ends_;  // of each class, among the scored rows
    // Scores of some of them, one column per mean of the pool.
    AlignedVector<float> columns_;
    std::size_t stride_ = 0;
    std::vector<const float*> column_of_;  // of each centroid in a set
    // The nearest centroid of every scored row, of some sets one after the other.
    std::vector<std::uint16_t> nearest_of_sets_;
    std::size_t rows_per_set_ = 0;
    // Of every row of the node, by the split found.
    std::vector<std::uint16_t> nearest_;
    std::vector<float> lowest_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
};

}  // namespace evergrow
