// Conversion of NumPy arrays, the GIL and KeyboardInterrupt.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "run/parallel_tasks.hpp"

namespace nb = nanobind;

namespace evergrow {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using NumpyMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;
template <class T>
using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// An owner for an array that is a view of an object.
template <class T>
nb::capsule keep_alive(std::shared_ptr<T> owner) {
    auto* held = new std::shared_ptr<T>(std::move(owner));
    return nb::capsule(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<T>*>(p); });
}

// Zeroed memory for an array, and its owner.
template <class T>
std::pair<T*, nb::capsule> new_array(std::size_t n) {
    T* data = new T[n]();
    return {data, nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); })};
}

template <class T>
NumpyVector<const T> to_numpy(std::vector<T> values) {
    auto held = std::make_shared<const std::vector<T>>(std::move(values));
    return NumpyVector<const T>(held->data(), {held->size()}, keep_alive(held));
}

// Called several times per second on the calling thread: checks for Ctrl-C and reports progress.
class PythonPoll {
  public:
    explicit PythonPoll(nb::object progress) : progress_(std::move(progress)) {}

    bool operator()(std::size_t n_done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) return false;
        if (!progress_.is_none() && n_done != reported_) {
            reported_ = n_done;
            try {
                progress_(n_done);
            } catch (nb::python_error& error) {
                error.restore();
                return false;
            }
        }
        return true;
    }

  private:
    nb::object progress_;
    std::size_t reported_ = 0;
};

// Runs work(poll) without the GIL. The work returns whether it finished; if not, a poll asked to
// stop and has set a Python error.
template <class Work>
void run_interruptibly(nb::object progress, Work work) {
    const auto poll = std::make_shared<PythonPoll>(std::move(progress));
    bool finished = false;
    {
        const nb::gil_scoped_release release;
        finished = work([poll](std::size_t n_done) { return (*poll)(n_done); });
    }
    if (!finished) throw nb::python_error();
}

}  // namespace evergrow
