#include "tree/flat_tree_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "score/information_gain.hpp"

namespace evergrow {
namespace {

using Numbers = ArrayView<std::int32_t>;

void require(bool condition, const char* problem) {
    if (!condition) throw std::invalid_argument(std::string("damaged tree: ") + problem);
}

bool within(std::int64_t begin, std::int64_t size, std::size_t limit) {
    return begin >= 0 && size >= 0 && begin + size <= static_cast<std::int64_t>(limit);
}

// The parts of an array that nodes own: each entry must be owned once.
class OwnedParts {
  public:
    explicit OwnedParts(std::size_t size) : owned_(size, false) {}

    void take(std::int32_t begin, std::int32_t size, const char* problem) {
        require(within(begin, size, owned_.size()), problem);
        for (std::size_t i = as_index(begin); i < as_index(begin) + as_index(size); ++i) {
            require(!owned_[i], problem);
            owned_[i] = true;
        }
        n_owned_ += as_index(size);
    }
    bool is_complete() const { return n_owned_ == owned_.size(); }

  private:
    std::vector<bool> owned_;
    std::size_t n_owned_ = 0;
};

void check_lengths(const FlatTreeView& flat, std::size_t width) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
    const std::size_t n = flat.left.size(), n_centroids = flat.centroid_class.size();
    require(n > 0, "it has no root");
    for (const Numbers* v : {&flat.centroid_begin, &flat.centroid_size, &flat.count_begin,
                             &flat.count_size, &flat.row_begin, &flat.row_size})
        require(v->size() == n, "its node arrays differ in length");
    require(flat.centroid_source.size() == n_centroids && flat.half_norm.size() == n_centroids &&
                flat.side.size() == n_centroids && flat.exponent.size() == n_centroids,
            "its centroid arrays differ in length");
    require(flat.count_class.size() == flat.count.size(), "its count arrays differ in length");
    require(width > 0 && flat.vectors.size() % VectorCodec(flat.format, width).slot_bytes() == 0,
            "the last mean is incomplete");
    require(
        std::max({n, n_centroids, flat.count.size(), flat.rows.size(), flat.vectors.size()}) < most,
        "an array is too long");
}

// Every node except the root has one parent with a smaller index, so a tree has no cycles.
void check_links(const FlatTreeView& flat) {
    const std::size_t n = flat.left.size();
    std::vector<std::int32_t> depth(n, -1);
    depth[0] = 0;
    for (std::size_t i = 0; i < n; ++i) {
        require(depth[i] >= 0, "a node is unreachable");
        if (flat.left[i] == kLeaf) continue;
        require(flat.left[i] > static_cast<std::int64_t>(i) && within(flat.left[i], 2, n),
                "a child link is out of range");
        const std::size_t child = as_index(flat.left[i]);
        require(depth[child] < 0 && depth[child + 1] < 0, "a node has two parents");
        require(as_index(depth[i]) < kMaxDepth, "it is too deep");
        depth[child] = depth[child + 1] = depth[i] + 1;
    }
}

void check_ranges(const FlatTreeView& flat, SplitKind kind) {
    OwnedParts centroids(flat.centroid_class.size()), counts(flat.count.size());
    OwnedParts rows(flat.rows.size());
    for (std::size_t i = 0; i < flat.left.size(); ++i) {
        if (flat.left[i] == kLeaf) {
            require(flat.count_size[i] > 0, "a leaf has no class counts");
            counts.take(flat.count_begin[i], flat.count_size[i],
                        "the class counts of a leaf are out of range");
            rows.take(flat.row_begin[i], flat.row_size[i], "the rows of a leaf are out of range");
        } else {
            const std::int32_t k = flat.centroid_size[i];
            require(kind == SplitKind::kNcm ? k >= 2 && k <= 65535 : k == 1,
                    "the centroids of a node are out of range");
            centroids.take(flat.centroid_begin[i], k, "the centroids of a node are out of range");
            // The rows below a node are those of its children; checked there.
            const std::size_t child = as_index(flat.left[i]);
            const std::int64_t n_rows =
                std::int64_t{flat.row_size[child]} + flat.row_size[child + 1];
            require(flat.row_begin[i] == flat.row_begin[child] && flat.row_size[i] == n_rows,
                    "the rows of a node are not those of its children");
        }
    }
    require(centroids.is_complete() && counts.is_complete() && rows.is_complete(),
            "an array has entries that no node owns");
}

void check_centroid(const FlatTreeView& flat, std::size_t j, SplitKind kind, std::size_t n_classes,
                    std::size_t n_slots, const Samples& samples) {
    const auto source = CentroidSource::from_code(flat.centroid_source[j]);
    switch (kind) {
        case SplitKind::kAxis:
            require(within(flat.centroid_class[j], 1, samples.n_features()),
                    "the feature of a split is out of range");
            require(source.code() == CentroidSource::slot(0).code(), "a threshold has a vector");
            break;
        case SplitKind::kLinear:
            require(flat.centroid_class[j] == 0, "a plane has a class");
            require(!source.is_row() && within(source.index(), 1, n_slots),
                    "the vector of a plane is out of range");
            break;
        case SplitKind::kNcm:
            require(within(flat.centroid_class[j], 1, n_classes),
                    "the class of a centroid is out of range");
            require(within(source.index(), 1, source.is_row() ? samples.size() : n_slots),
                    "the source of a centroid is out of range");
            require(!source.is_row() || samples.class_of(source.index()) != Samples::kRemoved,
                    "a centroid is a sample that was removed");
            break;
    }
    require(flat.side[j] <= 1, "the side of a centroid is not 0 or 1");
    require(VectorCodec::is_exponent(flat.exponent[j]), "an exponent is out of range");
    require(std::isfinite(flat.half_norm[j]), "the offset of a centroid is not finite");
}

void check_values(const FlatTreeView& flat, SplitKind kind, std::size_t n_classes,
                  const Samples& samples) {
    const std::size_t n_slots =
        flat.vectors.size() / VectorCodec(flat.format, samples.width()).slot_bytes();
    for (std::size_t j = 0; j < flat.centroid_class.size(); ++j)
        check_centroid(flat, j, kind, n_classes, n_slots, samples);
    // No entry is counted twice, so this is the number of samples at the root.
    std::int64_t total = 0;
    for (std::size_t j = 0; j < flat.count.size(); ++j) {
        total += flat.count[j];
        require(flat.count[j] > 0 && total <= static_cast<std::int64_t>(EntropyTable::kMaxSamples),
                "a class count is out of range");
        require(within(flat.count_class[j], 1, n_classes), "the class of a count is out of range");
    }
    for (const std::int32_t row : flat.rows)
        require(within(row, 1, samples.size()), "a training row is out of range");
}

// The counts of a leaf must be sorted by class. So must its rows, at most as many of each class as
// it counts.
void check_leaf(const FlatTreeView& flat, std::size_t leaf, const Samples& samples) {
    const std::size_t first = as_index(flat.count_begin[leaf]);
    const std::size_t end = first + as_index(flat.count_size[leaf]);
    for (std::size_t j = first + 1; j < end; ++j)
        require(flat.count_class[j - 1] < flat.count_class[j],
                "the class counts of a leaf are not sorted by class");
    std::size_t at = first;
    std::int32_t n_held = 0;
    const std::size_t begin = as_index(flat.row_begin[leaf]);
    for (std::size_t j = begin; j < begin + as_index(flat.row_size[leaf]); ++j) {
        const std::int32_t class_id = samples.class_of(flat.rows[j]);
        if (j > begin)
            require(class_id >= samples.class_of(flat.rows[j - 1]),
                    "the rows of a leaf are not sorted by class");
        if (at < end && flat.count_class[at] < class_id) n_held = 0;
        while (at < end && flat.count_class[at] < class_id) ++at;
        require(at < end && flat.count_class[at] == class_id && ++n_held <= flat.count[at],
                "a leaf holds more rows than it counts");
    }
}

void check_both_sides(const FlatTreeView& flat, std::size_t node) {
    const auto begin = flat.side.begin() + flat.centroid_begin[node];
    require(std::adjacent_find(begin, begin + flat.centroid_size[node], std::not_equal_to<>()) !=
                begin + flat.centroid_size[node],
            "all centroids of a node are on one side");
}

// The counts of a splitting node are the sums of its children's. At most as many classes as both
// children have, and at most all.
void check_expansion(const FlatTreeView& flat, std::size_t n_classes) {
    std::vector<std::size_t> n_counts(flat.left.size());
    std::size_t total = 0;
    for (std::size_t i = flat.left.size(); i-- > 0;) {
        if (flat.left[i] == kLeaf) {
            n_counts[i] = as_index(flat.count_size[i]);
        } else {
            const std::size_t child = as_index(flat.left[i]);
            n_counts[i] = std::min(n_counts[child] + n_counts[child + 1], n_classes);
            total += n_counts[i];
        }
    }
    const std::size_t n_bytes = flat.left.size() * 7 * sizeof(std::int32_t) +
                                flat.centroid_class.size() * 14 +
                                flat.count.size() * sizeof(ClassCount) +
                                flat.rows.size() * sizeof(std::int32_t) + flat.vectors.size();
    require(total * sizeof(ClassCount) <= std::max(kFreeExpansion, kMaxExpansion * n_bytes),
            "it would take far more memory than the file");
}

}  // namespace

void check_flat_tree(const FlatTreeView& flat, SplitKind kind, std::size_t n_classes,
                     const Samples& samples) {
    check_lengths(flat, samples.width());
    check_links(flat);
    check_ranges(flat, kind);
    check_values(flat, kind, n_classes, samples);
    for (std::size_t i = 0; i < flat.left.size(); ++i) {
        if (flat.left[i] == kLeaf)
            check_leaf(flat, i, samples);
        else if (kind == SplitKind::kNcm)
            check_both_sides(flat, i);
    }
    check_expansion(flat, n_classes);
}

}  // namespace evergrow
