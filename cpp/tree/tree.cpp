#include "tree/tree.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace evergrow {
namespace {

std::int32_t number(std::size_t n) {
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::length_error("a tree has too many nodes, counts or rows");
    return static_cast<std::int32_t>(n);
}

// Writes in place of the old values if they fit, else at the end of the array.
template <class T>
void rewrite(PagedArray<T>& array, std::int32_t& begin, std::int32_t& size, const T* values,
             std::size_t n, std::size_t& dead) {
    if (n > as_index(size)) {
        dead += as_index(size);
        begin = number(array.size());
        for (std::size_t i = 0; i < n; ++i) array.push_back(values[i]);
    } else {
        dead += as_index(size) - n;
        array.write(as_index(begin), values, n);
    }
    size = number(n);
}

template <class T>
void append_run(const PagedArray<T>& from, std::int32_t begin, std::int32_t size, PagedArray<T>& to,
                std::int32_t& to_begin) {
    to_begin = number(to.size());
    for (std::int32_t i = begin; i < begin + size; ++i) to.push_back(from[as_index(i)]);
}

constexpr std::int32_t kNoSlot = -1;

}  // namespace

std::size_t Tree::n_bytes() const {
    return nodes_.n_bytes() + centroids_.n_bytes() + vectors_.n_bytes() + counts_.n_bytes() +
           rows_.n_bytes() + score_cache.n_bytes();
}

