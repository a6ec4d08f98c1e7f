// Rules of growing from a dictionary.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "propose/proposer.hpp"

namespace evergrow {

inline SplitRules read_rules(const nanobind::dict& rules) {
    namespace nb = nanobind;
    return SplitRules{nb::cast<std::string>(rules["proposer"]),
                      nb::cast<std::size_t>(rules["n_centroids"]),
                      nb::cast<std::size_t>(rules["n_candidates"]),
                      nb::cast<std::int32_t>(rules["min_samples_leaf"]),
                      nb::cast<double>(rules["min_gain"]),
                      nb::cast<double>(rules["regularization"])};
}

}  // namespace evergrow
