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
    // Nodes. The root is 0; the right child is left + 1, and children come after their parent.
    std::vector<std::int32_t> left;                           // kLeaf at a leaf
    std::vector<std::int32_t> centroid_begin, centroid_size;  // of a splitting node
    std::vector<std::int32_t> count_begin, count_size;        // of a leaf
    std::vector<std::int32_t> row_begin, row_size;            // of every node

    // Centroids of all splitting nodes; see tree/split.hpp.
    std::vector<std::int32_t> centroid_class;
    std::vector<std::int32_t> centroid_source;  // codes of CentroidSource
    std::vector<float> half_norm;               // offsets
    std::vector<std::uint8_t> side;
    std::vector<std::int8_t> exponent;
    VectorFormat format = VectorFormat::kHalves;
    AlignedVector<std::uint8_t> vectors;  // slots of `format`

    // Class counts of all leaves.
    std::vector<std::int32_t> count_class, count;

    // Training rows: those of a node are consecutive, and sorted by class within a leaf. Empty in a
    // tree for inference only.
    std::vector<std::int32_t> rows;
};

// An edited tree is packed first, which renumbers its nodes; with `keep_numbers` nodes keep the
// numbers that prediction returns, and dead entries stay.
FlatTree flatten(const Tree& tree, bool keep_numbers = false);

// Throws std::invalid_argument unless the arrays are those of a tree; see tree/flat_tree_check.hpp.
Tree unflatten(const FlatTree& flat, SplitKind kind, std::size_t n_classes, const Samples& samples);

}  // namespace evergrow
