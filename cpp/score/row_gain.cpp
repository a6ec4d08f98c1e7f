#include "score/row_gain.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/kernels.hpp"

namespace evergrow {

void RowGain::start(const Level& level, const std::vector<std::size_t>& class_ends) {
    sort_by_group(level, class_ends);
    groups_.clear();
    const std::uint32_t* begin = rows_.data() + n_lone_;
    for (const std::uint32_t last : ends_) {
        const std::uint32_t* end = rows_.data() + last;
        if (end - begin < 2) continue;
        const auto n = static_cast<std::int32_t>(end - begin);
        groups_.push_back(RowGroup{
            begin, end, n <= EntropyTable::kMaxTabulated ? n_log_n_.split_terms(n) : nullptr});
        begin = end;
    }
}

// A counting sort that puts groups of a single row before all others.
void RowGain::sort_by_group(const Level& level, const std::vector<std::size_t>& class_ends) {
    ends_.assign(level.n_groups, 0);
    std::size_t begin = 0;
    for (std::size_t c = 0; c < class_ends.size(); begin = class_ends[c++])
        if (level.group[c] != kNoGroup)
            ends_[static_cast<std::size_t>(level.group[c])] +=
                static_cast<std::uint32_t>(class_ends[c] - begin);
    n_lone_ = static_cast<std::size_t>(std::count(ends_.begin(), ends_.end(), 1U));
    auto next = static_cast<std::uint32_t>(n_lone_);
    std::uint32_t next_lone = 0;
    for (std::uint32_t& end : ends_) {
        const std::uint32_t n = end;
        end = n == 1 ? next_lone++ : next;  // first the begin; filling moves it to the end
        if (n != 1) next += n;
    }
    rows_.resize(next);
    begin = 0;
    for (std::size_t c = 0; c < class_ends.size(); begin = class_ends[c++])
        if (level.group[c] != kNoGroup)
            for (std::size_t row = begin; row < class_ends[c]; ++row)
                rows_[ends_[static_cast<std::size_t>(level.group[c])]++] =
                    static_cast<std::uint32_t>(row);
}

void RowGain::start_counting(std::size_t n_rows) {
    rows_.resize(n_rows);
    std::iota(rows_.begin(), rows_.end(), 0U);
    n_lone_ = n_rows;
    groups_.clear();
}

void RowGain::score(const std::uint16_t* nearest, SideAssignments& assignments) {
    const CandidateMasks candidates = assignments.masks();
    gains_.assign(candidates.stride, n_log_n_(n_samples()));
    n_right_.assign(candidates.stride, 0);
    const GroupedRows grouped{rows_.data(), rows_.data() + n_lone_, groups_.data(), groups_.size(),
                              n_log_n_.data()};
    kernels().gain.add_gains(grouped, nearest, candidates, gains_.data(), n_right_.data());
    const std::int32_t n = n_samples();
    const std::int64_t* f = n_log_n_.data();
    const std::int32_t* right = n_right_.data();
    std::int64_t* gains = gains_.data();
    // A local variable: a member would be written to memory for every candidate.
    std::int64_t highest = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < candidates.n_candidates; ++i) {
        gains[i] -= f[right[i]] + f[n - right[i]];
        highest = gains[i] > highest ? gains[i] : highest;
    }
    highest_ = highest;
}

}  // namespace evergrow
