#include "predict.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "half.hpp"

namespace evergrow {
namespace {

// A node that fewer rows reach is not worth unpacking: its centroids are read where they lie.
constexpr std::size_t kFewRows = 4;
// Rows a thread takes through a whole tree together: enough to share the unpacking of a node,
// few enough to stay in the processor's cache.
constexpr std::size_t kMaxBlock = 4096;
// Below this many rows starting threads costs more than it saves.
constexpr std::size_t kInlineRows = 16;

struct Nearest {
    std::int32_t index;
    float score;
};

// The centroids of one splitting node, as they are stored.
struct StoredCentroids {
    const Tree& tree;
    const Samples& samples;
    std::size_t begin;
    std::size_t count;

    StoredCentroids(const Forest& forest, const Tree& t, std::int32_t node)
        : tree(t),
          samples(*forest.samples),
          begin(static_cast<std::size_t>(t.centroid_begin[static_cast<std::size_t>(node)])),
          count(static_cast<std::size_t>(t.centroid_size[static_cast<std::size_t>(node)])) {}

    CentroidSource source(std::size_t j) const {
        return CentroidSource::from_code(tree.centroid_source[begin + j]);
    }
    const float* row(CentroidSource source) const {
        return samples.row(static_cast<std::size_t>(source.index()));
    }
    const std::uint16_t* halves(CentroidSource source) const {
        return tree.halves.data() + static_cast<std::size_t>(source.index()) * samples.width();
    }

    Nearest nearest(const float* x) const {
        const Kernels& kernel = kernels();
        Nearest best{0, kWorstScore};
        for (std::size_t j = 0; j < count; ++j) {
            const CentroidSource where = source(j);
            const float dot = where.is_row() ? kernel.dot_full(x, row(where), samples.width())
                                             : kernel.dot_half(x, halves(where), samples.width());
            const float score = tree.half_norm[begin + j] - dot;
            if (score < best.score) best = Nearest{static_cast<std::int32_t>(j), score};
        }
        return best;
    }
};

// Takes blocks of rows down trees; owns the space this needs.
class Descent {
  public:
    explicit Descent(const Forest& forest) : forest_(forest) {}

    // The leaf of each row; adds the distances computed for it to `comparisons` if not null.
    void run(const Tree& tree, const AlignedVector<float>& rows, std::size_t n_rows,
             std::int32_t* leaf, std::uint64_t* comparisons);

  private:
    struct Pending {
        std::int32_t node;
        std::size_t begin, end;  // places in order_
    };

    std::size_t route(const Tree& tree, const Pending& at);
    void unpack(const StoredCentroids& stored);

    const Forest& forest_;
    const float* rows_ = nullptr;
    std::vector<Pending> pending_;
    std::vector<std::uint32_t> order_, moved_;
    std::vector<std::uint16_t> nearest_;
    std::vector<const float*> row_vectors_, centroid_vectors_;
    AlignedVector<float> unpacked_;
};

void Descent::run(const Tree& tree, const AlignedVector<float>& rows, std::size_t n_rows,
                  std::int32_t* leaf, std::uint64_t* comparisons) {
    rows_ = rows.data();
    order_.resize(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) order_[i] = static_cast<std::uint32_t>(i);
    nearest_.resize(n_rows);
    row_vectors_.resize(n_rows);
    pending_.assign(1, Pending{0, 0, n_rows});
    while (!pending_.empty()) {
        const Pending at = pending_.back();
        pending_.pop_back();
        if (tree.is_leaf(at.node)) {
            for (std::size_t i = at.begin; i < at.end; ++i) leaf[order_[i]] = at.node;
            continue;
        }
        if (comparisons != nullptr) {
            const auto k =
                static_cast<std::uint64_t>(tree.centroid_size[static_cast<std::size_t>(at.node)]);
            for (std::size_t i = at.begin; i < at.end; ++i) comparisons[order_[i]] += k;
        }
        const std::size_t middle = route(tree, at);
        const std::int32_t child = tree.left[static_cast<std::size_t>(at.node)];
        if (middle < at.end) pending_.push_back(Pending{child + 1, middle, at.end});
        if (at.begin < middle) pending_.push_back(Pending{child, at.begin, middle});
    }
}

// Orders the rows of a node by the side they take; returns the place of the first right one.
std::size_t Descent::route(const Tree& tree, const Pending& at) {
    const StoredCentroids stored(forest_, tree, at.node);
    const std::size_t width = forest_.samples->width();
    const std::size_t n = at.end - at.begin;
    std::uint32_t* order = order_.data() + at.begin;
    if (n < kFewRows) {
        for (std::size_t i = 0; i < n; ++i)
            nearest_[i] =
                static_cast<std::uint16_t>(stored.nearest(rows_ + order[i] * width).index);
    } else {
        unpack(stored);
        for (std::size_t i = 0; i < n; ++i) row_vectors_[i] = rows_ + order[i] * width;
        const Centroids centroids{centroid_vectors_.data(), tree.half_norm.data() + stored.begin,
                                  stored.count};
        kernels().nearest_centroids(row_vectors_.data(), n, centroids, width, nearest_.data(),
                                    nullptr);
    }
    const std::uint8_t* side = tree.side.data() + stored.begin;
    moved_.clear();
    std::uint32_t* left = order;
    for (std::size_t i = 0; i < n; ++i) {
        if (side[nearest_[i]] != 0)
            moved_.push_back(order[i]);
        else
            *left++ = order[i];
    }
    std::copy(moved_.begin(), moved_.end(), left);
    return at.begin + static_cast<std::size_t>(left - order);
}

void Descent::unpack(const StoredCentroids& stored) {
    const std::size_t width = forest_.samples->width();
    unpacked_.resize(stored.count * width);
    centroid_vectors_.resize(stored.count);
    for (std::size_t j = 0; j < stored.count; ++j) {
        const CentroidSource source = stored.source(j);
        if (source.is_row()) {
            centroid_vectors_[j] = stored.row(source);
            continue;
        }
        float* place = unpacked_.data() + j * width;
        kernels().widen(stored.halves(source), width, place);
        centroid_vectors_[j] = place;
    }
}

void add_leaf(const Tree& tree, std::int32_t leaf, double* probabilities) {
    const auto node = static_cast<std::size_t>(leaf);
    const auto begin = static_cast<std::size_t>(tree.count_begin[node]);
    const std::size_t end = begin + static_cast<std::size_t>(tree.count_size[node]);
    std::int64_t total = 0;
    for (std::size_t i = begin; i < end; ++i) total += tree.count[i];
    for (std::size_t i = begin; i < end; ++i)
        probabilities[tree.count_class[i]] +=
            static_cast<double>(tree.count[i]) / static_cast<double>(total);
}

template <class T>
bool standardize_block(const Query& query, std::size_t first, std::size_t n, std::size_t width,
                       AlignedVector<float>& out) {
    const std::size_t n_features = query.standardizer.n_features();
    const T* data = static_cast<const T*>(query.data) + first * n_features;
    for (std::size_t i = 0; i < n; ++i)
        if (!query.standardizer.apply(data + i * n_features, width, out.data() + i * width))
            return false;
    return true;
}

// What a thread needs to take blocks of rows through a forest.
struct Scratch {
    explicit Scratch(const Forest& forest) : descent(forest) {}

