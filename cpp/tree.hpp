// A tree is data: arrays that can be read and edited. It knows nothing of randomness,
// parameters or how a split was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aligned.hpp"
#include "split.hpp"

namespace evergrow {

class Samples;

struct ClassCount {
    std::int32_t class_id;
    std::int32_t count;
};

constexpr std::int32_t kLeaf = -1;

struct Tree {
    // Nodes. The root is 0; children are neighbours, right = left + 1, and follow their parent.
    std::vector<std::int32_t> left;                           // kLeaf at a leaf
    std::vector<std::int32_t> centroid_begin, centroid_size;  // of a splitting node
    std::vector<std::int32_t> count_begin, count_size;        // of a leaf
    std::vector<std::int32_t> row_begin, row_size;            // of every node

    // Centroids of all splitting nodes.
    std::vector<std::int32_t> centroid_class;
    std::vector<std::int32_t> centroid_source;  // codes of CentroidSource
    std::vector<float> half_norm;
    std::vector<std::uint8_t> side;
    AlignedVector<std::uint16_t> halves;  // slots of `width` numbers

    // Class counts of all leaves.
    std::vector<std::int32_t> count_class, count;

    // The training rows: those of a node lie together, sorted by class within a leaf. Empty in a
    // tree kept for inference.
    std::vector<std::int32_t> rows;

    // Distances computed while growing, the papers' measure of training cost.
    std::uint64_t n_comparisons = 0;

    std::size_t n_nodes() const { return left.size(); }
    bool is_leaf(std::int32_t node) const { return left[static_cast<std::size_t>(node)] == kLeaf; }
    std::size_t n_bytes() const;

    // One leaf that holds all the rows; the arrays keep their room.
    void plant(std::vector<std::int32_t> training_rows);
    // Turns a leaf into a splitting node; its first `n_left` rows go left. Returns the left child.
    std::int32_t split(std::int32_t leaf, const NcmSplit& split, std::size_t width,
                       std::int32_t n_left);
    void set_counts(std::int32_t leaf, const std::vector<ClassCount>& counts);

    // Throws std::invalid_argument unless every index stays within its array: a tree read from
    // a file may hold anything.
    void validate(std::size_t width, std::size_t n_classes, std::size_t n_samples) const;

  private:
    void add_node(std::int32_t first_row, std::int32_t n_rows);
};

}  // namespace evergrow
