// Taking rows down trees: at every node to the side of the nearest centroid, Eq. (6) of
// Ristin 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aligned.hpp"
#include "forest.hpp"
#include "tree.hpp"

namespace evergrow {

struct Nearest {
    std::int32_t index;
    float score;  // |c|^2 / 2 - x.c
};

// The centroids of one splitting node, where they are stored.
class StoredCentroids {
  public:
    StoredCentroids(const Samples& samples, const Tree& tree, std::int32_t node)
        : samples_(samples),
          tree_(tree),
          begin_(static_cast<std::size_t>(tree.centroid_begin[static_cast<std::size_t>(node)])),
          count_(static_cast<std::size_t>(tree.centroid_size[static_cast<std::size_t>(node)])) {}

    std::size_t count() const { return count_; }
    const float* half_norms() const { return tree_.half_norm.data() + begin_; }
    const std::uint8_t* sides() const { return tree_.side.data() + begin_; }

    // The nearest to one row, each centroid read where it lies.
    Nearest nearest(const float* x) const;
    // Pointers to all vectors in single precision; those in half precision are unpacked into
    // `space`.
    void unpack(std::vector<const float*>& vectors, AlignedVector<float>& space) const;

  private:
    CentroidSource source(std::size_t j) const {
        return CentroidSource::from_code(tree_.centroid_source[begin_ + j]);
    }
    const float* row(CentroidSource source) const {
        return samples_.row(static_cast<std::size_t>(source.index()));
    }
    const std::uint16_t* halves(CentroidSource source) const {
        return tree_.halves.data() + static_cast<std::size_t>(source.index()) * samples_.width();
    }

    const Samples& samples_;
    const Tree& tree_;
    const std::size_t begin_;
    const std::size_t count_;
};

// Takes blocks of rows down trees; owns the space this needs.
class Descent {
  public:
    explicit Descent(const Forest& forest) : forest_(forest) {}

    // The leaf of each row; adds the distances computed for it to `comparisons` if not null.
    void run(const Tree& tree, const AlignedVector<float>& rows, std::size_t n_rows,
             std::int32_t* leaf, std::uint64_t* comparisons);

  private:
    // Rows that have reached a node: places [begin, end) in order_.
    struct Group {
        std::int32_t node;
        std::size_t begin, end;
    };

    std::size_t route(const Tree& tree, const Group& group);

    const Forest& forest_;
    const float* rows_ = nullptr;
    std::vector<Group> pending_;
    std::vector<std::uint32_t> order_, moved_;
    std::vector<std::uint16_t> nearest_;
    std::vector<const float*> row_vectors_, centroid_vectors_;
    AlignedVector<float> unpacked_;
};

}  // namespace evergrow
