// Class means that the nodes above the current one have stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree/split.hpp"

namespace evergrow {

struct KnownMean {
    Centroid centroid;   // in a slot of the tree
    std::int32_t count;  // number of samples
};

// The samples of a node are a subset of those of the nodes above it. A class with the same number
// of samples therefore has the same samples and the same mean, which is neither computed nor stored
// again. In deep trees these are a third to a half of all means.
//
// Trees grow depth first, so the known means follow the path from the root: `descend` drops those
// of nodes that are not on the path.
class KnownMeans {
  public:
    // Drops all means; classes are 0 to n_classes - 1.
    void reset(std::size_t n_classes) {
        latest_.assign(n_classes, kNone);
        records_.clear();
        depth_ = 0;
    }

    // Moves to a node at this depth, below the last node whose means were recorded.
    void descend(std::int32_t depth) {
        while (!records_.empty() && records_.back().depth >= depth) {
            const Record& last = records_.back();
            latest_[static_cast<std::size_t>(last.mean.centroid.class_id)] = last.previous;
            records_.pop_back();
        }
        depth_ = depth;
    }

    void record(const KnownMean& mean) {
        std::int32_t& latest = latest_[static_cast<std::size_t>(mean.centroid.class_id)];
        records_.push_back(Record{mean, latest, depth_});
        latest = static_cast<std::int32_t>(records_.size()) - 1;
    }

    // The mean of `count` samples of the class, or null.
    const KnownMean* find(std::int32_t class_id, std::int32_t count) const {
        const std::int32_t latest = latest_[static_cast<std::size_t>(class_id)];
        if (latest == kNone) return nullptr;
        // Counts decrease on the way down: if the latest is larger, so are all earlier ones.
        const KnownMean& mean = records_[static_cast<std::size_t>(latest)].mean;
        return mean.count == count ? &mean : nullptr;
    }

  private:
    static constexpr std::int32_t kNone = -1;

    struct Record {
        KnownMean mean;
        std::int32_t previous;  // earlier record of the same class
        std::int32_t depth;
    };

    std::vector<std::int32_t> latest_;  // by class, an index into records_
    std::vector<Record> records_;
    std::int32_t depth_ = 0;
};

}  // namespace evergrow
