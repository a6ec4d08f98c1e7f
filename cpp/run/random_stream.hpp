// Random numbers as a pure function of (seed, tree, update, node, draw).
//
// No generator state passes from one node to the next, so the forest does not depend on the number
// of threads or on the order in which nodes grow. The i-th draw of a stream is the i-th output of
// SplitMix64 (Steele, Lea and Flood 2014) with the stream's key as seed.
#pragma once

#include <cstdint>

namespace evergrow {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// The key of a part of what `key` names: a tree of a forest, a child of a node. The first mix
// separates it from the draws of the stream with the same key.
constexpr std::uint64_t derive(std::uint64_t key, std::uint64_t name) {
    return mix(mix(key ^ 0xD1B54A32D192ED03ULL) + kGolden * (name + 1));
}

constexpr std::uint64_t tree_key(std::uint64_t seed, std::uint64_t tree, std::uint64_t update) {
    return derive(derive(mix(seed), tree), update);
}

// What a tree draws random numbers for. The key of a node derives from its parent's.
enum class Purpose : std::uint64_t { kRows = 0, kNodes = 1, kCopies = 2 };

constexpr std::uint64_t purpose_key(std::uint64_t tree, Purpose purpose) {
    return derive(tree, static_cast<std::uint64_t>(purpose));
}

// What a node draws random numbers for, apart from its split. 0 and 1 are its children.
constexpr std::uint64_t kChoice = 2;     // whether an update may change the node
constexpr std::uint64_t kReservoir = 3;  // which new class means it takes

class Stream {
  public:
    explicit Stream(std::uint64_t key) : state_(key) {}

    std::uint64_t next() {
        state_ += kGolden;
        return mix(state_);
    }

    // Uniform in [0, bound). The bias is below bound / 2^32, too small to be measured.
    std::uint32_t below(std::uint32_t bound) {
        return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
    }

    // Uniform in [0, 1), 53 bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    // Nearly standard normal: the centred sum of twelve uniform 16-bit numbers from three draws.
    // Every step is exact, so all machines draw the same numbers; with logarithms they might not.
    double normal() {
        std::uint64_t sum = 0;
        for (int draw = 0; draw < 3; ++draw) {
            const std::uint64_t bits = next();
            sum +=
                (bits & 0xFFFFU) + (bits >> 16 & 0xFFFFU) + (bits >> 32 & 0xFFFFU) + (bits >> 48);
        }
        return (static_cast<double>(sum) - 6.0 * 0xFFFF) * 0x1.0p-16;
    }

  private:
    std::uint64_t state_;
};

}  // namespace evergrow
