// Growing leaves into subtrees. No other code makes trees deeper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "propose/proposer.hpp"
#include "run/parallel_tasks.hpp"
#include "samples/samples.hpp"
#include "score/information_gain.hpp"
#include "tree/tree.hpp"

namespace evergrow {

class Grower {
  public:
    // Throws std::invalid_argument if the hierarchy does not contain every class.
    Grower(const Samples& samples, std::size_t n_classes, const SplitRules& rules,
           const EntropyTable& n_log_n);

    // Splits the leaf and its descendants as long as the proposer finds splits. The leaf has its
    // class counts; `rows` are its training rows, sorted by class, and are reordered. `key` is that
    // of the leaf's random numbers. Returns early with an incomplete tree if `stop` is set.
    void grow(Tree& tree, std::int32_t leaf, std::vector<std::int32_t>& rows, std::uint64_t key,
              const StopFlag& stop);

  private:
    struct Pending {
        std::int32_t node;
        std::int32_t depth;
        std::size_t begin, end;  // of its rows
        std::uint64_t key;
    };

    void find_ranges(const std::int32_t* rows, std::size_t n_rows);
    std::size_t partition(std::int32_t* rows, std::size_t n_rows);
    void record_means(const Tree& tree, std::int32_t node);
    void share_counts(Tree& tree, std::int32_t node);
    void cache_scores(Tree& tree, std::size_t level, const std::int32_t* rows, std::size_t n_rows);

    const Samples& samples_;
    const std::size_t n_classes_;
    std::unique_ptr<Proposer> proposer_;
    std::vector<Pending> pending_;
    KnownMeans known_;
    std::vector<ClassRange> ranges_;
    std::vector<std::int32_t> moved_, n_right_;
    std::vector<ClassCount> left_counts_, right_counts_;
};

}  // namespace evergrow
