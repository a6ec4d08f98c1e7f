// Split rules from a dictionary.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "propose/proposer.hpp"

namespace evergrow {

// Rules that a kind of forest does not use may be missing.
template <class T>
void read_rule(const nanobind::dict& rules, const char* name, T& value) {
    if (rules.contains(name)) value = nanobind::cast<T>(rules[name]);
}

inline SplitRules read_rules(const nanobind::dict& rules, std::size_t n_classes) {
    namespace nb = nanobind;
    SplitRules read{nb::cast<std::string>(rules["proposer"]),
                    nb::cast<std::size_t>(rules["n_centroids"]),
                    nb::cast<std::size_t>(rules["n_candidates"]),
                    nb::cast<std::int32_t>(rules["min_samples_leaf"]),
                    nb::cast<double>(rules["min_gain"]),
                    nb::cast<double>(rules["regularization"])};
    read_rule(rules, "n_subsets", read.n_subsets);
    read_rule(rules, "cost_weight", read.cost_weight);
    read_rule(rules, "max_scoring_samples", read.max_scoring_samples);
    read_rule(rules, "objective", read.objective);
    read_rule(rules, "coarse_weight", read.coarse_weight);
    read_rule(rules, "coarse_means", read.coarse_means);
    std::vector<std::int32_t> parents;
    read_rule(rules, "parents", parents);
    if (!parents.empty() && parents.size() != n_classes)
        throw std::invalid_argument("parents must have an entry for every class");
    read.hierarchy = std::make_shared<const ClassHierarchy>(std::move(parents));
    return read;
}

}  // namespace evergrow
