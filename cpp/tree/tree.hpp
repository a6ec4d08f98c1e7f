// A tree as data: arrays that can be read and edited. It does not know random numbers, parameters
// or how a split was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays/paged_array.hpp"
#include "tree/score_cache.hpp"
#include "tree/split.hpp"
#include "tree/vector_format.hpp"

namespace evergrow {

// Node, row and class numbers as indices into arrays.
constexpr std::size_t as_index(std::int32_t number) { return static_cast<std::size_t>(number); }

struct ClassCount {
    std::int32_t class_id;
    std::int32_t count;
};

constexpr std::int32_t kLeaf = -1;
constexpr std::int32_t kRoot = 0;
constexpr std::int32_t kNoParent = -1;
// Nodes at this depth are leaves, so that work along a path is bounded.
constexpr std::size_t kMaxDepth = 4096;

// The right child follows the left one: right = left + 1.
struct Node {
    std::int32_t left = kLeaf;
    std::int32_t parent = kNoParent;
    std::int32_t centroid_begin = 0, centroid_size = 0;  // of a splitting node
    std::int32_t count_begin = 0, count_size = 0;        // samples per class, sorted by class
    std::int32_t row_begin = 0, row_size = 0;            // of a leaf, sorted by class

    bool is_leaf() const { return left == kLeaf; }
};

// The arrays of a tree without dead entries.
struct TreeArrays {
    explicit TreeArrays(std::size_t slot_bytes) : vectors(slot_bytes) {}

    PagedArray<Node> nodes{1, kSmallPooledBytes};
    PagedArray<Centroid> centroids{1, kSmallPooledBytes};
    PagedArray<std::uint8_t> vectors;  // slots of the codec
    PagedArray<ClassCount> counts{1, kSmallPooledBytes};
    PagedArray<std::int32_t> rows{1, kSmallPooledBytes};
};

// Edits leave dead entries in the arrays; `packed` makes a tree without them. Copies are cheap:
// they share the pages that neither has changed.
class Tree {
  public:
    Tree(SplitKind kind, VectorCodec codec) : Tree(kind, codec, TreeArrays(codec.slot_bytes())) {}
    Tree(SplitKind kind, VectorCodec codec, TreeArrays arrays)
        : kind_(kind),
          codec_(codec),
          nodes_(std::move(arrays.nodes)),
          centroids_(std::move(arrays.centroids)),
          vectors_(std::move(arrays.vectors)),
          counts_(std::move(arrays.counts)),
          rows_(std::move(arrays.rows)) {}

    SplitKind kind() const { return kind_; }
    std::size_t width() const { return codec_.width(); }
    // Writes and reads the vectors of the tree.
    const VectorCodec& codec() const { return codec_; }
    std::size_t n_nodes() const { return nodes_.size() - dead_nodes_; }
    // One more than the highest node number, dead nodes included.
    std::size_t node_limit() const { return nodes_.size(); }
    std::size_t n_vectors() const { return vectors_.size(); }
    std::size_t n_bytes() const;

    const Node& node(std::int32_t i) const { return nodes_[static_cast<std::size_t>(i)]; }
    bool is_leaf(std::int32_t i) const { return node(i).is_leaf(); }
    // The j-th centroid, class count or row of a node.
    const Centroid& centroid(const Node& node, std::size_t j) const {
        return centroids_[static_cast<std::size_t>(node.centroid_begin) + j];
    }
    const ClassCount& count(const Node& node, std::size_t j) const {
        return counts_[static_cast<std::size_t>(node.count_begin) + j];
    }
    std::int32_t row(const Node& node, std::size_t j) const {
        return rows_[static_cast<std::size_t>(node.row_begin) + j];
    }
    const std::uint8_t* vector(std::int32_t slot) const {
        return vectors_.at(static_cast<std::size_t>(slot));
    }
    // Number of samples of a class at a node.
    std::int32_t count_of(const Node& node, std::int32_t class_id) const;
    // Appends the training rows of all leaves below a node, from left to right.
    void collect_rows(std::int32_t node, std::vector<std::int32_t>& rows) const;

    // Makes the tree one empty leaf; the arrays keep their memory.
    void reset();
    // Turns a leaf into a splitting node with two empty leaves; returns the left one.
    std::int32_t split(std::int32_t leaf, const Split& split);
    // Turns a splitting node into an empty leaf; its counts stay.
    void cut(std::int32_t node);
    void set_rows(std::int32_t leaf, const std::int32_t* rows, std::size_t n);
    void set_counts(std::int32_t node, const ClassCount* counts, std::size_t n);
    // Adds changes, sorted by class; classes with a count of zero are removed.
    void change_counts(std::int32_t node, const std::vector<ClassCount>& changes);
    std::int32_t add_vector(const std::uint8_t* slot);
    // Replaces the centroids of a splitting node; new vectors are stored.
    void set_centroids(std::int32_t node, const Split& split);

    // A copy without dead entries, in memory of its exact size. The nodes of an edited tree are
    // renumbered in the order in which a grown tree has them.
    Tree packed() const;
    // Approximate share of memory that dead entries take.
    double dead_share() const;

    // Speeds up updates of centroids; not part of the value of the tree.
    mutable ScoreCache score_cache;

    // Distances computed by training, the measure of cost in [Ristin2014 Sec. 5].
    std::uint64_t n_comparisons = 0;

  private:
    std::size_t place_of(const Node& node, std::int32_t class_id) const;
    void add_leaf(std::int32_t parent);
    void store(Node& node, const Split& split);
    void mark_dead(std::int32_t node);
    void mark_centroids_dead(const Node& node);
    Tree rebuilt() const;
    void copy_vectors(const Node& node, const Tree& from, std::vector<std::int32_t>& slot_of);

    SplitKind kind_;
    VectorCodec codec_;
    PagedArray<Node> nodes_;
    PagedArray<Centroid> centroids_;
    PagedArray<std::uint8_t> vectors_;  // slots of the codec
    PagedArray<ClassCount> counts_;
    PagedArray<std::int32_t> rows_;
    std::size_t dead_nodes_ = 0, dead_centroids_ = 0, dead_counts_ = 0, dead_rows_ = 0;
    double dead_vectors_ = 0;         // approximate
    std::vector<ClassCount> merged_;  // buffer
};

// Number of nodes above a node, counted up to a limit: trees may be as deep as they have nodes.
std::size_t depth_of(const Tree& tree, std::int32_t node, std::size_t most);
// Whether the node is still part of the tree: a node that was cut does not link to its children.
bool is_reachable(const Tree& tree, std::int32_t node);

}  // namespace evergrow
