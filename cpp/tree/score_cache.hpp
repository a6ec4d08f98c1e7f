// How near each stored row is to the nearest centroid of every node it passes, for RUST.
//
// With the best score of a row known, a node that takes one new centroid computes one distance per
// row, not one per centroid. Scores are kept in 16 bits, cut off after the leading ones: an
// interval that holds the score. A new centroid beyond its end cannot be nearest; the few rows
// that fall inside are looked at again in full. So what is kept never changes an answer, and may
// be dropped at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace evergrow {

// Only the latest version of a tree has any use for scores: a copy has none, and takes those of the
// tree before it when it is changed.
class ScoreCache {
  public:
    // Deeper nodes hold too few rows to matter.
    static constexpr std::size_t kLevels = 16;

    struct Interval {
        float low, high;  // low <= score <= high; not a number if unknown
    };

    ScoreCache() = default;
    ScoreCache(const ScoreCache&) : ScoreCache() {}
    ScoreCache& operator=(const ScoreCache&) {
        drop();
        return *this;
    }
    ~ScoreCache() { drop(); }

    bool is_kept() const { return rows_.load(std::memory_order_acquire) != nullptr; }
    void drop() {
        delete rows_.exchange(nullptr);
        n_rows_ = 0;
    }
    // What another tree has kept, if nobody else has taken it; nothing is known without.
    void take(ScoreCache& other) {
        drop();
        rows_ = other.rows_.exchange(nullptr);
        n_rows_ = other.n_rows_.exchange(0);
    }
    void start() {
        if (!is_kept()) rows_ = new std::vector<Row>();
    }
    std::size_t n_bytes() const { return n_rows_.load(std::memory_order_relaxed) * sizeof(Row); }

    // There are rows 0 to n_rows - 1 from now on; nothing is known of new ones.
    void extend_to(std::size_t n_rows) {
        if (!is_kept()) return;
        rows().resize(n_rows);
        n_rows_ = n_rows;
    }
    void keep(std::int32_t row, std::size_t level, float score) {
        if (!is_kept() || level >= kLevels) return;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &score, sizeof bits);
        rows()[static_cast<std::size_t>(row)].level[level] = static_cast<std::uint16_t>(bits >> 16);
    }
    Interval at(std::int32_t row, std::size_t level) const {
        if (!is_kept() || level >= kLevels) return {as_float(kUnknown), as_float(kUnknown)};
        const std::uint16_t bits = rows()[static_cast<std::size_t>(row)].level[level];
        if (bits == kUnknown) return {as_float(bits), as_float(bits)};
        const float cut = as_float(bits), next = as_float(bits + 1U);
        return (bits & kSign) == 0 ? Interval{cut, next} : Interval{next, cut};
    }

  private:
    static constexpr std::uint16_t kUnknown = 0xFFFF;
    static constexpr std::uint16_t kSign = 0x8000;

    struct Row {
        std::uint16_t level[kLevels];
        Row() { std::memset(level, 0xFF, sizeof level); }
    };

    std::vector<Row>& rows() const { return *rows_.load(std::memory_order_relaxed); }
    static float as_float(std::uint32_t bits) {
        bits <<= 16;
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

    std::atomic<std::vector<Row>*> rows_{nullptr};
    std::atomic<std::size_t> n_rows_{0};
};

}  // namespace evergrow
