// Updates of forests.
#include "update/update.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "samples/sample_arrays.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

using SamplesPtr = std::shared_ptr<Samples>;
using ForestPtr = std::shared_ptr<Forest>;

std::vector<std::int32_t> checked_rows(const Samples& samples, const Vector<std::int32_t>& rows) {
    if (!all_within(rows.data(), rows.size(), samples.size()))
        throw std::invalid_argument("rows must be from 0 to " + std::to_string(samples.size()) +
                                    " - 1");
    return {rows.data(), rows.data() + rows.size()};
}

template <class Work>
nb::tuple run_update(nb::object progress, Work work) {
    std::optional<Updated> updated;
    run_interruptibly(std::move(progress), [&](const Poll& poll) {
        updated = work(poll);
        return updated.has_value();
    });
    return nb::make_tuple(std::make_shared<Forest>(std::move(updated->forest)), updated->report);
}

nb::tuple update(const Forest& forest, const SamplesPtr& samples, const Vector<std::int32_t>& rows,
                 const Vector<std::int32_t>& evicted, const UpdatePlan& plan, std::size_t n_threads,
                 nb::object progress) {
    const UpdateBatch batch{samples, checked_rows(*samples, rows), checked_rows(*samples, evicted)};
    return run_update(std::move(progress), [&](const Poll& poll) {
        return update_forest(forest, batch, plan, n_threads, poll);
    });
}

nb::tuple forget_rows(const Forest& forest, const Vector<std::int32_t>& rows,
                      const std::vector<std::int32_t>& classes, const UpdatePlan& plan,
                      std::size_t n_threads, nb::object progress) {
    const std::vector<std::int32_t> numbers = checked_rows(*forest.samples, rows);
    return run_update(std::move(progress), [&](const Poll& poll) {
        return forget(forest, numbers, classes, plan, n_threads, poll);
    });
}

nb::tuple refine_rows(const Forest& forest, const SamplesPtr& samples,
                      const Vector<std::int32_t>& rows, double share, const UpdatePlan& plan,
                      std::size_t n_threads, nb::object progress) {
    const std::vector<std::int32_t> numbers = checked_rows(*samples, rows);
    return run_update(std::move(progress), [&](const Poll& poll) {
        return refine(forest, samples, numbers, share, plan, n_threads, poll);
    });
}

ForestPtr relabelled(const Forest& forest, const SamplesPtr& samples,
                     const std::vector<std::int32_t>& map, std::size_t n_classes) {
    if (map.size() != forest.n_classes)
        throw std::invalid_argument("columns must have an entry for every class");
    const nb::gil_scoped_release release;
    return std::make_shared<Forest>(relabel(forest, samples, map, n_classes));
}

}  // namespace

void bind_update(nb::class_<Forest>& forest) {
    forest
        .def("update", &update, nb::kw_only(), "samples"_a, "rows"_a, "evicted"_a, "plan"_a,
             "n_threads"_a, "progress"_a.none())
        .def("forget", &forget_rows, nb::kw_only(), "rows"_a, "classes"_a, "plan"_a, "n_threads"_a,
             "progress"_a.none())
        .def("refine", &refine_rows, nb::kw_only(), "samples"_a, "rows"_a, "share"_a, "plan"_a,
             "n_threads"_a, "progress"_a.none())
        .def("relabel", &relabelled, nb::kw_only(), "samples"_a, "columns"_a, "n_classes"_a)
        .def(
            "compact",
            [](const Forest& self, const std::optional<std::string>& folder) {
                const nb::gil_scoped_release release;
                auto file = folder ? std::make_shared<SpillFile>(*folder) : nullptr;
                return std::make_shared<Forest>(compact(self, std::move(file)));
            },
            "folder"_a = nb::none())
        .def(
            "with_samples",
            [](const Forest& self, const SamplesPtr& samples) {
                auto other = std::make_shared<Forest>(self);
                other->samples = samples;
                return other;
            },
            "samples"_a);
}

}  // namespace evergrow
