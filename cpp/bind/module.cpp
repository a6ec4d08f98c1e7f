// The Python face of the core: conversions, no algorithm. Only this folder knows of Python.
#include "module.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of Evergrow; use it through the public classes.";
    evergrow::bind_samples(m);
    evergrow::bind_forest(m);
    evergrow::bind_kernels(m);
}
