// The loop of gain_kernels.hpp as a template over a vector type, compiled once per instruction set.
// Everything has internal linkage, as in distance_loops.hpp.
//
// A register of bytes holds the counts of many candidates, so that one subtraction counts a row for
// all of them. No table of classes and centroids is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gain_kernels.hpp"

namespace evergrow {
namespace {

constexpr std::size_t kMaxInByte = 255;

// Up to kCandidateLanes candidates, in N registers.
template <class V, std::size_t N>
class GainLoop {
  public:
    GainLoop(const GroupedRows& rows, const std::uint16_t* nearest, const CandidateMasks& masks,
             std::int64_t* gains, std::int32_t* n_right)
        : rows_(rows), nearest_(nearest), masks_(masks), gains_(gains), n_right_(n_right) {}

    void run() {
        count_wide(rows_.lone_begin, rows_.lone_end, n_right_);
        // The rows of small groups are also counted together until a byte could overflow.
        Bytes together[N];
        clear(together);
        std::size_t n_together = 0;
        for (std::size_t g = 0; g < rows_.n_groups; ++g) {
            const RowGroup& group = rows_.groups[g];
            const auto n = static_cast<std::size_t>(group.end - group.begin);
            if (n > kMaxInByte) {
                add_large(group, n);
                continue;
            }
            if (n_together + n > kMaxInByte) {
                widen(together, n_right_);
                clear(together);
                n_together = 0;
            }
            Bytes right[N];
            clear(right);
            const bool is_parted = count(group.begin, group.end, right);
            // Adding zeros from registers is faster than an unpredictable branch.
            if (n <= V::kMaxSplitTerms || is_parted) add_small(group, n, right);
            for (std::size_t b = 0; b < N; ++b) together[b] = V::add_bytes(together[b], right[b]);
            n_together += n;
        }
        widen(together, n_right_);
    }

  private:
    using Bytes = typename V::Bytes;
    static constexpr std::size_t kLanes = N * V::kBytes;

    static void clear(Bytes (&counts)[N]) {
        for (std::size_t b = 0; b < N; ++b) counts[b] = V::zero_bytes();
    }

    // Counts the rows that go right. Returns whether they are nearest to more than one centroid; if
    // not, no candidate divides them.
    bool count(const std::uint32_t* row, const std::uint32_t* end, Bytes (&right)[N]) const {
        const std::size_t first = nearest_[*row];
        std::size_t difference = 0;
#pragma GCC unroll 4
        for (; row != end; ++row) {
            const std::size_t centroid = nearest_[*row];
            difference |= centroid ^ first;
            const std::int8_t* mask = masks_.masks + centroid * masks_.stride;
#pragma GCC unroll 4
            for (std::size_t b = 0; b < N; ++b)
                right[b] = V::subtract_bytes(right[b], V::load_bytes(mask + b * V::kBytes));
        }
        return difference != 0;
    }

    static void widen(const Bytes (&counts)[N], std::int32_t* sums) {
        std::uint8_t lanes[kLanes];
        for (std::size_t b = 0; b < N; ++b) V::store_bytes(lanes + b * V::kBytes, counts[b]);
        for (std::size_t i = 0; i < kLanes; ++i) sums[i] += lanes[i];
    }

    void count_wide(const std::uint32_t* row, const std::uint32_t* end, std::int32_t* sums) const {
        while (row != end) {
            const auto n_left = static_cast<std::size_t>(end - row);
            const std::size_t n = n_left < kMaxInByte ? n_left : kMaxInByte;
            Bytes right[N];
            clear(right);
            count(row, row + n, right);
            widen(right, sums);
            row += n;
        }
    }

    void add_small(const RowGroup& group, std::size_t n, const Bytes (&counts)[N]) {
        std::uint8_t right[kLanes];
        for (std::size_t b = 0; b < N; ++b) V::store_bytes(right + b * V::kBytes, counts[b]);
        if (n <= V::kMaxSplitTerms) {
            V::add_split_terms(group.split_terms, n, right, masks_.n_candidates, gains_);
        } else if (group.split_terms != nullptr) {
            for (std::size_t i = 0; i < masks_.n_candidates; ++i)
                gains_[i] += group.split_terms[right[i]];
        } else {
            look_up(n, right);
        }
    }

    void add_large(const RowGroup& group, std::size_t n) {
        std::int32_t right[kLanes] = {};
        count_wide(group.begin, group.end, right);
        for (std::size_t i = 0; i < kLanes; ++i) n_right_[i] += right[i];
        look_up(n, right);
    }

    template <class Count>
    void look_up(std::size_t n, const Count* right) {
        const std::int64_t* f = rows_.n_log_n;
        for (std::size_t i = 0; i < masks_.n_candidates; ++i) {
            const auto r = static_cast<std::size_t>(right[i]);
            gains_[i] += f[r] + f[n - r] - f[n];
        }
    }

    const GroupedRows& rows_;
    const std::uint16_t* nearest_;
    const CandidateMasks masks_;
    std::int64_t* gains_;
    std::int32_t* n_right_;
};

// Uses only as many registers as the candidates fill.
template <class V, std::size_t N = kCandidateLanes / V::kBytes>
inline void add_gains_of_few(const GroupedRows& rows, const std::uint16_t* nearest,
                             const CandidateMasks& masks, std::int64_t* gains,
                             std::int32_t* n_right) {
    if constexpr (N > 1) {
        if (masks.n_candidates <= N / 2 * V::kBytes)
            return add_gains_of_few<V, N / 2>(rows, nearest, masks, gains, n_right);
    }
    GainLoop<V, N>(rows, nearest, masks, gains, n_right).run();
}

template <class V>
void add_gains(const GroupedRows& rows, const std::uint16_t* nearest,
               const CandidateMasks& candidates, std::int64_t* gains, std::int32_t* n_right) {
    for (std::size_t first = 0; first < candidates.n_candidates; first += kCandidateLanes) {
        const std::size_t n_left = candidates.n_candidates - first;
        const CandidateMasks few{candidates.masks + first, candidates.stride,
                                 n_left < kCandidateLanes ? n_left : kCandidateLanes};
        add_gains_of_few<V>(rows, nearest, few, gains + first, n_right + first);
    }
}

template <class V>
constexpr GainKernels make_gain_kernels() {
    return GainKernels{add_gains<V>};
}

}  // namespace
}  // namespace evergrow
