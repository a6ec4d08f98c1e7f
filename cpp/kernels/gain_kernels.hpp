// The inner loop of scoring splits; one implementation per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace evergrow {

// Candidates are padded to a multiple of this, so that their counts, one byte each, fill a whole
// number of registers of every instruction set.
constexpr std::size_t kCandidateLanes = 64;

// Entries after the last one that kernels may read in a table of f(r) + f(n - r) - f(n).
constexpr std::size_t kSplitTermsPadding = 16;

// Rows that count as one class on a level; at least two.
struct RowGroup {
    const std::uint32_t* begin;
    const std::uint32_t* end;
    const std::int64_t* split_terms;  // f(r) + f(n - r) - f(n) by r; null if not tabulated
};

struct GroupedRows {
    // Rows that are alone in their group: no candidate divides it.
    const std::uint32_t* lone_begin;
    const std::uint32_t* lone_end;
    const RowGroup* groups;
    std::size_t n_groups;
    const std::int64_t* n_log_n;  // f
};

// The side to which candidates send the rows of each centroid: masks[centroid * stride + candidate]
// is -1 (all bits set) for right, 0 for left.
struct CandidateMasks {
    const std::int8_t* masks;
    std::size_t stride;
    std::size_t n_candidates;
};

struct GainKernels {
    // For every candidate adds to `gains` the sum over groups of f(r) + f(n - r) - f(n), where r of
    // the n rows of a group go right, and to `n_right` the number of all rows that go right.
    // `nearest` is the nearest centroid of each row.
    void (*add_gains)(const GroupedRows& rows, const std::uint16_t* nearest,
                      const CandidateMasks& candidates, std::int64_t* gains, std::int32_t* n_right);
};

}  // namespace evergrow
