// The parts of the module, one file each.
#pragma once

#include <nanobind/nanobind.h>

#include "tree/forest.hpp"

namespace evergrow {

void bind_samples(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_update(nanobind::class_<Forest>& forest);
void bind_kernels(nanobind::module_& m);
void bind_least_squares(nanobind::module_& m);
void bind_codebook(nanobind::module_& m);
void bind_patches(nanobind::module_& m);

}  // namespace evergrow
