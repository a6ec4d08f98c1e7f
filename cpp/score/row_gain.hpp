// Gains of all candidates of a batch, from the nearest centroid of every row.
//
// BatchGain makes a table of counts, which pays for many candidates of one set of centroids. This
// class is for few candidates of each of many sets, where the table would cost more than it saves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "score/information_gain.hpp"
#include "score/objective.hpp"
#include "score/side_assignments.hpp"

namespace evergrow {

class RowGain {
  public:
    explicit RowGain(const EntropyTable& n_log_n) : n_log_n_(n_log_n) {}

    // Sets the rows, sorted by class: the rows of class c end before class_ends[c]. Only rows that
    // the level counts are scored.
    void start(const Level& level, const std::vector<std::size_t>& class_ends);
    // Sets rows that are only counted: n_right() is valid, gains are not.
    void start_counting(std::size_t n_rows);
    // Scores the current batch; `nearest` is the nearest centroid of every row.
    void score(const std::uint16_t* nearest, SideAssignments& assignments);

    std::int32_t n_samples() const { return static_cast<std::int32_t>(rows_.size()); }
    // n * gain of every candidate in fixed point, and the samples that it sends right.
    const std::int64_t* n_times_gain() const { return gains_.data(); }
    const std::int32_t* n_right() const { return n_right_.data(); }
    // The highest n * gain of the batch.
    std::int64_t highest() const { return highest_; }

  private:
    void sort_by_group(const Level& level, const std::vector<std::size_t>& class_ends);

    const EntropyTable& n_log_n_;
    std::vector<std::uint32_t> rows_;  // those alone in their group first, then by group
    std::vector<std::uint32_t> ends_;  // of each group in rows_
    std::size_t n_lone_ = 0;
    std::vector<RowGroup> groups_;
    AlignedVector<std::int64_t> gains_;
    AlignedVector<std::int32_t> n_right_;
    std::int64_t highest_ = 0;
};

}  // namespace evergrow
