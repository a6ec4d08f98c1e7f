#include "codebook/word_trees.hpp"

#include <utility>

#include "codebook/word_grower.hpp"
#include "run/random_stream.hpp"

namespace evergrow {
namespace {

const std::vector<WordTree>& checked(const std::vector<WordTree>& trees, std::size_t n_features) {
    for (const WordTree& tree : trees) check_word_tree(tree, n_features);
    return trees;
}

}  // namespace

WordTrees::WordTrees(std::vector<WordTree> trees, std::size_t n_features)
    : trees_(std::move(trees)), n_features_(n_features), coder_(checked(trees_, n_features)) {}

WordTrees WordTrees::stumps(std::size_t n_trees, std::size_t n_features) {
    return WordTrees(std::vector<WordTree>(n_trees, WordTree::stump()), n_features);
}

std::vector<std::size_t> WordTrees::words_per_tree() const {
    std::vector<std::size_t> counts;
    for (const WordTree& tree : trees_) counts.push_back(tree.n_words());
    return counts;
}

std::optional<WordTrees> WordTrees::grown(const Descriptors& descriptors, const WordRules& rules,
                                          std::uint64_t seed, std::uint64_t update,
                                          std::size_t n_threads, const Poll& poll) const {
    std::vector<WordTree> trees = trees_;
    std::vector<std::uint64_t> keys;
    for (std::size_t t = 0; t < trees.size(); ++t)
        keys.push_back(purpose_key(tree_key(seed, t, update), Purpose::kNodes));
    if (!grow_words(trees, descriptors, rules, keys, n_threads, poll)) return std::nullopt;
    return WordTrees(std::move(trees), n_features_);
}

}  // namespace evergrow
