#include "run/parallel_tasks.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace evergrow {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);

struct Shared {
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> n_done{0};
    StopFlag stop{false};
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t n_running = 0;
    std::exception_ptr error;
};

void work(Shared& shared, std::size_t n_tasks, std::size_t worker, const Task& task) {
    try {
        while (!shared.stop) {
            const std::size_t index = shared.next++;
            if (index >= n_tasks) break;
            task(index, worker, shared.stop);
            ++shared.n_done;
        }
    } catch (...) {
        const std::lock_guard<std::mutex> lock(shared.mutex);
        if (!shared.error) shared.error = std::current_exception();
        shared.stop = true;
    }
    const std::lock_guard<std::mutex> lock(shared.mutex);
    --shared.n_running;
    shared.finished.notify_all();
}

// Joins its threads on every way out, exceptions included: they refer to local variables.
class Threads {
  public:
    explicit Threads(Shared& shared) : shared_(shared) {}
    ~Threads() {
        shared_.stop = true;
        for (std::thread& thread : threads_) thread.join();
    }
    template <class Function>
    void start(Function function) {
        {
            const std::lock_guard<std::mutex> lock(shared_.mutex);
            ++shared_.n_running;
        }
        try {
            threads_.emplace_back(function);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(shared_.mutex);
            --shared_.n_running;
            throw;
        }
    }

  private:
    Shared& shared_;
    std::vector<std::thread> threads_;
};

}  // namespace

bool run_parallel(std::size_t n_tasks, std::size_t n_threads, const Task& task, const Poll& poll) {
    Shared shared;
    bool stopped = false;
    {
        Threads threads(shared);
        const std::size_t count = std::max<std::size_t>(1, std::min(n_threads, n_tasks));
        for (std::size_t i = 0; i < count; ++i)
            threads.start([&shared, n_tasks, i, &task] { work(shared, n_tasks, i, task); });
        std::unique_lock<std::mutex> lock(shared.mutex);
        while (shared.n_running > 0) {
            shared.finished.wait_for(lock, kPollInterval);
            lock.unlock();
            if (!stopped && !poll(shared.n_done)) {
                stopped = true;
                shared.stop = true;
            }
            lock.lock();
        }
    }
    if (shared.error) std::rethrow_exception(shared.error);
    return !stopped;
}

}  // namespace evergrow
