#include "score/objective.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "score/information_gain.hpp"

namespace evergrow {
namespace {

bool is_finest(const ClassHierarchy& hierarchy, std::int32_t c) {
    return hierarchy.is_flat() || hierarchy.is_finest(c);
}

// Makes every class for which `counts(class)` holds a group of its own.
template <class Counts>
void group_singly(Level& level, const std::vector<std::int32_t>& classes, Counts counts) {
    level.group.clear();
    level.n_groups = 0;
    for (const std::int32_t c : classes)
        level.group.push_back(counts(c) ? static_cast<std::int32_t>(level.n_groups++) : kNoGroup);
}

// Groups classes by their ancestor at this depth. A class above it counts as itself if it has no
// finer classes; otherwise it is not known where its samples belong.
void group_by_ancestor(Level& level, const ClassHierarchy& hierarchy,
                       const std::vector<std::int32_t>& classes, std::size_t depth) {
    std::vector<std::int32_t> group_of(hierarchy.size(), kNoGroup);
    level.group.clear();
    level.n_groups = 0;
    for (const std::int32_t c : classes) {
        if (hierarchy.depth(c) < depth && hierarchy.is_divided(c)) {
            level.group.push_back(kNoGroup);
            continue;
        }
        std::int32_t& group = group_of[static_cast<std::size_t>(hierarchy.ancestor(c, depth))];
        if (group == kNoGroup) group = static_cast<std::int32_t>(level.n_groups++);
        level.group.push_back(group);
    }
}

// One level, on which every class counts [Ristin2015 Eq. 5].
void plain_levels(const ClassHierarchy&, const std::vector<std::int32_t>& classes,
                  std::vector<Level>& levels) {
    levels.resize(1);
    group_singly(levels[0], classes, [](std::int32_t) { return true; });
}

void finest_levels(const ClassHierarchy& hierarchy, const std::vector<std::int32_t>& classes,
                   Level& level) {
    group_singly(level, classes, [&](std::int32_t c) { return is_finest(hierarchy, c); });
}

// Each level has its own samples [Ristin2015 Eq. 6]: the finest classes, then for each depth the
// samples of which no finer class is known. The paper has two levels.
void joint_levels(const ClassHierarchy& hierarchy, const std::vector<std::int32_t>& classes,
                  std::vector<Level>& levels) {
    levels.resize(hierarchy.n_levels());
    finest_levels(hierarchy, classes, levels[0]);
    for (std::size_t depth = 0; depth + 1 < levels.size(); ++depth)
        group_singly(levels[depth + 1], classes, [&](std::int32_t c) {
            return !is_finest(hierarchy, c) && hierarchy.depth(c) == depth;
        });
}

// On the top level all samples count [Ristin2015 Eq. 7], on the finest level those with a finest
// class, which may be a guess [Ristin2015 Eq. 8], and on each level between them, which the paper
// does not have, those whose class on that level is known.
void hierarchical_levels(const ClassHierarchy& hierarchy, const std::vector<std::int32_t>& classes,
                         std::vector<Level>& levels) {
    levels.resize(hierarchy.n_levels());
    finest_levels(hierarchy, classes, levels[0]);
    if (hierarchy.is_flat()) {
        group_singly(levels[1], classes, [](std::int32_t) { return true; });
        return;
    }
    for (std::size_t depth = 0; depth + 1 < levels.size(); ++depth)
        group_by_ancestor(levels[depth + 1], hierarchy, classes, depth);
}

void pool_present(const ClassHierarchy&, const std::vector<std::int32_t>& present,
                  PooledClasses& pooled) {
    for (std::size_t i = 0; i < present.size(); ++i) {
        pooled.add(present[i]);
        pooled.join(i);
    }
}

void pool_finest(const ClassHierarchy& hierarchy, const std::vector<std::int32_t>& present,
                 PooledClasses& pooled) {
    for (std::size_t i = 0; i < present.size(); ++i) {
        if (!is_finest(hierarchy, present[i])) continue;
        pooled.add(present[i]);
        pooled.join(i);
    }
}

// Finest classes, and all classes above them with the samples of their finer ones. A class whose
// samples at the node are all of one class below it is left out, because the means would be the
// same.
void pool_levels(const ClassHierarchy& hierarchy, const std::vector<std::int32_t>& present,
                 PooledClasses& pooled) {
    if (hierarchy.is_flat()) return pool_present(hierarchy, present, pooled);
    std::vector<std::pair<std::int32_t, std::size_t>> wanted;  // a class and one of its members
    for (std::size_t i = 0; i < present.size(); ++i)
        for (std::size_t depth = hierarchy.depth(present[i]) + 1; depth-- > 0;)
            wanted.emplace_back(hierarchy.ancestor(present[i], depth), i);
    std::sort(wanted.begin(), wanted.end());
    for (std::size_t first = 0, last = 0; first < wanted.size(); first = last) {
        const std::int32_t c = wanted[first].first;
        const std::size_t below = hierarchy.depth(c) + 1;
        const std::int32_t one = hierarchy.ancestor(present[wanted[first].second], below);
        bool is_one_below = one != c;
        for (; last < wanted.size() && wanted[last].first == c; ++last)
            is_one_below =
                is_one_below && hierarchy.ancestor(present[wanted[last].second], below) == one;
        if (is_one_below) continue;
        pooled.add(c);
        for (std::size_t i = first; i < last; ++i) pooled.join(wanted[i].second);
    }
}

}  // namespace

struct Objective::Entry {
    using MakeLevels = void (*)(const ClassHierarchy&, const std::vector<std::int32_t>&,
                                std::vector<Level>&);
    using Pool = void (*)(const ClassHierarchy&, const std::vector<std::int32_t>&, PooledClasses&);

