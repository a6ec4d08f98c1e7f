// From the class counts of a leaf to probabilities of classes: Eq. (4) of Ristin 2014, and what
// coarse and fine labels make of it (Ristin 2015, sec. 4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "score/class_hierarchy.hpp"
#include "tree/tree.hpp"

namespace evergrow {

struct ClassShare {
    std::int32_t class_id;
    double share;
};

// What reading leaves one after the other needs.
struct LeafSpace {
    std::vector<ClassShare> shares;
    // By class, all zero between uses: of a coarse one the samples at a node and the share that is
    // left to divide, of a finest one its share.
    std::vector<std::int64_t> n_of;
    std::vector<double> left, share_of;
    std::vector<std::int32_t> open;  // coarse classes with something left to divide
};

// How leaves are read. Where samples have coarse or fine labels only the finest classes get a
// share.
//   frequencies   the share of each class among the samples of the leaf
//   joint         the share of each finest class among those samples that have one; a leaf
//                 without any is read as its nearest ancestor that has some
//   hierarchical  P(coarse), over all samples of the leaf, times P(fine | coarse), which is
//                 smoothed towards the parent node
struct LeafReading {
    // Adds the shares of the classes at a leaf to `space.shares`.
    using Read = void (*)(const LeafReading&, const Tree&, std::int32_t leaf, LeafSpace& space);

    ClassHierarchy hierarchy;
    Read read;
    double smoothing;  // samples that the parent node counts for
};

// Each class by its frequency.
LeafReading plain_reading();
// Throws std::invalid_argument if there is no reading of this name, or the smoothing is negative or
// no number.
LeafReading reading_named(const std::string& name, ClassHierarchy hierarchy, double smoothing);

}  // namespace evergrow