    Descent descent;
    AlignedVector<float> rows;
    std::vector<std::int32_t> leaf;
};

void predict_block(const Forest& forest, const Query& query, const Outputs& outputs,
                   std::size_t first, std::size_t n, Scratch& scratch, const StopFlag& stop) {
    const std::size_t width = forest.samples->width();
    const std::size_t n_trees = forest.trees.size();
    AlignedVector<float>& rows = scratch.rows;
    std::vector<std::int32_t>& leaf = scratch.leaf;
    rows.resize(n * width);
    leaf.resize(n);
    const bool fits = query.is_double ? standardize_block<double>(query, first, n, width, rows)
                                      : standardize_block<float>(query, first, n, width, rows);
    if (!fits) throw std::invalid_argument("a value is too large for single precision");
    std::uint64_t* comparisons =
        outputs.comparisons == nullptr ? nullptr : outputs.comparisons + first;
    for (std::size_t t = 0; t < n_trees && !stop; ++t) {
        const Tree& tree = *forest.trees[t];
        scratch.descent.run(tree, rows, n, leaf.data(), comparisons);
        for (std::size_t i = 0; i < n; ++i) {
            if (outputs.leaves != nullptr) outputs.leaves[(first + i) * n_trees + t] = leaf[i];
            if (outputs.probabilities != nullptr)
                add_leaf(tree, leaf[i], outputs.probabilities + (first + i) * forest.n_classes);
        }
    }
    if (outputs.probabilities == nullptr) return;
    double* begin = outputs.probabilities + first * forest.n_classes;
    std::for_each(begin, begin + n * forest.n_classes,
                  [n_trees](double& p) { p /= static_cast<double>(n_trees); });
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
    const std::size_t block = std::min(kMaxBlock, share);
    const std::size_t n_blocks = (query.n_rows + block - 1) / block;
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

std::int32_t trace(const Forest& forest, std::size_t tree_index, const float* row,
                   std::vector<Step>& steps) {
    const Tree& tree = *forest.trees[tree_index];
    double norm = 0;
    for (std::size_t i = 0; i < forest.n_features(); ++i)
        norm += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    steps.clear();
    std::int32_t node = 0;
    while (!tree.is_leaf(node)) {
        const StoredCentroids stored(forest, tree, node);
        const Nearest found = stored.nearest(row);
        const double squared = norm + 2.0 * static_cast<double>(found.score);
        steps.push_back(Step{node, found.index, std::max(0.0, squared)});
        const std::uint8_t side = tree.side[stored.begin + static_cast<std::size_t>(found.index)];
        node = tree.left[static_cast<std::size_t>(node)] + side;
    }
    return node;
}

void copy_centroid(const Forest& forest, const Tree& tree, std::size_t centroid, float* out) {
    const std::size_t n = forest.n_features();
    const CentroidSource source = CentroidSource::from_code(tree.centroid_source[centroid]);
    const auto index = static_cast<std::size_t>(source.index());
    if (source.is_row()) {
        std::copy_n(forest.samples->row(index), n, out);
        return;
    }
    const std::uint16_t* halves = tree.halves.data() + index * forest.samples->width();
    std::transform(halves, halves + n, out, half_to_float);
}

}  // namespace evergrow
