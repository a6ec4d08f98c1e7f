#include "tree/router.hpp"

namespace evergrow {
namespace {

// With fewer rows it does not pay to convert the centroids of a node: they are read in place.
constexpr std::size_t kFewRows = 4;

// Rows beyond this would push each other out of the second-level cache.
constexpr std::size_t kMostPrefetched = std::size_t{1} << 17;

void prefetch(const void* memory, std::size_t n_bytes) {
#if defined(__GNUC__)
    const char* line = static_cast<const char*>(memory);
    for (std::size_t i = 0; i < n_bytes; i += kAlignment) __builtin_prefetch(line + i, 0, 2);
#else
    (void)memory;
    (void)n_bytes;
#endif
}

}  // namespace

Nearest StoredCentroids::nearest(const float* x) const {
    const Kernels& kernel = kernels();
    const std::size_t width = tree_.width();
    const bool full_rows = samples_.precision() == Precision::kFloat32;
    Nearest best{0, kWorstScore};
    for (std::size_t j = 0; j < count(); ++j) {
        const Centroid& centroid = (*this)[j];
        const auto where = CentroidSource::from_code(centroid.source);
        float dot = 0;
        if (!where.is_row())
            dot = tree_.codec().dot(x, tree_.vector(where.index()), centroid.exponent);
        else if (full_rows)
            dot = kernel.dot_full(x, samples_.full(where.index()), width);
        else
            dot = kernel.dot_half(x, samples_.half(where.index()), width);
        const float score = centroid.offset - dot;
        if (score < best.score) best = Nearest{static_cast<std::int32_t>(j), score};
    }
    return best;
}

void prefetch_children(const Tree& tree, const Node& node) {
    for (const std::int32_t i : {node.left, node.left + 1}) {
        const Node& child = tree.node(i);
        if (child.is_leaf()) continue;
        prefetch(&tree.centroid(child, 0), as_index(child.centroid_size) * sizeof(Centroid));
        // The grandchildren, whose own children are prefetched next.
        prefetch(&tree.node(child.left), 2 * sizeof(Node));
    }
}

void prefetch_centroids(const Samples& samples, const Tree& tree, std::int32_t i) {
    const Node& node = tree.node(i);
    if (node.is_leaf() || tree.kind() == SplitKind::kAxis) return;
    const bool full_rows = samples.precision() == Precision::kFloat32;
    for (std::size_t j = 0; j < static_cast<std::size_t>(node.centroid_size); ++j) {
        const auto where = CentroidSource::from_code(tree.centroid(node, j).source);
        if (!where.is_row())
            prefetch(tree.vector(where.index()), tree.codec().slot_bytes());
        else if (full_rows)
            prefetch(samples.full(where.index()), tree.width() * sizeof(float));
        else
            prefetch(samples.half(where.index()), tree.width() * sizeof(std::uint16_t));
    }
}

void prefetch_rows(const Samples& samples, const Tree& tree, std::int32_t leaf) {
    const Node& node = tree.node(leaf);
    const bool full_rows = samples.precision() == Precision::kFloat32;
    const std::size_t n_bytes = tree.width() * (full_rows ? sizeof(float) : sizeof(std::uint16_t));
    const auto n_rows = static_cast<std::size_t>(node.row_size);
    if (n_rows * n_bytes > kMostPrefetched) return;
    for (std::size_t j = 0; j < n_rows; ++j) {
        const std::int32_t row = tree.row(node, j);
        if (full_rows)
            prefetch(samples.full(row), n_bytes);
        else
            prefetch(samples.half(row), n_bytes);
    }
}

// For ncm the side of the nearest centroid [Ristin2014 Eq. 6].
bool StoredCentroids::goes_right(const float* x) const {
    switch (tree_.kind()) {
        case SplitKind::kAxis: return x[(*this)[0].class_id] > (*this)[0].offset;
        case SplitKind::kLinear: return nearest(x).score < 0;
        default: return (*this)[static_cast<std::size_t>(nearest(x).index)].side != 0;
    }
}

const float* StoredCentroids::vector(std::size_t j, float* buffer) const {
    const auto where = CentroidSource::from_code((*this)[j].source);
    if (where.is_row()) return samples_.read(where.index(), buffer);
    tree_.codec().read(tree_.vector(where.index()), (*this)[j].exponent, buffer);
    return buffer;
}

void Router::route(const Tree& tree, std::int32_t node, const float* const* rows, std::size_t n,
                   std::uint8_t* right, float* scores) {
    const StoredCentroids stored(samples_, tree, node);
    if (tree.kind() == SplitKind::kNcm) {
        route_by_centroids(stored, rows, n, right, scores);
    } else if (n < kFewRows || tree.kind() == SplitKind::kAxis) {
        for (std::size_t i = 0; i < n; ++i) right[i] = stored.goes_right(rows[i]) ? 1 : 0;
    } else {
        unpacked_.resize(tree.width());
        const float* weights = stored.vector(0, unpacked_.data());
        for (std::size_t i = 0; i < n; ++i)
            right[i] =
                stored[0].offset - kernels().dot_full(rows[i], weights, tree.width()) < 0 ? 1 : 0;
    }
}

// The side of the nearest centroid of each row [Ristin2014 Eq. 6].
void Router::route_by_centroids(const StoredCentroids& stored, const float* const* rows,
                                std::size_t n, std::uint8_t* right, float* scores) {
    const std::size_t k = stored.count();
    const std::size_t width = samples_.width();
    if (scores == nullptr) {
        unused_scores_.resize(n);
        scores = unused_scores_.data();
    }
    if (n < kFewRows) {
        for (std::size_t i = 0; i < n; ++i) {
            const Nearest found = stored.nearest(rows[i]);
            right[i] = stored[static_cast<std::size_t>(found.index)].side;
            scores[i] = found.score;
        }
        return;
    }
    vectors_.resize(k);
    offsets_.resize(k);
    unpacked_.resize(k * width);
    nearest_.resize(n);
    for (std::size_t j = 0; j < k; ++j) {
        vectors_[j] = stored.vector(j, unpacked_.data() + j * width);
        offsets_[j] = stored[j].offset;
    }
    kernels().nearest_centroids(rows, n, Centroids{vectors_.data(), offsets_.data(), k}, width,
                                nearest_.data(), scores);
    for (std::size_t i = 0; i < n; ++i) right[i] = stored[nearest_[i]].side;
}

}  // namespace evergrow
