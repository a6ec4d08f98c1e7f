#include "predict/prediction.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "predict/descent.hpp"

namespace evergrow {
namespace {

// Rows that a thread takes through a tree together: enough to share the conversion of centroids,
// few enough for the cache.
constexpr std::size_t kMaxBlock = 4096;
// With fewer rows, starting threads costs more than it saves.
constexpr std::size_t kInlineRows = 16;

template <class T>
void standardize_block(const Query& query, std::size_t first, std::size_t n, std::size_t width,
                       AlignedVector<float>& out) {
    const std::size_t n_features = query.standardizer.n_features();
    const T* data = static_cast<const T*>(query.data) + first * n_features;
    std::vector<float*> places(n);
    for (std::size_t i = 0; i < n; ++i) places[i] = out.data() + i * width;
    query.standardizer.apply(data, n, places.data());
}

// Buffers of one thread.
struct Scratch {
    explicit Scratch(const Forest& forest) : descent(forest) {}

    Descent descent;
    AlignedVector<float> rows;
    std::vector<std::int32_t> leaf;
    LeafBuffers buffers;
};

void weigh(const VoteWeights& votes, std::size_t tree, std::vector<ClassShare>& shares) {
    for (ClassShare& seen : shares) seen.share *= votes.weight(tree, as_index(seen.class_id));
}

// Adds the class probabilities of the leaves of one tree. `order` has the rows of a leaf in
// sequence, so that each leaf is read once.
void add_leaves(const Forest& forest, std::size_t t, const Query& query,
                const std::vector<std::uint32_t>& order, Scratch& scratch, double* probabilities) {
    const std::size_t n_classes = forest.n_classes;
    std::int32_t last = kNoParent;
    for (const std::size_t i : order) {
        if (scratch.leaf[i] != last) {
            last = scratch.leaf[i];
            scratch.buffers.shares.clear();
            query.reading->read(*query.reading, *forest.trees[t], last, scratch.buffers);
            if (query.votes != nullptr) weigh(*query.votes, t, scratch.buffers.shares);
        }
        for (const ClassShare& seen : scratch.buffers.shares)
            probabilities[i * n_classes + static_cast<std::size_t>(seen.class_id)] += seen.share;
    }
}

// From the sums over all trees to means that add up to one for each row.
void average(const Forest& forest, const VoteWeights* votes, std::size_t n_rows, double* sums) {
    const std::size_t n_classes = forest.n_classes;
    if (votes == nullptr) {
        const auto n_trees = static_cast<double>(forest.trees.size());
        std::for_each(sums, sums + n_rows * n_classes, [n_trees](double& p) { p /= n_trees; });
        return;
    }
    for (double* row = sums; row != sums + n_rows * n_classes; row += n_classes) {
        double total = 0;
        for (std::size_t c = 0; c < n_classes; ++c) total += row[c] /= votes->sum(c);
        if (!(total > 0)) continue;
        for (std::size_t c = 0; c < n_classes; ++c) row[c] /= total;
    }
}

void predict_block(const Forest& forest, const Query& query, const Outputs& outputs,
                   std::size_t first, std::size_t n, Scratch& scratch, const StopFlag& stop) {
    const std::size_t width = forest.samples->width();
    const std::size_t n_trees = forest.trees.size();
    AlignedVector<float>& rows = scratch.rows;
    std::vector<std::int32_t>& leaf = scratch.leaf;
    rows.resize(n * width);
    if (query.is_double)
        standardize_block<double>(query, first, n, width, rows);
    else
        standardize_block<float>(query, first, n, width, rows);
    std::uint64_t* comparisons =
        outputs.comparisons == nullptr ? nullptr : outputs.comparisons + first;
    leaf.resize(n);
    for (std::size_t t = 0; t < n_trees && !stop; ++t) {
        const Tree& tree = *forest.trees[t];
        const std::vector<std::uint32_t>& order =
            scratch.descent.run(tree, rows, n, leaf.data(), comparisons);
        if (outputs.leaves != nullptr)
            for (std::size_t i = 0; i < n; ++i) outputs.leaves[(first + i) * n_trees + t] = leaf[i];
        if (outputs.probabilities != nullptr)
            add_leaves(forest, t, query, order, scratch,
                       outputs.probabilities + first * forest.n_classes);
    }
    if (outputs.probabilities != nullptr)
        average(forest, query.votes, n, outputs.probabilities + first * forest.n_classes);
}

}  // namespace

bool predict(const Forest& forest, const Query& query, const Outputs& outputs,
             std::size_t n_threads, const Poll& poll) {
    if (query.n_rows <= kInlineRows) {
        const StopFlag never(false);
        Scratch scratch(forest);
        predict_block(forest, query, outputs, 0, query.n_rows, scratch, never);
        return true;
    }
    const std::size_t share = (query.n_rows + n_threads - 1) / n_threads;
    const std::size_t block = std::min(kMaxBlock, std::max(kInlineRows, share));
    const std::size_t n_blocks = (query.n_rows + block - 1) / block;
    n_threads = std::min(n_threads, n_blocks);
    std::vector<std::unique_ptr<Scratch>> scratch(n_threads);
    return run_parallel(
        n_blocks, n_threads,
        [&](std::size_t index, std::size_t worker, const StopFlag& stop) {
            if (!scratch[worker]) scratch[worker] = std::make_unique<Scratch>(forest);
            const std::size_t first = index * block;
            predict_block(forest, query, outputs, first, std::min(block, query.n_rows - first),
                          *scratch[worker], stop);
        },
        poll);
}

LeafVotes read_leaves(const Forest& forest, std::size_t t, const LeafReading& reading,
                      const VoteWeights* votes) {
    const Tree& tree = *forest.trees[t];
    LeafVotes found;
    LeafBuffers buffers;
    std::vector<std::int32_t> pending{kRoot};
    found.begin.push_back(0);
    while (!pending.empty()) {
        const std::int32_t node = pending.back();
        pending.pop_back();
        if (!tree.is_leaf(node)) {
            pending.push_back(tree.node(node).left + 1);
            pending.push_back(tree.node(node).left);
            continue;
        }
        buffers.shares.clear();
        reading.read(reading, tree, node, buffers);
        if (votes != nullptr) weigh(*votes, t, buffers.shares);
        for (const ClassShare& seen : buffers.shares) {
            found.class_id.push_back(seen.class_id);
            found.share.push_back(seen.share);
        }
        found.node.push_back(node);
        found.begin.push_back(static_cast<std::int64_t>(found.share.size()));
    }
    return found;
}

Path trace(const Forest& forest, std::size_t tree_index, const double* values,
           const Standardizer& standardizer) {
    const Tree& tree = *forest.trees[tree_index];
    AlignedVector<float> standardized(forest.samples->width());
    float* row = standardized.data();
    standardizer.apply(values, 1, &row);
    double norm = 0;
    for (std::size_t i = 0; i < forest.n_features(); ++i)
        norm += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    std::vector<PathStep> steps;
    std::int32_t node = kRoot;
    while (!tree.is_leaf(node)) {
        const StoredCentroids stored(*forest.samples, tree, node);
        const bool right = stored.goes_right(row);
        PathStep step{node, right, 0, 0};
        if (tree.kind() == SplitKind::kAxis) {
            step.score = stored[0].offset - row[stored[0].class_id];
        } else {
            const Nearest found = stored.nearest(row);
            step.nearest = found.index;
            step.score = found.score;
            if (tree.kind() == SplitKind::kNcm)
                step.score = std::max(0.0, norm + 2.0 * static_cast<double>(found.score));
        }
        steps.push_back(step);
        node = tree.node(node).left + (right ? 1 : 0);
    }
    return Path{std::move(steps), node};
}

void copy_centroid(const Forest& forest, const Tree& tree, std::int32_t node, std::size_t j,
                   float* out) {
    AlignedVector<float> buffer(tree.width());
    const StoredCentroids stored(*forest.samples, tree, node);
    std::copy_n(stored.vector(j, buffer.data()), forest.n_features(), out);
}

}  // namespace evergrow
