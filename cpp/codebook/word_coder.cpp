#include "codebook/word_coder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

namespace evergrow {
namespace {

// Descriptors that descend a tree in turns. Each step depends on the last one of the same
// descriptor, so a single descriptor would leave the processor waiting.
constexpr std::size_t kLanes = 16;
// Rows that fit into the second-level cache while they pass all trees.
constexpr std::size_t kBlock = 64;
// Steps between two checks for descriptors that have reached a leaf.
constexpr int kRounds = 4;
// Rows per task.
constexpr std::size_t kTaskRows = 4096;
// Up to this many rows a single thread codes without polling: it takes no longer than starting a
// thread.
constexpr std::size_t kMaxWithoutPoll = 4 * kTaskRows;

// The features that trees read look random to the processor, so whole rows are prefetched.
inline void prefetch(const float* begin, const float* end) {
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
        steps.word = tree.word;
        for (std::size_t i = 0; i < tree.n_nodes(); ++i)
            steps.steps.push_back(
                tree.is_leaf(i)
                    ? Step{std::numeric_limits<float>::infinity(), 0, static_cast<std::int32_t>(i)}
                    : Step{tree.threshold[i], tree.feature[i], tree.child[i]});
        trees_.push_back(std::move(steps));
    }
}

// A lane that has reached a leaf continues with the next row, so that the time depends on the mean
// depth of the leaves and not on the maximum. This is checked every few steps only, so that most
// steps have no branches.
void WordCoder::descend(const Steps& tree, const float* rows, std::size_t n_rows,
                        std::size_t n_features, std::int32_t* words) const {
    const Step* steps = tree.steps.data();
    std::array<std::int32_t, kLanes> node{};
    std::array<std::size_t, kLanes> row{};
    std::size_t n_lanes = std::min(kLanes, n_rows), next_row = n_lanes;
    for (std::size_t lane = 0; lane < n_lanes; ++lane) row[lane] = lane;
    while (n_lanes > 0) {
        for (int round = 0; round < kRounds; ++round)
            for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                const Step step = steps[node[lane]];
                const float value =
                    rows[row[lane] * n_features + static_cast<std::size_t>(step.feature)];
                node[lane] = step.child + (value > step.threshold ? 1 : 0);
            }
        for (std::size_t lane = 0; lane < n_lanes;) {
            const std::int32_t at = node[lane];
            if (steps[at].child != at) {
                ++lane;
                continue;
            }
            words[row[lane] * n_trees()] = tree.word[static_cast<std::size_t>(at)];
            if (next_row < n_rows) {
                node[lane] = 0;
                row[lane++] = next_row++;
            } else {
                node[lane] = node[--n_lanes];
                row[lane] = row[n_lanes];
            }
        }
    }
}

bool WordCoder::code(const float* rows, std::size_t n_rows, std::size_t n_features,
                     std::int32_t* words, std::size_t n_threads, const Poll& poll) const {
    const auto block = [&](std::size_t begin, std::size_t end) {
        prefetch(rows + end * n_features, rows + std::min(n_rows, end + kBlock) * n_features);
        for (std::size_t t = 0; t < n_trees(); ++t)
            descend(trees_[t], rows + begin * n_features, end - begin, n_features,
                    words + begin * n_trees() + t);
    };
    if (n_rows <= kTaskRows || (n_threads <= 1 && n_rows <= kMaxWithoutPoll)) {
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