    const char* name;
    MakeLevels make_levels;
    Pool pool_with_coarse, pool_without;
};

Objective::Objective(const std::string& name, std::shared_ptr<const ClassHierarchy> hierarchy,
                     double coarse_weight, bool coarse_means)
    : hierarchy_(std::move(hierarchy)),
      coarse_weight_(coarse_weight),
      coarse_means_(coarse_means),
      entry_(nullptr) {
    static constexpr Entry kTable[] = {
        {"gain", plain_levels, pool_present, pool_present},
        {"joint", joint_levels, pool_present, pool_finest},
        {"hierarchical", hierarchical_levels, pool_levels, pool_finest},
    };
    for (const Entry& entry : kTable)
        if (name == entry.name) entry_ = &entry;
    if (entry_ == nullptr) throw std::invalid_argument("unknown objective '" + name + "'");
}

void Objective::make_levels(const std::vector<std::int32_t>& classes,
                            std::vector<Level>& levels) const {
    entry_->make_levels(*hierarchy_, classes, levels);
    for (Level& level : levels) level.weight = coarse_weight_;
    levels[0].weight = 1;
}

void Objective::pool(const std::vector<std::int32_t>& present, PooledClasses& pooled) const {
    pooled.clear();
    (coarse_means_ ? entry_->pool_with_coarse : entry_->pool_without)(*hierarchy_, present, pooled);
}

void PooledClasses::clear() {
    class_ids_.clear();
    begins_.clear();
    members_.clear();
}

void add_up(const Level& level, const std::vector<std::int32_t>& by_class,
            std::vector<std::int32_t>& by_group) {
    by_group.assign(level.n_groups, 0);
    for (std::size_t c = 0; c < level.group.size(); ++c)
        if (level.group[c] != kNoGroup)
            by_group[static_cast<std::size_t>(level.group[c])] += by_class[c];
}

double scale_of_gain(const Level& level, std::int32_t n) {
    return n == 0 ? 0.0 : level.weight / (EntropyTable::kOne * static_cast<double>(n));
}

}  // namespace evergrow
