#include "codebook/word_grower.hpp"

#include <algorithm>
#include <utility>

#include "codebook/pruner.hpp"

namespace evergrow {
namespace {

struct Pending {
    std::int32_t node;
    std::size_t begin, end;  // of its rows
    std::uint64_t key;
};

struct RowRange {
    std::size_t begin = 0, end = 0;
};

// The update of one tree.
class TreeGrower {
  public:
    TreeGrower(WordTree& tree, const Descriptors& descriptors, const WordRules& rules,
               const EntropyTable& n_log_n)
        : tree_(tree),
          descriptors_(descriptors),
          rules_(rules),
          trials_(descriptors, rules, n_log_n),
          old_word_(tree.word),
          rows_(descriptors.by_class()),
          ranges_(tree.n_nodes()),
          gain_(tree.n_nodes(), kNotPrunable) {}

    void grow(std::uint64_t key, const StopFlag& stop) {
        pending_.assign(1, Pending{0, 0, rows_.size(), key});
        while (!pending_.empty() && !stop) {
            const Pending next = pending_.back();
            pending_.pop_back();
            ranges_[static_cast<std::size_t>(next.node)] = {next.begin, next.end};
            if (tree_.is_leaf(static_cast<std::size_t>(next.node)) && !divide(next, stop)) continue;
            const std::size_t middle = next.begin + partition(next);
            const std::int32_t left = tree_.child[static_cast<std::size_t>(next.node)];
            pending_.push_back(Pending{left + 1, middle, next.end, derive(next.key, 1)});
            pending_.push_back(Pending{left, next.begin, middle, derive(next.key, 0)});
        }
        if (stop) return;
        prune(tree_, gain_, rules_, rows_.size());
        name_words();
        pack();
    }

  private:
    bool divide(const Pending& leaf, const StopFlag& stop) {
        const std::int32_t* rows = rows_.data() + leaf.begin;
        const std::size_t n_rows = leaf.end - leaf.begin;
        if (!std::any_of(rows, rows + n_rows,
                         [&](std::int32_t r) { return descriptors_.is_new(r); }))
            return false;
        if (!trials_.find(rows, n_rows, Stream(leaf.key), stop)) return false;
        const Test& test = trials_.best();
        if (rules_.stop_early && gain_per_row(test.gain, rows_.size()) < rules_.min_gain)
            return false;
        tree_.split(leaf.node, test.feature, test.threshold);
        ranges_.resize(tree_.n_nodes());
        gain_.resize(tree_.n_nodes(), kNotPrunable);
        gain_[static_cast<std::size_t>(leaf.node)] = test.gain;
        return true;
    }

    // Stable: rows sorted by class stay sorted on both sides. Returns the number on the left.
    std::size_t partition(const Pending& node) {
        const auto i = static_cast<std::size_t>(node.node);
        const float* column = descriptors_.column(static_cast<std::size_t>(tree_.feature[i]));
        const float threshold = tree_.threshold[i];
        moved_.clear();
        std::size_t left = node.begin;
        for (std::size_t r = node.begin; r < node.end; ++r) {
            const std::int32_t row = rows_[r];
            if (column[row] > threshold)
                moved_.push_back(row);
            else
                rows_[left++] = row;
        }
        std::copy(moved_.begin(), moved_.end(), rows_.begin() + static_cast<std::ptrdiff_t>(left));
        return left - node.begin;
    }

    std::size_t n_known(std::int32_t leaf) const {
        const RowRange range = ranges_[static_cast<std::size_t>(leaf)];
        return static_cast<std::size_t>(
            std::count_if(rows_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                          rows_.begin() + static_cast<std::ptrdiff_t>(range.end),
                          [&](std::int32_t row) { return !descriptors_.is_new(row); }));
    }

    std::vector<std::int32_t> leaves_below(std::int32_t top) const {
        std::vector<std::int32_t> found, path{top};
        while (!path.empty()) {
            const std::int32_t node = path.back();
            path.pop_back();
            const std::int32_t left = tree_.child[static_cast<std::size_t>(node)];
            if (left == WordTree::kLeaf) {
                found.push_back(node);
            } else {
                path.push_back(left + 1);
                path.push_back(left);
            }
        }
        return found;
    }

    // A word that was divided stays with the part that has most of its old descriptors, so that
    // existing histograms keep their columns and most of their meaning.
    void name_words() {
        auto n_words = static_cast<std::int32_t>((old_word_.size() + 1) / 2);
        for (std::size_t i = 0; i < old_word_.size(); ++i) {
            if (old_word_[i] == WordTree::kNoWord) continue;
            const std::vector<std::int32_t> parts = leaves_below(static_cast<std::int32_t>(i));
            std::size_t heir = 0, most = n_known(parts[0]);
            for (std::size_t p = 1; p < parts.size(); ++p) {
                const std::size_t known = n_known(parts[p]);
                if (known <= most) continue;
                heir = p;
                most = known;
            }
            for (std::size_t p = 0; p < parts.size(); ++p)
                tree_.word[static_cast<std::size_t>(parts[p])] =
                    p == heir ? old_word_[i] : n_words++;
        }
    }

    // Removes pruned nodes and stores the tree level by level, so that the upper levels, which all
    // descriptors pass, are close together in memory.
    void pack() {
        WordTree packed = WordTree::stump();
        std::vector<std::int32_t> from{0};
        for (std::size_t i = 0; i < from.size(); ++i) {
            const auto node = static_cast<std::size_t>(from[i]);
            if (tree_.is_leaf(node)) {
                packed.word[i] = tree_.word[node];
                continue;
            }
            packed.split(static_cast<std::int32_t>(i), tree_.feature[node], tree_.threshold[node]);
            from.push_back(tree_.child[node]);
            from.push_back(tree_.child[node] + 1);
        }
        tree_ = std::move(packed);
    }

    WordTree& tree_;
    const Descriptors& descriptors_;
    const WordRules& rules_;
    TrialRunner trials_;
    const std::vector<std::int32_t> old_word_;
    std::vector<std::int32_t> rows_;
    std::vector<RowRange> ranges_;    // by node
    std::vector<std::int64_t> gain_;  // by node; of those that this update split
    std::vector<Pending> pending_;
    std::vector<std::int32_t> moved_;
};

}  // namespace

bool grow_words(std::vector<WordTree>& trees, const Descriptors& descriptors,
                const WordRules& rules, const std::vector<std::uint64_t>& keys,
                std::size_t n_threads, const Poll& poll) {
    const EntropyTable n_log_n(descriptors.n_rows());
    return run_parallel(
        trees.size(), n_threads,
        [&](std::size_t t, std::size_t, const StopFlag& stop) {
            TreeGrower(trees[t], descriptors, rules, n_log_n).grow(keys[t], stop);
        },
        poll);
}

}  // namespace evergrow