// Of the first count of this class or a higher one.
std::size_t Tree::place_of(const Node& node, std::int32_t class_id) const {
    std::size_t low = 0, high = as_index(node.count_size);
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (count(node, middle).class_id < class_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

std::int32_t Tree::count_of(const Node& node, std::int32_t class_id) const {
    const std::size_t place = place_of(node, class_id);
    if (place == as_index(node.count_size)) return 0;
    const ClassCount& found = count(node, place);
    return found.class_id == class_id ? found.count : 0;
}

void Tree::collect_rows(std::int32_t top, std::vector<std::int32_t>& rows) const {
    std::vector<std::int32_t> pending{top};
    pending.reserve(64);
    while (!pending.empty()) {
        const Node& at = node(pending.back());
        pending.pop_back();
        if (at.is_leaf()) {
            const std::size_t first = rows.size();
            rows.resize(first + as_index(at.row_size));
            rows_.read(as_index(at.row_begin), as_index(at.row_size), rows.data() + first);
        } else {
            pending.push_back(at.left + 1);
            pending.push_back(at.left);
        }
    }
}

void Tree::add_leaf(std::int32_t parent) {
    Node leaf;
    leaf.parent = parent;
    nodes_.push_back(leaf);
}

void Tree::reset() {
    nodes_.clear();
    centroids_.clear();
    vectors_.clear();
    counts_.clear();
    rows_.clear();
    dead_nodes_ = dead_centroids_ = dead_counts_ = dead_rows_ = 0;
    dead_vectors_ = 0;
    n_comparisons = 0;
    score_cache.clear();
    add_leaf(kNoParent);
}

std::int32_t Tree::split(std::int32_t leaf, const Split& split) {
    const std::int32_t child = number(nodes_.size());
    add_leaf(leaf);
    add_leaf(leaf);
    Node& node = *nodes_.edit(as_index(leaf));
    dead_rows_ += as_index(node.row_size);
    node.row_begin = node.row_size = 0;
    node.left = child;
    store(node, split);
    return child;
}

std::int32_t Tree::add_vector(const std::uint8_t* slot) {
    std::copy_n(slot, codec_.slot_bytes(), vectors_.append());
    return number(vectors_.size()) - 1;
}

void Tree::store(Node& node, const Split& split) {
    node.centroid_begin = number(centroids_.size());
    node.centroid_size = number(split.size());
    for (std::size_t j = 0; j < split.size(); ++j) {
        Centroid centroid = split.centroids[j];
        if (centroid.source == Centroid::kNewMean)
            centroid.source =
                CentroidSource::slot(add_vector(split.vectors.data() + j * codec_.slot_bytes()))
                    .code();
        centroids_.push_back(centroid);
    }
}

void Tree::set_centroids(std::int32_t i, const Split& split) {
    Node& node = *nodes_.edit(as_index(i));
    for (std::size_t j = 0; j < as_index(node.centroid_size); ++j) {
        const std::int32_t source = centroid(node, j).source;
        const bool stays =
            std::any_of(split.centroids.begin(), split.centroids.end(),
                        [source](const Centroid& other) { return other.source == source; });
        if (!stays && !CentroidSource::from_code(source).is_row()) dead_vectors_ += 1.0;
    }
    dead_centroids_ += as_index(node.centroid_size);
    store(node, split);
}

void Tree::mark_centroids_dead(const Node& node) {
    dead_centroids_ += as_index(node.centroid_size);
    // Other nodes may use the same means; about half of the means are used only once.
    for (std::size_t j = 0; j < as_index(node.centroid_size); ++j)
        if (!CentroidSource::from_code(centroid(node, j).source).is_row()) dead_vectors_ += 0.5;
}

void Tree::mark_dead(std::int32_t i) {
    const Node& gone = node(i);
    ++dead_nodes_;
    dead_counts_ += as_index(gone.count_size);
    dead_rows_ += as_index(gone.row_size);
    mark_centroids_dead(gone);
}

void Tree::cut(std::int32_t top) {
    std::vector<std::int32_t> pending{top};
    while (!pending.empty()) {
        const std::int32_t at = pending.back();
        const std::int32_t left = node(at).left;
        pending.pop_back();
        if (at != top) mark_dead(at);
        if (left == kLeaf) continue;
        pending.push_back(left);
        pending.push_back(left + 1);
    }
    Node& leaf = *nodes_.edit(as_index(top));
    mark_centroids_dead(leaf);
    leaf.left = kLeaf;
    leaf.centroid_begin = leaf.centroid_size = leaf.row_begin = leaf.row_size = 0;
}

void Tree::set_rows(std::int32_t leaf, const std::int32_t* rows, std::size_t n) {
    Node& node = *nodes_.edit(as_index(leaf));
    rewrite(rows_, node.row_begin, node.row_size, rows, n, dead_rows_);
}

void Tree::set_counts(std::int32_t i, const ClassCount* counts, std::size_t n) {
    Node& node = *nodes_.edit(as_index(i));
    rewrite(counts_, node.count_begin, node.count_size, counts, n, dead_counts_);
}

void Tree::change_counts(std::int32_t i, const std::vector<ClassCount>& changes) {
    const Node& old = node(i);
    // One row at a time is common, and mostly of a class that the node has.
    if (changes.size() == 1) {
        const std::int32_t before = count_of(old, changes[0].class_id);
        if (before != 0 && before + changes[0].count != 0) {
            const std::size_t place = place_of(old, changes[0].class_id);
            counts_.edit(as_index(old.count_begin) + place)->count += changes[0].count;
            return;
        }
    }
    merged_.clear();
    std::size_t j = 0;
    for (const ClassCount& change : changes) {
        for (; j < as_index(old.count_size) && count(old, j).class_id < change.class_id; ++j)
            merged_.push_back(count(old, j));
        std::int32_t sum = change.count;
        if (j < as_index(old.count_size) && count(old, j).class_id == change.class_id)
            sum += count(old, j++).count;
        if (sum != 0) merged_.push_back(ClassCount{change.class_id, sum});
    }
    for (; j < as_index(old.count_size); ++j) merged_.push_back(count(old, j));
    set_counts(i, merged_.data(), merged_.size());
}

Tree Tree::packed() const {
    const bool untouched = dead_nodes_ + dead_centroids_ + dead_counts_ + dead_rows_ == 0;
    Tree copy = untouched ? *this : rebuilt();
    copy.nodes_ = copy.nodes_.packed();
    copy.centroids_ = copy.centroids_.packed();
    copy.vectors_ = copy.vectors_.packed();
    copy.counts_ = copy.counts_.packed();
    copy.rows_ = copy.rows_.packed();
    return copy;
}

Tree Tree::rebuilt() const {
    Tree copy(kind_, codec_);
    copy.n_comparisons = n_comparisons;
    std::vector<std::int32_t> slot_of(vectors_.size(), kNoSlot);
    struct Move {
        std::int32_t from, to;
    };
    std::vector<Move> pending{{kRoot, kRoot}};
    copy.add_leaf(kNoParent);
    while (!pending.empty()) {
        const Move move = pending.back();
        pending.pop_back();
        const Node& old = node(move.from);
        Node fresh;
        fresh.parent = copy.node(move.to).parent;
        append_run(counts_, old.count_begin, old.count_size, copy.counts_, fresh.count_begin);
        fresh.count_size = old.count_size;
        if (old.is_leaf()) {
            append_run(rows_, old.row_begin, old.row_size, copy.rows_, fresh.row_begin);
            fresh.row_size = old.row_size;
        } else {
            fresh.left = number(copy.nodes_.size());
            copy.add_leaf(move.to);
            copy.add_leaf(move.to);
            append_run(centroids_, old.centroid_begin, old.centroid_size, copy.centroids_,
                       fresh.centroid_begin);
            fresh.centroid_size = old.centroid_size;
            copy.copy_vectors(fresh, *this, slot_of);
            pending.push_back({old.left + 1, fresh.left + 1});
            pending.push_back({old.left, fresh.left});
        }
        *copy.nodes_.edit(as_index(move.to)) = fresh;
    }
    return copy;
}

// Several nodes may use the same vector: the first one copies it, the others refer to the copy.
void Tree::copy_vectors(const Node& node, const Tree& from, std::vector<std::int32_t>& slot_of) {
    if (kind_ == SplitKind::kAxis) return;
    for (std::size_t j = 0; j < as_index(node.centroid_size); ++j) {
        Centroid& moved = *centroids_.edit(as_index(node.centroid_begin) + j);
        const auto source = CentroidSource::from_code(moved.source);
        if (source.is_row()) continue;
        std::int32_t& slot = slot_of[as_index(source.index())];
        if (slot == kNoSlot) slot = add_vector(from.vector(source.index()));
        moved.source = CentroidSource::slot(slot).code();
    }
}

std::size_t depth_of(const Tree& tree, std::int32_t node, std::size_t most) {
    std::size_t depth = 0;
    for (; node != kRoot && depth < most; node = tree.node(node).parent) ++depth;
    return depth;
}

bool is_reachable(const Tree& tree, std::int32_t node) {
    while (node != kRoot) {
        const std::int32_t parent = tree.node(node).parent;
        const std::int32_t left = tree.node(parent).left;
        if (left == kLeaf || (left != node && left + 1 != node)) return false;
        node = parent;
    }
    return true;
}

double Tree::dead_share() const {
    const std::size_t dead = dead_nodes_ * sizeof(Node) + dead_counts_ * sizeof(ClassCount) +
                             dead_rows_ * sizeof(std::int32_t) + dead_centroids_ * sizeof(Centroid);
    const double vectors = dead_vectors_ * static_cast<double>(codec_.slot_bytes());
    return (static_cast<double>(dead) + vectors) / static_cast<double>(n_bytes());
}

}  // namespace evergrow
