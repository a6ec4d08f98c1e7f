// Checks the arrays of a model file before a tree is made of them: a file may contain anything.
//
// What passes is a tree that every other part of the core may trust. Node links make one tree whose
// depth is limited. The ranges of nodes cover their arrays without overlap and without holes. Every
// class, feature, row and slot exists for the kind of tree that the caller expects. Counts are
// positive, and their sum fits. Memory is bounded, too: counts of splitting nodes, which a file
// leaves out, take at most kMaxExpansion times the bytes of the file's arrays. All checks take
// linear time.
#pragma once

#include <cstddef>

#include "samples/samples.hpp"
#include "tree/flat_tree.hpp"

namespace evergrow {

// Bytes of the counts of splitting nodes relative to the bytes of the arrays, and how many are
// always allowed.
constexpr std::size_t kMaxExpansion = 32;
constexpr std::size_t kFreeExpansion = std::size_t{1} << 24;

// Throws std::invalid_argument, which says what is wrong, unless the arrays are those of a tree.
void check_flat_tree(const FlatTreeView& flat, SplitKind kind, std::size_t n_classes,
                     const Samples& samples);

}  // namespace evergrow
