// Routing: the side of a splitting node to which rows go [Ristin2014 Eq. 6].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

struct Nearest {
    std::int32_t index;
    float score;  // offset - x.c
};

// The centroids of one splitting node, in place.
class StoredCentroids {
  public:
    StoredCentroids(const Samples& samples, const Tree& tree, std::int32_t node)
        : samples_(samples), tree_(tree), node_(tree.node(node)) {}

    std::size_t count() const { return static_cast<std::size_t>(node_.centroid_size); }
    const Centroid& operator[](std::size_t j) const { return tree_.centroid(node_, j); }

    // The centroid with the lowest score for one row [Ristin2014 Eq. 2].
    Nearest nearest(const float* x) const;
    // The side of one row.
    bool goes_right(const float* x) const;
    // The j-th vector in single precision: in place, or converted into `buffer`.
    const float* vector(std::size_t j, float* buffer) const;

  private:
    const Samples& samples_;
    const Tree& tree_;
    const Node& node_;
};

// Prefetches what `prefetch_centroids` reads of the children of a splitting node, so that it need
// not wait: to be called before rows are routed.
void prefetch_children(const Tree& tree, const Node& node);

// Prefetches all centroids of a node, if it splits. They lie scattered in memory, and without this
// each one would be waited for.
void prefetch_centroids(const Samples& samples, const Tree& tree, std::int32_t node);

// Prefetches the stored rows of a leaf that is about to be split, if they are few.
void prefetch_rows(const Samples& samples, const Tree& tree, std::int32_t leaf);

// Routes rows through nodes; owns the buffers for it.
class Router {
  public:
    explicit Router(const Samples& samples) : samples_(samples) {}

    // Sets `right[i]` for each of n rows, and `scores[i]` to the score of its nearest centroid.
    // Without class means there are no scores; null if they are not needed.
    void route(const Tree& tree, std::int32_t node, const float* const* rows, std::size_t n,
               std::uint8_t* right, float* scores);

  private:
    void route_by_centroids(const StoredCentroids& stored, const float* const* rows, std::size_t n,
                            std::uint8_t* right, float* scores);

    const Samples& samples_;
    std::vector<std::uint16_t> nearest_;
    std::vector<float> unused_scores_;
    std::vector<const float*> vectors_;
    std::vector<float> offsets_;
    AlignedVector<float> unpacked_;
};

}  // namespace evergrow
