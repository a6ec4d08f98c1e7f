// The Python face of the core: conversions, no algorithm. Only this folder knows of Python.
#include "bind/module.hpp"

#include <system_error>

NB_MODULE(_core, m) {
    // What is still alive when Python exits is held by frames of errors or other libraries' caches.
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
    evergrow::bind_features(m);
}
