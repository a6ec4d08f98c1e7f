// A tree of thresholds on single features whose leaves are visual words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

// Arrays over nodes. Children come in pairs after their parent: the right one follows the left.
struct WordTree {
    static constexpr std::int32_t kLeaf = 0;     // the root is no one's child
    static constexpr std::int32_t kNoWord = -1;  // of a splitting node

    std::vector<std::int32_t> feature;
    std::vector<float> threshold;  // a descriptor goes right if its feature is above
    std::vector<std::int32_t> child;
    std::vector<std::int32_t> word;

    // One leaf, whose word is 0.
    static WordTree stump() { return WordTree{{0}, {0.0F}, {kLeaf}, {0}}; }

    std::size_t n_nodes() const { return child.size(); }
    std::size_t n_words() const { return (n_nodes() + 1) / 2; }
    bool is_leaf(std::size_t node) const { return child[node] == kLeaf; }

    // Gives a leaf two children and returns the left one; neither has a word yet.
    std::int32_t split(std::int32_t leaf, std::int32_t on_feature, float at);
};

// Throws std::invalid_argument unless the tree can be descended by descriptors of this width and
// its leaves bear the words 0 to n_words - 1, each once.
void check_word_tree(const WordTree& tree, std::size_t n_features);

}  // namespace evergrow
