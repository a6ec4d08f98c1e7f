#include "descend.hpp"

#include <algorithm>

namespace evergrow {
namespace {

// A node that fewer rows reach is not worth unpacking: its centroids are read where they lie.
constexpr std::size_t kFewRows = 4;

}  // namespace

Nearest StoredCentroids::nearest(const float* x) const {
    const Kernels& kernel = kernels();
    const std::size_t width = samples_.width();
    Nearest best{0, kWorstScore};
    for (std::size_t j = 0; j < count_; ++j) {
        const CentroidSource where = source(j);
        const float dot = where.is_row() ? kernel.dot_full(x, row(where), width)
                                         : kernel.dot_half(x, halves(where), width);
        const float score = half_norms()[j] - dot;
        if (score < best.score) best = Nearest{static_cast<std::int32_t>(j), score};
    }
    return best;
}

void StoredCentroids::unpack(std::vector<const float*>& vectors,
                             AlignedVector<float>& space) const {
    const std::size_t width = samples_.width();
    vectors.resize(count_);
    space.resize(count_ * width);
    for (std::size_t j = 0; j < count_; ++j) {
        const CentroidSource where = source(j);
        if (where.is_row()) {
            vectors[j] = row(where);
            continue;
        }
        float* place = space.data() + j * width;
        kernels().widen(halves(where), width, place);
        vectors[j] = place;
    }
}

// Depth first: the rows of a small group stay in the cache on their way down. (Level by level,
// fetching the next node's centroids ahead, measured a third slower.)
void Descent::run(const Tree& tree, const AlignedVector<float>& rows, std::size_t n_rows,
                  std::int32_t* leaf, std::uint64_t* comparisons) {
    rows_ = rows.data();
    order_.resize(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) order_[i] = static_cast<std::uint32_t>(i);
    nearest_.resize(n_rows);
    row_vectors_.resize(n_rows);
    pending_.assign(1, Group{0, 0, n_rows});
    while (!pending_.empty()) {
        const Group at = pending_.back();
        pending_.pop_back();
        if (tree.is_leaf(at.node)) {
            for (std::size_t i = at.begin; i < at.end; ++i) leaf[order_[i]] = at.node;
            continue;
        }
        const auto node = static_cast<std::size_t>(at.node);
        if (comparisons != nullptr)
            for (std::size_t i = at.begin; i < at.end; ++i)
                comparisons[order_[i]] += static_cast<std::uint64_t>(tree.centroid_size[node]);
        const std::size_t middle = route(tree, at);
        const std::int32_t child = tree.left[node];
        if (middle < at.end) pending_.push_back(Group{child + 1, middle, at.end});
        if (at.begin < middle) pending_.push_back(Group{child, at.begin, middle});
    }
}

// Orders the rows of a group by the side they take; returns the place of the first right one.
std::size_t Descent::route(const Tree& tree, const Group& group) {
    const StoredCentroids stored(*forest_.samples, tree, group.node);
    const std::size_t width = forest_.samples->width();
    const std::size_t n = group.end - group.begin;
    std::uint32_t* order = order_.data() + group.begin;
    if (n < kFewRows) {
        for (std::size_t i = 0; i < n; ++i)
            nearest_[i] =
                static_cast<std::uint16_t>(stored.nearest(rows_ + order[i] * width).index);
    } else {
        stored.unpack(centroid_vectors_, unpacked_);
        for (std::size_t i = 0; i < n; ++i) row_vectors_[i] = rows_ + order[i] * width;
        const Centroids centroids{centroid_vectors_.data(), stored.half_norms(), stored.count()};
        kernels().nearest_centroids(row_vectors_.data(), n, centroids, width, nearest_.data());
    }
    moved_.clear();
    std::uint32_t* left = order;
    for (std::size_t i = 0; i < n; ++i) {
        if (stored.sides()[nearest_[i]] != 0)
            moved_.push_back(order[i]);
        else
            *left++ = order[i];
    }
    std::copy(moved_.begin(), moved_.end(), left);
    return group.begin + static_cast<std::size_t>(left - order);
}

}  // namespace evergrow
