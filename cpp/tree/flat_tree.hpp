// A tree as the plain arrays of a model file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

struct FlatTree {
    // Nodes. The root is 0; children are neighbours, right = left + 1, and follow their parent.
    std::vector<std::int32_t> left;                           // kLeaf at a leaf
    std::vector<std::int32_t> centroid_begin, centroid_size;  // of a splitting node
    std::vector<std::int32_t> count_begin, count_size;        // of a leaf
    std::vector<std::int32_t> row_begin, row_size;            // of every node

    // Centroids of all splitting nodes; see split.hpp.
    std::vector<std::int32_t> centroid_class;
    std::vector<std::int32_t> centroid_source;  // codes of CentroidSource
    std::vector<float> half_norm;               // offsets
    std::vector<std::uint8_t> side;
    AlignedVector<std::uint16_t> halves;  // slots of `width` numbers

    // Class counts of all leaves.
    std::vector<std::int32_t> count_class, count;

    // The training rows: those of a node lie together, sorted by class within a leaf. Empty in a
    // tree kept for inference.
    std::vector<std::int32_t> rows;
};

FlatTree flatten(const Tree& tree);

// Throws std::invalid_argument unless every index stays within its array and every leaf counts what
// it holds: a tree read from a file may hold anything.
Tree unflatten(const FlatTree& flat, SplitKind kind, std::size_t n_classes, const Samples& samples);

}  // namespace evergrow
