// Means that nodes above the current one have already stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evergrow {

struct KnownMean {
    std::int32_t slot;   // in the tree's halves
    std::int32_t count;  // samples it is the mean of
    float half_norm;
};

// The samples of a node are among those of the nodes above it. A class with as many samples here
// as up there therefore has the very same ones, and the same mean: it is neither computed nor
// stored again. In deep trees that is a third to a half of all means.
//
// Trees grow depth first, so what is known follows the path from the root: `descend` forgets what
// nodes beside the path have recorded.
class KnownMeans {
  public:
    // No means known, for classes 0 to n_classes - 1.
    void reset(std::size_t n_classes) {
        latest_.assign(n_classes, kNone);
        records_.clear();
        depth_ = 0;
    }

    // The current node is one at this depth; the path above it is that of the last node recorded.
    void descend(std::int32_t depth) {
        while (!records_.empty() && records_.back().depth >= depth) {
            latest_[static_cast<std::size_t>(records_.back().class_id)] = records_.back().previous;
            records_.pop_back();
        }
        depth_ = depth;
    }

    void record(std::int32_t class_id, const KnownMean& mean) {
        std::int32_t& latest = latest_[static_cast<std::size_t>(class_id)];
        records_.push_back(Record{mean, class_id, latest, depth_});
        latest = static_cast<std::int32_t>(records_.size()) - 1;
    }

    // The mean of `count` samples of the class, or null.
    const KnownMean* find(std::int32_t class_id, std::int32_t count) const {
        const std::int32_t latest = latest_[static_cast<std::size_t>(class_id)];
        if (latest == kNone) return nullptr;
        // Counts only fall on the way down: if the latest is larger, so are all before it.
        const KnownMean& mean = records_[static_cast<std::size_t>(latest)].mean;
        return mean.count == count ? &mean : nullptr;
    }

  private:
    static constexpr std::int32_t kNone = -1;

    struct Record {
        KnownMean mean;
        std::int32_t class_id;
        std::int32_t previous;  // record of the same class before this one
        std::int32_t depth;
    };

    std::vector<std::int32_t> latest_;  // per class, a place in records_
    std::vector<Record> records_;
    std::int32_t depth_ = 0;
};

}  // namespace evergrow
