// The parts of the module, one file each.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "propose/proposer.hpp"
#include "tree/forest.hpp"

namespace evergrow {

// Throws std::invalid_argument unless the rules are for this number of classes.
void check_hierarchy(const SplitRules& rules, std::size_t n_classes);

// Throws std::invalid_argument unless `weights` is empty or has a valid weight for every class.
void check_class_weights(const std::vector<double>& weights, std::size_t n_classes);

void bind_samples(nanobind::module_& m);
void bind_plans(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_update(nanobind::class_<Forest>& forest);
void bind_kernels(nanobind::module_& m);
void bind_least_squares(nanobind::module_& m);
void bind_codebook(nanobind::module_& m);
void bind_patches(nanobind::module_& m);

}  // namespace evergrow
