// From the class counts of a leaf to class probabilities [Ristin2014 Eq. 4], also for coarse and
// fine classes [Ristin2015 Sec. 4].
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

// Buffers for reading leaves, and the result.
struct LeafBuffers {
    std::vector<ClassShare> shares;
    // By class, all zero between calls: its samples at a node, the share that remains to be divided
    // among the classes below it, and the share that it gets itself.
    std::vector<std::int64_t> n_of;
    std::vector<double> remaining, share_of;
    std::vector<std::int32_t> open;   // classes with a remaining share, all of one depth
    std::vector<std::int32_t> below;  // classes below them that have samples at a node
};

// How a leaf is read. In a tree of classes only the finest classes get a share.
//   frequencies   the share of each class in the samples of the leaf
//   joint         the share of each finest class in the samples that have one, or without such
//                 samples those of the nearest ancestor that has some [Ristin2015 Sec. 4.2]
//   hierarchical  P(coarse) over all samples of the leaf, times P(fine | coarse)
//                 [Ristin2015 Sec. 4.4], smoothed towards the parent node; with more levels, the
//                 product over all of them, which the paper does not define
struct LeafReading {
    // Appends the shares of the classes at a leaf to `buffers.shares`.
    using Read = void (*)(const LeafReading&, const Tree&, std::int32_t leaf, LeafBuffers& buffers);

    ClassHierarchy hierarchy;
    Read read;
    double smoothing;  // weight of the parent node, in samples
};

// The reading called frequencies.
LeafReading plain_reading();
// Throws std::invalid_argument if the name is unknown, or the smoothing is negative or not finite.
LeafReading reading_named(const std::string& name, ClassHierarchy hierarchy, double smoothing);

}  // namespace evergrow
