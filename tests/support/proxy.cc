#include "tests/support/loopback.h"
#include "tests/support/servers.h"

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <sys/socket.h>
#include <thread>

namespace kiln::testing {

struct Proxy::State {
  struct Pair {
    Fd client, target;
    std::thread forth, back;
  };
  int target_port = 0, port = 0;
  Fd listener;
  std::atomic<int> delay_ms{0};
  std::atomic<long> cut_after{-1};
  std::atomic<long> connections{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::list<Pair> pairs;
  std::thread acceptor;

  void accept_all() {
    while (!stopping) {
      Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      ++connections;
      Fd target = connect_to(target_port);
      if (!target.valid()) continue;
      const std::lock_guard lock(mutex);
      Pair& pair = pairs.emplace_back();
      pair.client = std::move(client);
      pair.target = std::move(target);
      pair.forth = std::thread([this, &pair] { pass(pair.client, pair.target, false); });
      pair.back = std::thread([this, &pair] { pass(pair.target, pair.client, true); });
    }
  }

  void pass(const Fd& from, const Fd& to, bool is_back) {
    long passed = 0;
    while (true) {
      std::string bytes = receive_some(from);
      if (bytes.empty()) break;
      for (int waited = 0; is_back && waited < delay_ms && !stopping; waited += 5)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const long limit = cut_after;
      const bool cut = is_back && limit >= 0 && passed + static_cast<long>(bytes.size()) > limit;
      if (cut) bytes.resize(static_cast<std::size_t>(std::max(0L, limit - passed)));
      passed += static_cast<long>(bytes.size());
      if (!send_all(to, bytes) || cut) break;
    }
    ::shutdown(from.get(), SHUT_RDWR);
    ::shutdown(to.get(), SHUT_RDWR);
  }
};

Proxy::Proxy(int target_port) : state_(std::make_shared<State>()) {
  state_->target_port = target_port;
  state_->listener = listen_on_free_port(state_->port);
  state_->acceptor = std::thread([state = state_.get()] { state->accept_all(); });
}

Proxy::~Proxy() {
  state_->stopping = true;
  ::shutdown(state_->listener.get(), SHUT_RDWR);
  state_->acceptor.join();
  for (State::Pair& pair : state_->pairs) {
    ::shutdown(pair.client.get(), SHUT_RDWR);
    ::shutdown(pair.target.get(), SHUT_RDWR);
    pair.forth.join();
    pair.back.join();
  }
}

int Proxy::port() const { return state_->port; }
void Proxy::set_delay_ms(int delay) { state_->delay_ms = delay; }
void Proxy::set_cut_after(long bytes) { state_->cut_after = bytes; }
long Proxy::connections() const { return state_->connections; }

}  // namespace kiln::testing
