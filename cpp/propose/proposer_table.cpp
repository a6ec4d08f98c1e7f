// Every proposer, one line each.
#include <stdexcept>

#include "propose/axis.hpp"
#include "propose/linear.hpp"
#include "propose/ncm.hpp"
#include "propose/proposer.hpp"
#include "propose/regularised.hpp"
#include "propose/svm.hpp"

namespace evergrow {
namespace {

using Make = std::unique_ptr<Proposer> (*)(const Samples&, const SplitRules&, const EntropyTable&);

template <class P>
std::unique_ptr<Proposer> make(const Samples& rows, const SplitRules& rules,
                               const EntropyTable& n_log_n) {
    return std::make_unique<P>(rows, rules, n_log_n);
}

struct Entry {
    const char* name;
    SplitKind kind;
    Make make;
    bool may_add_centroids = false;
};

template <class P>
constexpr Entry entry(const char* name, SplitKind kind, bool may_add_centroids = false) {
    return {name, kind, make<P>, may_add_centroids};
}

// To add a way to find splits: write its NumPy reference in tests/reference/, then a Proposer such
// as ncm.cpp whose random numbers come from the Stream of the node, and a line here. New parameters
// are fields of SplitRules in proposer.hpp and of bind/plans.cpp. In Python, add an estimator such
// as a value to
// src/evergrow/estimators/forest/splits.py, and a line to RULES in
// tests/estimators/forest/cores.py.
constexpr Entry kTable[] = {
    entry<NcmProposer>("ncm", SplitKind::kNcm, true),
    entry<RegularisedProposer>("regularised", SplitKind::kNcm),
    entry<AxisProposer>("axis", SplitKind::kAxis),
    entry<LinearProposer>("linear", SplitKind::kLinear),
    entry<SvmProposer>("svm", SplitKind::kLinear),
};

const Entry& find(const std::string& name) {
    for (const Entry& entry : kTable)
        if (name == entry.name) return entry;
    throw std::invalid_argument("unknown proposer '" + name + "'");
}

}  // namespace

SplitKind kind_of_split(const std::string& proposer) { return find(proposer).kind; }

bool may_add_centroids(const std::string& proposer) { return find(proposer).may_add_centroids; }

std::unique_ptr<Proposer> make_proposer(const Samples& rows, const SplitRules& rules,
                                        const EntropyTable& n_log_n) {
    return find(rules.proposer).make(rows, rules, n_log_n);
}

}  // namespace evergrow
