// A tree as the plain arrays of a model file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrays/aligned.hpp"
#include "samples/samples.hpp"
#include "tree/tree.hpp"

namespace evergrow {

template <template <class> class Array>
struct FlatTreeOf {
    // Nodes. The root is 0; the right child is left + 1, and children come after their parent.
    Array<std::int32_t> left;                           // kLeaf at a leaf
    Array<std::int32_t> centroid_begin, centroid_size;  // of a splitting node
    Array<std::int32_t> count_begin, count_size;        // of a leaf
    Array<std::int32_t> row_begin, row_size;            // of every node

    // Centroids of all splitting nodes; see tree/split.hpp.
    Array<std::int32_t> centroid_class;
    Array<std::int32_t> centroid_source;  // codes of CentroidSource
    Array<float> half_norm;               // offsets
    Array<std::uint8_t> side;
    Array<std::int8_t> exponent;
    VectorFormat format = VectorFormat::kHalves;
    Array<std::uint8_t> vectors;  // slots of `format`

    // Class counts of all leaves.
    Array<std::int32_t> count_class, count;

    // Training rows: those of a node are consecutive, and sorted by class within a leaf. Empty in a
    // tree for inference only.
    Array<std::int32_t> rows;
};

// Memory of another owner, which must not change while it is read.
template <class T>
class ArrayView {
  public:
    using value_type = T;

    ArrayView() = default;
    ArrayView(const T* data, std::size_t size) : data_(data), size_(size) {}

    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    const T* data_ = nullptr;
    std::size_t size_ = 0;
};

// Arrays of its own, and arrays that lie in a file or a message.
using FlatTree = FlatTreeOf<AlignedVector>;
using FlatTreeView = FlatTreeOf<ArrayView>;

// An edited tree is packed first, which renumbers its nodes; with `keep_numbers` nodes keep the
// numbers that prediction returns, and dead entries stay.
FlatTree flatten(const Tree& tree, bool keep_numbers = false);

// Checks the arrays, then copies them once. Throws std::invalid_argument unless they are those of a
// tree; see tree/flat_tree_check.hpp.
Tree unflatten(const FlatTreeView& flat, SplitKind kind, std::size_t n_classes,
               const Samples& samples);

}  // namespace evergrow
