// The inner loop of scoring splits; one implementation per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace evergrow {

// Candidates are padded to a multiple of this: their counts, one byte each, fill a whole number of
// registers of every instruction set.
constexpr std::size_t kCandidateLanes = 64;

// Reading f(r) + f(n - r) - f(n) may touch as many entries after the last.
constexpr std::size_t kPartsPadding = 16;

// Rows that a level does not tell apart; at least two.
struct RowGroup {
    const std::uint32_t* begin;
    const std::uint32_t* end;
    const std::int64_t* of_parts;  // f(r) + f(n - r) - f(n) by r, null if not at hand
};

struct GroupedRows {
    // Rows without another of their group: they go one way whatever the candidate.
    const std::uint32_t* lone_begin;
    const std::uint32_t* lone_end;
    const RowGroup* groups;
    std::size_t n_groups;
    const std::int64_t* n_log_n;  // f
};

// Where candidates send the rows of each centroid: all ones at masks[centroid * stride + candidate]
// for right, zero for left.
struct CandidateMasks {
    const std::int8_t* masks;
    std::size_t stride;
    std::size_t n_candidates;
};

struct GainKernels {
    // For every candidate adds f(r) + f(n - r) - f(n) of all groups, n rows of which r go right,
    // to `gains`, and all rows that go right to `n_right`. `nearest` is the centroid of each row.
    void (*add_gains)(const GroupedRows& rows, const std::uint16_t* nearest,
                      const CandidateMasks& candidates, std::int64_t* gains, std::int32_t* n_right);
};

}  // namespace evergrow
