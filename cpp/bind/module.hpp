// The parts of the module, one file each.
#pragma once

#include <nanobind/nanobind.h>

namespace evergrow {

void bind_samples(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);

}  // namespace evergrow
