// Split rules, update plans and update reports as Python classes. Each can be pickled: its state is
// a dictionary of its fields, which is also what as_dict() returns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/module.hpp"
#include "bind/numpy.hpp"
#include "samples/row_sampling.hpp"
#include "update/plan.hpp"

using namespace nb::literals;

namespace evergrow {
namespace {

// The fields of a class by name, in one place for reading and writing.
template <class Rules, class Visit>
void for_each_field_of_rules(Rules& rules, Visit visit) {
    visit("proposer", rules.proposer);
    visit("n_centroids", rules.n_centroids);
    visit("n_candidates", rules.n_candidates);
    visit("min_samples_leaf", rules.min_samples_leaf);
    visit("min_gain", rules.min_gain);
    visit("regularization", rules.regularization);
    visit("n_subsets", rules.n_subsets);
    visit("cost_weight", rules.cost_weight);
    visit("max_scoring_samples", rules.max_scoring_samples);
    visit("objective", rules.objective);
    visit("coarse_weight", rules.coarse_weight);
    visit("coarse_means", rules.coarse_means);
}

template <class Plan, class Visit>
void for_each_field_of_plan(Plan& plan, Visit visit) {
    visit("n_classes", plan.n_classes);
    visit("seed", plan.seed);
    visit("update", plan.update);
    visit("strategy", plan.strategy);
    visit("share", plan.share);
    visit("row_rate", plan.row_rate);
    visit("bootstrap", plan.bootstrap);
    visit("class_weights", plan.class_weights);
    visit("rules", plan.rules);
    visit("keep_rows", plan.keep_rows);
    visit("leaves_only", plan.leaves_only);
    visit("first_refreshed", plan.first_refreshed);
    visit("n_refreshed", plan.n_refreshed);
}

template <class Report, class Visit>
void for_each_field_of_report(Report& report, Visit visit) {
    visit("n_chosen", report.n_chosen);
    visit("n_edited", report.n_edited);
    visit("n_cut", report.n_cut);
    visit("n_grown", report.n_grown);
    visit("n_added", report.n_added);
    visit("n_rerouted", report.n_rerouted);
    visit("n_comparisons", report.n_comparisons);
    visit("pass_seconds", report.pass_seconds);
    visit("grow_seconds", report.grow_seconds);
    visit("pack_seconds", report.pack_seconds);
}

// Writes fields into a dictionary.
struct WriteField {
    nb::dict& fields;

    template <class T>
    void operator()(const char* name, const T& value) const {
        fields[name] = value;
    }
};

// Reads fields from a dictionary of keyword arguments, and leaves those that it lacks unchanged.
struct ReadField {
    const nb::dict& fields;

