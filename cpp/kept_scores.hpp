// How near each stored row is to the nearest centroid of every node it passes, for RUST.
//
// With the best score of a row known, a node that takes one new centroid computes one distance per
// row, not one per centroid. Scores are kept in 16 bits, cut off after the leading ones: an
// interval that holds the score. A new centroid beyond its end cannot be nearest; the few rows
// that fall inside are looked at again in full. So what is kept never changes an answer, and may
// be dropped at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "paged.hpp"

namespace evergrow {

class KeptScores {
  public:
    // Deeper nodes hold too few rows to matter.
    static constexpr std::size_t kLevels = 16;

    struct Interval {
        float low, high;  // low <= score <= high; not a number if unknown
    };

    bool is_kept() const { return kept_; }
    void start() { kept_ = true; }
    void drop() { *this = KeptScores(); }
    std::size_t n_bytes() const { return scores_.n_bytes(); }

    // There are rows 0 to n_rows - 1 from now on; nothing is known of new ones.
    void extend_to(std::size_t n_rows) {
        if (!kept_ || n_rows <= scores_.size()) return;
        const std::size_t n_new = n_rows - scores_.size();
        for (std::size_t i = scores_.extend(n_new); i < n_rows; ++i)
            std::fill_n(scores_.fresh(i), kLevels, kUnknown);
    }
    void keep(std::int32_t row, std::size_t level, float score) {
        if (!kept_ || level >= kLevels) return;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &score, sizeof bits);
        scores_.edit(static_cast<std::size_t>(row))[level] = static_cast<std::uint16_t>(bits >> 16);
    }
    Interval at(std::int32_t row, std::size_t level) const {
        if (!kept_ || level >= kLevels) return {as_float(kUnknown), as_float(kUnknown)};
        const std::uint16_t bits = scores_.at(static_cast<std::size_t>(row))[level];
        if (bits == kUnknown) return {as_float(bits), as_float(bits)};
        const float cut = as_float(bits), next = as_float(bits + 1U);
        return (bits & kSign) == 0 ? Interval{cut, next} : Interval{next, cut};
    }

  private:
    static constexpr std::uint16_t kUnknown = 0xFFFF;
    static constexpr std::uint16_t kSign = 0x8000;

    static float as_float(std::uint32_t bits) {
        bits <<= 16;
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

    bool kept_ = false;
    Paged<std::uint16_t> scores_{kLevels};
};

}  // namespace evergrow
