// The interface for finding the split of a node. How a node routes and how its split was found are
// separate: several proposers make the same kind of split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "propose/known_means.hpp"
#include "run/parallel_tasks.hpp"
#include "run/random_stream.hpp"
#include "samples/row_reader.hpp"
#include "score/class_hierarchy.hpp"
#include "score/information_gain.hpp"
#include "tree/split.hpp"
#include "tree/tree.hpp"

namespace evergrow {

// The samples of one class at a node: indices [begin, end) into the rows of the node.
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
    const KnownMeans& known;  // means that the nodes above have stored
    const Tree& tree;         // in which they are stored
};

struct SplitRules {
    std::string proposer;  // a name in the table of propose/proposer_table.cpp
    // ncm: class means per node, unless fewer classes are present; regularised: the maximum
    std::size_t n_centroids;
    std::size_t n_candidates;       // splits tried
    std::int32_t min_samples_leaf;  // mu of [Ristin2014 Sec. 3.2]
    double min_gain;
    double regularization;  // svm: C, the weight of the hinge loss
    // Regularised NCM; other proposers ignore them.
    std::size_t n_subsets = 1;            // sets of classes that a node tries
    double cost_weight = 0;               // lambda_reg of [Ristin2015 Eq. 5]
    std::size_t max_scoring_samples = 0;  // rows on which candidates are scored; 0 for all
    // Coarse and fine classes.
    std::string objective = "gain";  // a name in the table of score/objective.cpp
    double coarse_weight = 0;        // lambda of [Ristin2015 Eq. 6]
    bool coarse_means = false;       // whether nodes also compare with means of coarse classes
    std::shared_ptr<const ClassHierarchy> hierarchy = std::make_shared<const ClassHierarchy>();
};

class Proposer {
  public:
    virtual ~Proposer() = default;

    // Finds the best split, which split(), goes_right() and scores() return until the next call.
    // False if there is none, or if `stop` is set meanwhile.
    virtual bool propose(const NodeSamples& node, Stream stream, const StopFlag& stop) = 0;
    virtual bool goes_right(std::size_t row) const = 0;
    // The score of the nearest centroid of every row of the node; null for other kinds of splits.
    virtual const float* scores() const { return nullptr; }

    const Split& split() const { return split_; }
    // Distances and dot products computed so far.
    std::uint64_t n_comparisons() const { return n_comparisons_; }

  protected:
    Split split_;
    std::uint64_t n_comparisons_ = 0;
};

SplitKind kind_of_split(const std::string& proposer);
// Whether an update may add centroids to a node, up to n_centroids. A regularised node keeps the
// number that it found to be worth the cost.
bool may_add_centroids(const std::string& proposer);
std::unique_ptr<Proposer> make_proposer(const Samples& rows, const SplitRules& rules,
                                        const EntropyTable& n_log_n);

}  // namespace evergrow
