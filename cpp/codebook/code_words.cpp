#include "codebook/code_words.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace evergrow {
namespace {

// One step waits for the one before it; this many descriptors in turns keep the processor busy.
constexpr std::size_t kLanes = 32;
// Rows that stay in the second cache while they go through all trees.
constexpr std::size_t kBlock = 64;
constexpr std::int32_t kLeaf = -1;
// Rows per task.
constexpr std::size_t kTaskRows = 4096;
// So many are coded before anyone could wish to interrupt; starting a thread takes longer than
// coding an image.
constexpr std::size_t kAtOnce = 4 * kTaskRows;

// Which features a descriptor is asked for looks random to the processor, so it is told.
inline void ask_for(const float* begin, const float* end) {
#if defined(__GNUC__) || defined(__clang__)
    constexpr std::ptrdiff_t kLine = 16;
    for (; begin < end; begin += kLine) __builtin_prefetch(begin, 0, 2);
#else
    (void)begin;
    (void)end;
#endif
}

}  // namespace

WordCoder::WordCoder(const std::vector<WordTree>& trees) {
    for (const WordTree& tree : trees) {
        Steps steps;
        for (std::size_t i = 0; i < tree.n_nodes(); ++i)
            steps.push_back(tree.is_leaf(i)
                                ? Step{0.0F, kLeaf, tree.word[i]}
                                : Step{tree.threshold[i], tree.feature[i], tree.child[i]});
        trees_.push_back(std::move(steps));
    }
}

// All rows take a step in turns, and those that have arrived drop out: how long it takes depends on
// the mean depth of the leaves, not on the deepest.
void WordCoder::descend(const Steps& tree, const float* rows, std::size_t n_rows,
                        std::size_t n_features, std::int32_t* words) const {
    std::array<std::int32_t, kLanes> node{}, moving{};
    const Step* steps = tree.data();
    std::size_t n_moving = 0;
    if (steps[0].feature != kLeaf)
        for (; n_moving < n_rows; ++n_moving)
            moving[n_moving] = static_cast<std::int32_t>(n_moving);
    while (n_moving > 0) {
        std::size_t n_left = 0;
        for (std::size_t i = 0; i < n_moving; ++i) {
            const auto row = static_cast<std::size_t>(moving[i]);
            const Step step = steps[node[row]];
            const float value = rows[row * n_features + static_cast<std::size_t>(step.feature)];
            const std::int32_t next = step.child + (value > step.threshold ? 1 : 0);
            node[row] = next;
            moving[n_left] = moving[i];
            n_left += steps[next].feature != kLeaf ? 1 : 0;
        }
        n_moving = n_left;
    }
    for (std::size_t row = 0; row < n_rows; ++row) words[row * n_trees()] = steps[node[row]].child;
}

bool WordCoder::code(const float* rows, std::size_t n_rows, std::size_t n_features,
                     std::int32_t* words, std::size_t n_threads, const Poll& poll) const {
    const auto block = [&](std::size_t begin, std::size_t end) {
        ask_for(rows + end * n_features, rows + std::min(n_rows, end + kBlock) * n_features);
        for (std::size_t t = 0; t < n_trees(); ++t)
            for (std::size_t row = begin; row < end; row += kLanes)
                descend(trees_[t], rows + row * n_features, std::min(kLanes, end - row), n_features,
                        words + row * n_trees() + t);
    };
    if (n_rows <= kTaskRows || (n_threads <= 1 && n_rows <= kAtOnce)) {
        for (std::size_t row = 0; row < n_rows; row += kBlock)
            block(row, std::min(n_rows, row + kBlock));
        return true;
    }
    return run_parallel((n_rows + kTaskRows - 1) / kTaskRows, n_threads,
                        [&](std::size_t task, std::size_t, const StopFlag& stop) {
                            const std::size_t end = std::min(n_rows, (task + 1) * kTaskRows);
                            for (std::size_t row = task * kTaskRows; row < end && !stop;
                                 row += kBlock)
                                block(row, std::min(end, row + kBlock));
                        },
                        poll);
}

}  // namespace evergrow
