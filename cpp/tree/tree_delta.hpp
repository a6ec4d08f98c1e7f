// What an update changed in a tree, as bytes for whoever has the tree before it.
//
// Arrays are taken as they lie, with what edits have left behind: then the numbers in them mean the
// same on both sides. For processes of one version of this code; files hold flat trees.
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
    // All of a tree, or what is different from the one that it was made from by an update.
    static std::vector<std::uint8_t> since(const Tree* before, const Tree& after);
    // The tree after the changes. Throws std::invalid_argument if they are those of another tree.
    static std::shared_ptr<Tree> applied(const Tree* before, const std::uint8_t* bytes,
                                         std::size_t n_bytes);

  private:
    // Every array of a tree together with the one of another tree.
    template <class One, class Other, class Visit>
    static void for_each_array(One& one, Other& other, Visit visit) {
        visit(one.nodes_, other.nodes_);
        visit(one.centroids_, other.centroids_);
        visit(one.means_, other.means_);
        visit(one.counts_, other.counts_);
        visit(one.rows_, other.rows_);
    }
};

// The same for every tree of a forest; without a forest before it, all of each tree.
std::vector<std::vector<std::uint8_t>> deltas_since(const Forest* before, const Forest& after);

struct DeltaBytes {
    const std::uint8_t* data;
    std::size_t size;
};
// The forest after the changes, over these samples.
Forest apply_deltas(const Forest* before, const std::vector<DeltaBytes>& deltas,
                    std::shared_ptr<const Samples> samples, std::size_t n_classes);

}  // namespace evergrow
