#include "tree.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace evergrow {
namespace {

template <class Vector>
std::size_t bytes_of(const Vector& v) {
    return v.capacity() * sizeof(v[0]);
}

std::int32_t size_of(std::size_t n) { return static_cast<std::int32_t>(n); }

void require(bool condition, const char* problem) {
    if (!condition) throw std::invalid_argument(std::string("damaged tree: ") + problem);
}

bool within(std::int64_t begin, std::int64_t size, std::size_t limit) {
    return begin >= 0 && size >= 0 && begin + size <= static_cast<std::int64_t>(limit);
}

}  // namespace

std::size_t Tree::n_bytes() const {
    return bytes_of(left) + bytes_of(centroid_begin) + bytes_of(centroid_size) +
           bytes_of(count_begin) + bytes_of(count_size) + bytes_of(row_begin) + bytes_of(row_size) +
           bytes_of(centroid_class) + bytes_of(centroid_source) + bytes_of(half_norm) +
           bytes_of(side) + bytes_of(halves) + bytes_of(count_class) + bytes_of(count) +
           bytes_of(rows);
}

void Tree::add_node(std::int32_t first_row, std::int32_t n_rows) {
    left.push_back(kLeaf);
    centroid_begin.push_back(0);
    centroid_size.push_back(0);
    count_begin.push_back(0);
    count_size.push_back(0);
    row_begin.push_back(first_row);
    row_size.push_back(n_rows);
}

void Tree::plant(std::vector<std::int32_t> training_rows) {
    for (std::vector<std::int32_t>* v :
         {&left, &centroid_begin, &centroid_size, &count_begin, &count_size, &row_begin, &row_size,
          &centroid_class, &centroid_source, &count_class, &count})
        v->clear();
    half_norm.clear();
    side.clear();
    halves.clear();
    n_comparisons = 0;
    rows = std::move(training_rows);
    add_node(0, size_of(rows.size()));
}

std::int32_t Tree::split(std::int32_t leaf, const NcmSplit& split, std::size_t width,
                         std::int32_t n_left) {
    const auto node = static_cast<std::size_t>(leaf);
    const std::int32_t child = size_of(n_nodes());
    left[node] = child;
    centroid_begin[node] = size_of(centroid_class.size());
    centroid_size[node] = size_of(split.n_centroids());
    for (std::size_t j = 0; j < split.n_centroids(); ++j) {
        centroid_class.push_back(split.classes[j]);
        half_norm.push_back(split.half_norms[j]);
        side.push_back(split.sides[j]);
        if (split.sources[j] != NcmSplit::kNewMean) {
            centroid_source.push_back(split.sources[j]);
            continue;
        }
        const std::int32_t slot = size_of(halves.size() / width);
        centroid_source.push_back(CentroidSource::slot(slot).code());
        const auto* mean = split.halves.data() + j * width;
        halves.insert(halves.end(), mean, mean + width);
    }
    const std::int32_t first = row_begin[node];
    const std::int32_t n_rows = row_size[node];
    add_node(first, n_left);
    add_node(first + n_left, n_rows - n_left);
    return child;
}

void Tree::set_counts(std::int32_t leaf, const std::vector<ClassCount>& counts) {
    const auto node = static_cast<std::size_t>(leaf);
    count_begin[node] = size_of(count.size());
    count_size[node] = size_of(counts.size());
    for (const ClassCount& entry : counts) {
        count_class.push_back(entry.class_id);
        count.push_back(entry.count);
    }
}

void Tree::validate(std::size_t width, std::size_t n_classes, std::size_t n_samples) const {
    const std::size_t n = n_nodes();
    require(n > 0, "it has no root");
    for (const auto* v :
         {&centroid_begin, &centroid_size, &count_begin, &count_size, &row_begin, &row_size})
        require(v->size() == n, "its node arrays differ in length");
    require(centroid_source.size() == centroid_class.size() &&
                half_norm.size() == centroid_class.size() && side.size() == centroid_class.size(),
            "its centroid arrays differ in length");
    require(count_class.size() == count.size(), "its count arrays differ in length");
    require(width > 0 && halves.size() % width == 0, "a mean is cut off");
    // Every node but the root must be the child of exactly one node before it: no cycles.
    std::vector<bool> has_parent(n, false);
    for (std::size_t i = 0; i < n; ++i) {
        if (!rows.empty())
            require(within(row_begin[i], row_size[i], rows.size()), "rows of a node");
        if (left[i] == kLeaf) {
            require(count_size[i] > 0 && within(count_begin[i], count_size[i], count.size()),
                    "class counts of a leaf");
            continue;
        }
        require(left[i] > static_cast<std::int64_t>(i) && within(left[i], 2, n), "a child link");
        const auto child = static_cast<std::size_t>(left[i]);
        require(!has_parent[child] && !has_parent[child + 1], "a node with two parents");
        has_parent[child] = has_parent[child + 1] = true;
        require(centroid_size[i] >= 2 && centroid_size[i] <= 65535 &&
                    within(centroid_begin[i], centroid_size[i], centroid_class.size()),
                "centroids of a node");
    }
    for (std::size_t i = 1; i < n; ++i) require(has_parent[i], "an unreachable node");
    const std::size_t n_slots = halves.size() / width;
    for (std::size_t j = 0; j < centroid_class.size(); ++j) {
        const CentroidSource source = CentroidSource::from_code(centroid_source[j]);
        require(within(source.index(), 1, source.is_row() ? n_samples : n_slots),
                "the source of a centroid");
        require(within(centroid_class[j], 1, n_classes), "the class of a centroid");
        require(side[j] <= 1, "the side of a centroid");
        require(std::isfinite(half_norm[j]), "the norm of a centroid");
    }
    for (std::size_t j = 0; j < count.size(); ++j) {
        require(count[j] > 0, "a class count");
        require(within(count_class[j], 1, n_classes), "the class of a count");
    }
    for (const std::int32_t row : rows) require(within(row, 1, n_samples), "a training row");
}

}  // namespace evergrow
