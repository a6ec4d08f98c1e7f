#include "codebook/word_tree.hpp"

#include <cmath>
#include <stdexcept>

namespace evergrow {
namespace {

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

}  // namespace

std::int32_t WordTree::split(std::int32_t leaf, std::int32_t on_feature, float at) {
    const auto left = static_cast<std::int32_t>(n_nodes());
    const auto node = static_cast<std::size_t>(leaf);
    feature[node] = on_feature;
    threshold[node] = at;
    child[node] = left;
    word[node] = kNoWord;
    const std::size_t n = n_nodes() + 2;
    feature.resize(n, 0);
    threshold.resize(n, 0.0F);
    child.resize(n, kLeaf);
    word.resize(n, kNoWord);
    return left;
}

void check_word_tree(const WordTree& tree, std::size_t n_features) {
    const std::size_t n = tree.n_nodes();
    require(n % 2 == 1 && tree.feature.size() == n && tree.threshold.size() == n &&
                tree.word.size() == n,
            "damaged tree: its arrays differ in length, or its number of nodes is even");
    std::vector<bool> has_parent(n, false), has_leaf(tree.n_words(), false);
    for (std::size_t i = 0; i < n; ++i) {
        if (tree.is_leaf(i)) {
            const std::int32_t word = tree.word[i];
            require(word >= 0 && static_cast<std::size_t>(word) < tree.n_words() &&
                        !has_leaf[static_cast<std::size_t>(word)],
                    "damaged tree: its leaves do not have each word once");
            has_leaf[static_cast<std::size_t>(word)] = true;
            continue;
        }
        const std::int32_t left = tree.child[i];
        require(left > 0 && static_cast<std::size_t>(left) > i &&
                    static_cast<std::size_t>(left) + 1 < n &&
                    !has_parent[static_cast<std::size_t>(left)] &&
                    !has_parent[static_cast<std::size_t>(left) + 1],
                "damaged tree: a child link is out of range or not after its parent, or a child "
                "has two parents");
        has_parent[static_cast<std::size_t>(left)] = true;
        has_parent[static_cast<std::size_t>(left) + 1] = true;
        require(tree.feature[i] >= 0 && static_cast<std::size_t>(tree.feature[i]) < n_features,
                "damaged tree: a feature is out of range");
        require(tree.word[i] == WordTree::kNoWord, "damaged tree: a splitting node has a word");
        require(std::isfinite(tree.threshold[i]), "damaged tree: a threshold is not finite");
    }
    for (std::size_t i = 1; i < n; ++i)
        require(has_parent[i], "damaged tree: a node has no parent");
}

}  // namespace evergrow
