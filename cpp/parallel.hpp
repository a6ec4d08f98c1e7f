// Independent tasks on a few threads, interruptible from the calling one.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace evergrow {

// Called on the calling thread several times a second with the number of finished tasks;
// false asks the tasks to stop.
using Poll = std::function<bool(std::size_t n_done)>;

// True when the work should be given up; tasks look at it between pieces of work.
using StopFlag = std::atomic<bool>;

// Runs task(index, stop) for every index, each on one of `n_threads` threads. Returns false if
// the poll asked to stop. The first exception a task throws is thrown here.
bool run_parallel(std::size_t n_tasks, std::size_t n_threads,
                  const std::function<void(std::size_t, const StopFlag&)>& task, const Poll& poll);

}  // namespace evergrow
