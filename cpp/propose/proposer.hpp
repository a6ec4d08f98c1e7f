// Inventing the split of a node. How a node routes is not how its split was found: several
// proposers may yield the same kind of split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "propose/known_means.hpp"
#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "samples/row_view.hpp"
#include "score/class_hierarchy.hpp"
#include "score/information_gain.hpp"
#include "tree/split.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// The samples of one class at a node: places [begin, end) among the rows of the node.
struct ClassRange {
    std::int32_t class_id;
    std::int32_t begin;
    std::int32_t end;

    std::int32_t size() const { return end - begin; }
};

// The samples at a node: row numbers sorted by class.
struct NodeSamples {
    const std::int32_t* rows;
    std::size_t n_rows;
    const std::vector<ClassRange>& ranges;
    const KnownMeans& known;  // stored by nodes above this one
    const Tree& tree;         // where they are stored
};

struct SplitRules {
    std::string proposer;  // a name in the table of propose/proposer_table.cpp
    // ncm: classes a node compares with, unless fewer are present; regularised: at most
    std::size_t n_centroids;
    std::size_t n_candidates;       // splits tried
    std::int32_t min_samples_leaf;  // mu
    double min_gain;
    double regularization;  // svm: C, the weight of samples on the wrong side
    // Regularised NCM; elsewhere as they are here.
    std::size_t n_subsets = 1;            // sets of classes a node tries
    double cost_weight = 0;               // lambda_reg of Eq. (5) of Ristin 2015
    std::size_t max_scoring_samples = 0;  // rows that candidates are scored on; 0 for all
    // Coarse and fine classes.
    std::string objective = "gain";  // a name in the table of score/objective.cpp
    double coarse_weight = 0;        // lambda of Eq. (6) of Ristin 2015
    bool coarse_means = false;       // nodes also compare with the means of coarse classes
    std::shared_ptr<const ClassHierarchy> hierarchy = std::make_shared<const ClassHierarchy>();
};

class Proposer {
  public:
    virtual ~Proposer() = default;

    // Finds the best split and leaves it in split() and goes_right(); false if there is none, or
    // if `stop` was set on the way.
    virtual bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) = 0;
    virtual bool goes_right(std::size_t row) const = 0;
    // Of every row of the node, the score of its nearest centroid; null where there are none.
    virtual const float* scores() const { return nullptr; }

    const Split& split() const { return split_; }
    // Distances and other products of a row and a vector computed so far.
    std::uint64_t n_comparisons() const { return n_comparisons_; }

  protected:
    Split split_;
    std::uint64_t n_comparisons_ = 0;
};

SplitKind kind_of_split(const std::string& proposer);
// Whether updates may give a node more centroids than it was grown with, up to n_centroids. A
// regularised node has as many as it found worth their cost.
bool grows_wider(const std::string& proposer);
std::unique_ptr<Proposer> make_proposer(const RowView& rows, const SplitRules& rules,
                                        const EntropyTable& n_log_n);

}  // namespace evergrow
