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

// task(index, worker, stop): tasks of one worker, 0 to n_threads - 1, never run at the same time,
// so they may share scratch space.
using Task = std::function<void(std::size_t index, std::size_t worker, const StopFlag& stop)>;

// Runs the task for every index on `n_threads` threads. Returns false if the poll asked to stop.
// The first exception a task throws is thrown here.
bool run_parallel(std::size_t n_tasks, std::size_t n_threads, const Task& task, const Poll& poll);

}  // namespace evergrow
