// The Python module: conversions and checks of arguments, no algorithms.
#include "bind/module.hpp"

#include <system_error>

NB_MODULE(_core, m) {
    // Objects that are alive at exit belong to tracebacks or to caches of other libraries.
    nanobind::set_leak_warnings(false);
    m.doc() = "The compiled core of Evergrow; use it through the public classes.";
    nanobind::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const std::system_error& problem) {
            PyErr_SetString(PyExc_OSError, problem.what());
        }
    });
    evergrow::bind_samples(m);
    evergrow::bind_forest(m);
    evergrow::bind_kernels(m);
    evergrow::bind_least_squares(m);
    evergrow::bind_codebook(m);
    evergrow::bind_patches(m);
}
