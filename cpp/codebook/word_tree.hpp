// A tree of thresholds on single features whose leaves are visual words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// Arrays by node. Children come after their parent, and the right child is left + 1.
struct WordTree {
    static constexpr std::int32_t kLeaf = 0;     // the root is not a child
    static constexpr std::int32_t kNoWord = -1;  // of a splitting node

    std::vector<std::int32_t> feature;
    std::vector<float> threshold;  // a descriptor goes right if its feature is larger
    std::vector<std::int32_t> child;
    std::vector<std::int32_t> word;

    // A tree of one leaf with word 0.
    static WordTree stump() { return WordTree{{0}, {0.0F}, {kLeaf}, {0}}; }

    std::size_t n_nodes() const { return child.size(); }
    std::size_t n_words() const { return (n_nodes() + 1) / 2; }
    bool is_leaf(std::size_t node) const { return child[node] == kLeaf; }

    // Gives a leaf two children and returns the left one; neither has a word yet.
    std::int32_t split(std::int32_t leaf, std::int32_t on_feature, float at);
};

// Throws std::invalid_argument unless descriptors of this width can descend the tree and its leaves
// have the words 0 to n_words - 1, each once.
void check_word_tree(const WordTree& tree, std::size_t n_features);

}  // namespace evergrow