    template <class T>
    void operator()(const char* name, T& value) const {
        if (!fields.contains(name)) return;
        if (!nb::try_cast(fields[name], value))
            throw nb::type_error(
                (std::string("the field '") + name + "' has the wrong type").c_str());
    }
};

constexpr std::pair<const char*, NodeWeights> kNodeSampling[] = {
    {"size", NodeWeights::kSize},
    {"uniform", NodeWeights::kUniform},
    {"quality", NodeWeights::kQuality},
};

NodeWeights weights_named(const std::string& name) {
    for (const auto& [known, weights] : kNodeSampling)
        if (name == known) return weights;
    throw std::invalid_argument("unknown node sampling '" + name +
                                "'; it is 'size', 'uniform' or 'quality'");
}

const char* name_of(NodeWeights weights) {
    for (const auto& [name, known] : kNodeSampling)
        if (weights == known) return name;
    throw std::logic_error("node sampling without a name");
}

std::vector<std::int32_t> parents_of(const SplitRules& rules) {
    std::vector<std::int32_t> parents;
    for (std::size_t c = 0; c < rules.hierarchy->size(); ++c)
        parents.push_back(rules.hierarchy->parent(static_cast<std::int32_t>(c)));
    return parents;
}

nb::dict fields_of(const SplitRules& rules) {
    nb::dict fields;
    for_each_field_of_rules(rules, WriteField{fields});
    fields["parents"] = parents_of(rules);
    return fields;
}

SplitRules read_rules(const nb::dict& fields) {
    SplitRules rules{};
    for_each_field_of_rules(rules, ReadField{fields});
    std::vector<std::int32_t> parents;
    ReadField{fields}("parents", parents);
    rules.hierarchy = std::make_shared<const ClassHierarchy>(std::move(parents));
    return rules;
}

nb::dict fields_of(const UpdatePlan& plan) {
    nb::dict fields;
    for_each_field_of_plan(plan, WriteField{fields});
    fields["node_sampling"] = name_of(plan.node_weights);
    return fields;
}

UpdatePlan read_plan(const nb::dict& fields) {
    UpdatePlan plan{};
    for_each_field_of_plan(plan, ReadField{fields});
    plan.node_weights = weights_named(nb::cast<std::string>(fields["node_sampling"]));
    check_hierarchy(plan.rules, plan.n_classes);
    check_class_weights(plan.class_weights, plan.n_classes);
    return plan;
}

nb::dict fields_of(const UpdateReport& report) {
    nb::dict fields;
    for_each_field_of_report(report, WriteField{fields});
    return fields;
}

UpdateReport read_report(const nb::dict& fields) {
    UpdateReport report;
    for_each_field_of_report(report, ReadField{fields});
    return report;
}

// Unknown and missing fields are errors, as with a Python function.
void check_fields(const char* type, const nb::dict& given, const nb::dict& known,
                  const std::vector<const char*>& required) {
    for (const auto& [name, value] : given)
        if (!known.contains(name))
            throw nb::type_error(
                (std::string(type) + " has no field '" + nb::cast<std::string>(name) + "'")
                    .c_str());
    for (const char* name : required)
        if (!given.contains(name))
            throw nb::type_error((std::string(type) + " lacks the field '" + name + "'").c_str());
}

// A class whose constructor takes its fields as keyword arguments.
template <class T>
nb::class_<T> bind_fields(nb::module_& m, const char* name, T (*read)(const nb::dict&),
                          std::vector<const char*> required) {
    nb::class_<T> type(m, name);
    type.def("__init__",
             [name, read, required](T* self, const nb::kwargs& fields) {
                 check_fields(name, fields, fields_of(T{}), required);
                 new (self) T(read(fields));
             })
        .def("as_dict", [](const T& self) { return fields_of(self); })
        .def("__getstate__", [](const T& self) { return fields_of(self); })
        .def("__setstate__",
             [read](T& self, const nb::dict& fields) { new (&self) T(read(fields)); });
    return type;
}

}  // namespace

void check_hierarchy(const SplitRules& rules, std::size_t n_classes) {
    if (!rules.hierarchy->is_flat() && rules.hierarchy->size() != n_classes)
        throw std::invalid_argument("parents must have an entry for every class");
}

void check_class_weights(const std::vector<double>& weights, std::size_t n_classes) {
    if (!weights.empty() && weights.size() != n_classes)
        throw std::invalid_argument("class_weights must have an entry for every class, or none");
    for (const double weight : weights)
        if (!(weight >= 0 && weight <= RowWeights::kLargest))
            throw std::invalid_argument("class_weights must be from 0 to " +
                                        std::to_string(RowWeights::kLargest));
}

void bind_plans(nb::module_& m) {
    bind_fields<SplitRules>(
        m, "SplitRules", read_rules,
        {"proposer", "n_centroids", "n_candidates", "min_samples_leaf", "min_gain"})
        .def_ro("proposer", &SplitRules::proposer)
        .def_ro("n_centroids", &SplitRules::n_centroids)
        .def_ro("n_candidates", &SplitRules::n_candidates)
        .def_ro("n_subsets", &SplitRules::n_subsets)
        .def_ro("max_scoring_samples", &SplitRules::max_scoring_samples);
    bind_fields<UpdatePlan>(m, "UpdatePlan", read_plan,
                            {"n_classes", "seed", "update", "strategy", "share", "node_sampling",
                             "row_rate", "bootstrap", "rules", "keep_rows"})
        .def_ro("n_classes", &UpdatePlan::n_classes)
        .def_ro("n_refreshed", &UpdatePlan::n_refreshed);
    bind_fields<UpdateReport>(m, "UpdateReport", read_report, {});
}

}  // namespace evergrow
