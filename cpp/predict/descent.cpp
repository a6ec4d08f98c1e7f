#include "predict/descent.hpp"

#include <algorithm>

namespace evergrow {

// Depth first, so that the rows of a small group stay in the cache. (Level by level, with the
// centroids of the next node prefetched, was a third slower.)
const std::vector<std::uint32_t>& Descent::run(const Tree& tree, const AlignedVector<float>& rows,
                                               std::size_t n_rows, std::int32_t* leaf,
                                               std::uint64_t* comparisons) {
    rows_ = rows.data();
    order_.resize(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) order_[i] = static_cast<std::uint32_t>(i);
    right_.resize(n_rows);
    row_vectors_.resize(n_rows);
    pending_.assign(1, Group{0, 0, n_rows});
    while (!pending_.empty()) {
        const Group at = pending_.back();
        pending_.pop_back();
        if (tree.is_leaf(at.node)) {
            for (std::size_t i = at.begin; i < at.end; ++i) leaf[order_[i]] = at.node;
            continue;
        }
        const Node& node = tree.node(at.node);
        if (comparisons != nullptr)
            for (std::size_t i = at.begin; i < at.end; ++i)
                comparisons[order_[i]] += static_cast<std::uint64_t>(node.centroid_size);
        prefetch_children(tree, node);
        const std::size_t middle = route(tree, at);
        const std::int32_t child = node.left;
        // One step before they are needed.
        if (middle < at.end) prefetch_centroids(samples_, tree, child + 1);
        if (at.begin < middle) prefetch_centroids(samples_, tree, child);
        if (middle < at.end) pending_.push_back(Group{child + 1, middle, at.end});
        if (at.begin < middle) pending_.push_back(Group{child, at.begin, middle});
    }
    return order_;
}

// Orders the rows of a group by their side; returns the position of the first right one.
std::size_t Descent::route(const Tree& tree, const Group& group) {
    const std::size_t n = group.end - group.begin;
    std::uint32_t* order = order_.data() + group.begin;
    for (std::size_t i = 0; i < n; ++i) row_vectors_[i] = rows_ + order[i] * width_;
    router_.route(tree, group.node, row_vectors_.data(), n, right_.data(), nullptr);
    moved_.clear();
    std::uint32_t* left = order;
    for (std::size_t i = 0; i < n; ++i) {
        if (right_[i] != 0)
            moved_.push_back(order[i]);
        else
            *left++ = order[i];
    }
    std::copy(moved_.begin(), moved_.end(), left);
    return group.begin + static_cast<std::size_t>(left - order);
}

}  // namespace evergrow
