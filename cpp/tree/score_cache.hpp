// A cache for RUST: the score of the nearest centroid of every stored row, at the first 16 nodes
// on its path.
//
// If the best score of a row is known, a node that gets a new centroid computes one distance per
// row instead of one per centroid. Scores are truncated to their leading 16 bits, which define an
// interval around the score. A new centroid with a score above the interval is not the nearest;
// rows whose new score falls into it are compared with all centroids. So the cache never changes a
// result, and can be cleared at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace evergrow {

// Only the latest version of a tree needs it: a copy starts without one, and an update takes over
// the cache of the old tree.
class ScoreCache {
  public:
    // Deeper nodes have too few rows for the cache to pay.
    static constexpr std::size_t kLevels = 16;

    struct Interval {
        float low, high;  // low <= score <= high; NaN if unknown
    };

    ScoreCache() = default;
    ScoreCache(const ScoreCache&) : ScoreCache() {}
    ScoreCache& operator=(const ScoreCache&) {
        clear();
        return *this;
    }
    ~ScoreCache() { clear(); }

    bool is_active() const { return rows_.load(std::memory_order_acquire) != nullptr; }
    // Removes all scores; the cache is inactive then.
    void clear() {
        delete rows_.exchange(nullptr);
        n_rows_ = 0;
    }
    // Takes over the scores of another cache, which is inactive then.
    void take_from(ScoreCache& other) {
        clear();
        rows_ = other.rows_.exchange(nullptr);
        n_rows_ = other.n_rows_.exchange(0);
    }
    void activate() {
        if (!is_active()) rows_ = new std::vector<Row>();
    }
    std::size_t n_bytes() const { return n_rows_.load(std::memory_order_relaxed) * sizeof(Row); }

    // Sets the number of rows; the scores of new rows are unknown.
    void extend_to(std::size_t n_rows) {
        if (!is_active()) return;
        rows().resize(n_rows);
        n_rows_ = n_rows;
    }
    // `level` is the depth of the node. Scores at level kLevels and deeper are not stored.
    void store(std::int32_t row, std::size_t level, float score) {
        if (!is_active() || level >= kLevels) return;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &score, sizeof bits);
        rows()[static_cast<std::size_t>(row)].level[level] = static_cast<std::uint16_t>(bits >> 16);
    }
    Interval interval(std::int32_t row, std::size_t level) const {
        if (!is_active() || level >= kLevels) return {as_float(kUnknown), as_float(kUnknown)};
        const std::uint16_t bits = rows()[static_cast<std::size_t>(row)].level[level];
        if (bits == kUnknown) return {as_float(bits), as_float(bits)};
        const float truncated = as_float(bits), next = as_float(bits + 1U);
        return (bits & kSign) == 0 ? Interval{truncated, next} : Interval{next, truncated};
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
