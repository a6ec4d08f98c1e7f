#include "codebook/code_words.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace evergrow {
namespace {

// One step waits for the one before it; this many descriptors in turns keep the processor busy.
constexpr std::size_t kLanes = 16;
// Rows that stay in the second cache while they go through all trees.
constexpr std::size_t kBlock = 64;
// Rows per task.
constexpr std::size_t kTaskRows = 4096;
// So many are coded before anyone could wish to interrupt; starting a thread takes longer than
// coding an image.
constexpr std::size_t kAtOnce = 4 * kTaskRows;

}  // namespace

WordCoder::WordCoder(const std::vector<WordTree>& trees) {
    for (const WordTree& tree : trees) {
        Steps steps;
        steps.word = tree.word;
        for (std::size_t i = 0; i < tree.n_nodes(); ++i)
            steps.steps.push_back(
                tree.is_leaf(i)
                    ? Step{std::numeric_limits<float>::infinity(), 0, static_cast<std::int32_t>(i)}
                    : Step{tree.threshold[i], tree.feature[i], tree.child[i]});
        trees_.push_back(std::move(steps));
    }
}

void WordCoder::descend(const Steps& tree, const float* rows, std::size_t n_rows,
                        std::size_t n_features, std::int32_t* words) const {
    std::array<std::int32_t, kLanes> node{};
    const Step* steps = tree.steps.data();
    for (bool moving = true; moving;) {
        std::int32_t moved = 0;
        for (std::size_t lane = 0; lane < n_rows; ++lane) {
            const Step step = steps[node[lane]];
            const float value = rows[lane * n_features + static_cast<std::size_t>(step.feature)];
            const std::int32_t next = step.child + (value > step.threshold ? 1 : 0);
            moved |= next ^ node[lane];
            node[lane] = next;
        }
        moving = moved != 0;
    }
    for (std::size_t lane = 0; lane < n_rows; ++lane)
        words[lane * n_trees()] = tree.word[static_cast<std::size_t>(node[lane])];
}

bool WordCoder::code(const float* rows, std::size_t n_rows, std::size_t n_features,
                     std::int32_t* words, std::size_t n_threads, const Poll& poll) const {
    const auto block = [&](std::size_t begin, std::size_t end) {
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
