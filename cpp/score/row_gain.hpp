// The gain of every colouring in a batch, from the nearest centroid of every row.
//
// Where a table of counts serves many candidates of one set of centroids (BatchGain), this serves
// few candidates of each of many sets: filling and adding up a table for each set costs more than
// the look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "score/colourings.hpp"
#include "score/information_gain.hpp"
#include "score/objective.hpp"

namespace evergrow {

class RowGain {
  public:
    explicit RowGain(const EntropyTable& n_log_n) : n_log_n_(n_log_n) {}

    // Of rows sorted by class, of which class c ends before class_ends[c], seen on this level. Rows
    // that it leaves out count nowhere.
    void start(const Level& level, const std::vector<std::size_t>& class_ends);
    // Of all these rows: only n_right() tells anything.
    void start_counting(std::size_t n_rows);
    // Of the current batch of colourings from now on; `nearest` is the centroid of every row.
    void score(const std::uint16_t* nearest, Colourings& colourings);

    std::int32_t n_samples() const { return static_cast<std::int32_t>(rows_.size()); }
    // Of every candidate: n * gain in fixed point, and the samples that go right.
    const std::int64_t* n_times_gain() const { return gains_.data(); }
    const std::int32_t* n_right() const { return n_right_.data(); }
    // The highest n * gain of all.
    std::int64_t highest() const { return highest_; }

  private:
    void sort_by_group(const Level& level, const std::vector<std::size_t>& class_ends);

    const EntropyTable& n_log_n_;
    std::vector<std::uint32_t> rows_;  // lone ones first, then group by group
    std::vector<std::uint32_t> ends_;  // of each group, among them
    std::size_t n_lone_ = 0;
    std::vector<RowGroup> groups_;
    AlignedVector<std::int64_t> gains_;
    AlignedVector<std::int32_t> n_right_;
    std::int64_t highest_ = 0;
};

}  // namespace evergrow
