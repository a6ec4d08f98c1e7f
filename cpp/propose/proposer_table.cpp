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

using Make = std::unique_ptr<Proposer> (*)(const RowView&, const SplitRules&, const EntropyTable&);

template <class P>
std::unique_ptr<Proposer> make(const RowView& rows, const SplitRules& rules,
                               const EntropyTable& n_log_n) {
    return std::make_unique<P>(rows, rules, n_log_n);
}

struct Entry {
    const char* name;
    SplitKind kind;
    Make make;
    bool may_add_centroids = false;
};

constexpr Entry kTable[] = {
    {"ncm", SplitKind::kNcm, make<NcmProposer>, true},
    {"regularised", SplitKind::kNcm, make<RegularisedProposer>},
    {"axis", SplitKind::kAxis, make<AxisProposer>},
    {"linear", SplitKind::kLinear, make<LinearProposer>},
    {"svm", SplitKind::kLinear, make<SvmProposer>},
};

const Entry& find(const std::string& name) {
    for (const Entry& entry : kTable)
        if (name == entry.name) return entry;
    throw std::invalid_argument("unknown proposer '" + name + "'");
}

}  // namespace

SplitKind kind_of_split(const std::string& proposer) { return find(proposer).kind; }

bool may_add_centroids(const std::string& proposer) { return find(proposer).may_add_centroids; }

std::unique_ptr<Proposer> make_proposer(const RowView& rows, const SplitRules& rules,
                                        const EntropyTable& n_log_n) {
    return find(rules.proposer).make(rows, rules, n_log_n);
}

}  // namespace evergrow
