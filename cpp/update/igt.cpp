// Incrementally grow tree (IGT): leaves that received samples may split; the splits there are stay.
#include "update/strategy.hpp"

namespace evergrow {

const Strategy kIncrementallyGrowTree{"igt", true, false, nullptr};

}  // namespace evergrow
