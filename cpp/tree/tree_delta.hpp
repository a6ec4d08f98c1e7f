// The changes of a tree since an older version of it, as bytes for another process that has the
// older version.
//
// Arrays are compared with their dead entries, so that indices mean the same on both sides. Both
// processes must run the same version of this code; files contain flat trees instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "samples/samples.hpp"
#include "tree/forest.hpp"
#include "tree/tree.hpp"

namespace evergrow {

class TreeDelta {
  public:
    // The difference to the tree that an update started from; the whole tree if that is null.
    static std::vector<std::uint8_t> since(const Tree* before, const Tree& after);
    // The tree after the changes. Throws std::invalid_argument if they belong to another tree.
    static std::shared_ptr<Tree> apply(const Tree* before, const std::uint8_t* bytes,
                                       std::size_t n_bytes);

  private:
    // Calls visit with each array of one tree and the same array of another.
    template <class One, class Other, class Visit>
    static void for_each_array(One& one, Other& other, Visit visit) {
        visit(one.nodes_, other.nodes_);
        visit(one.centroids_, other.centroids_);
        visit(one.vectors_, other.vectors_);
        visit(one.counts_, other.counts_);
        visit(one.rows_, other.rows_);
    }
};

// The changes of every tree of a forest; whole trees if `before` is null.
std::vector<std::vector<std::uint8_t>> deltas_since(const Forest* before, const Forest& after);

struct DeltaBytes {
    const std::uint8_t* data;
    std::size_t size;
};
// The forest after the changes, over these samples.
Forest apply_deltas(const Forest* before, const std::vector<DeltaBytes>& deltas,
                    std::shared_ptr<const Samples> samples, std::size_t n_classes);

}  // namespace evergrow
