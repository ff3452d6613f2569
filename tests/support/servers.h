#ifndef KILN_TESTS_SUPPORT_SERVERS_H_
#define KILN_TESTS_SUPPORT_SERVERS_H_

#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Real stores on loopback, on ports that were free a moment ago. They die with the test.
namespace kiln::testing {

struct ServerOptions {
  bool tls = false;  // with a certificate for 127.0.0.1 that only `ca_file()` vouches for
  std::string user, password;
};

// A store in which a test can look and change things behind the cache's back. Names are those of
// the cache's values: 64 hex digits.
class StoreServer {
 public:
  explicit StoreServer(const ServerOptions& options) : options_(options) {}
  virtual ~StoreServer() = default;

  void start();  // again after `stop`, with what it had, on the same port
  void stop() { child_.reset(); }

  virtual std::string scheme() const = 0;
  // With user and password, if it has any, and perhaps another port.
  std::string url(int port = 0) const;
  int port() const { return port_; }
  std::string ca_file() const { return options_.tls ? dir_ / "cert.pem" : ""; }

  virtual void set(const std::string& name, std::string_view value) = 0;
  virtual bool has(const std::string& name) = 0;

 protected:
  virtual std::vector<std::string> command() = 0;
  virtual std::string path() const { return ""; }

  const ServerOptions options_;
  const TempDir dir_;
  int port_ = 0;

 private:
  std::unique_ptr<Child> child_;
};

std::unique_ptr<StoreServer> make_redis_server(const ServerOptions& options = {});
std::unique_ptr<StoreServer> make_nginx_server(const ServerOptions& options = {});
// One that takes the paths and methods that bazel-remote takes, and refuses others as it does.
std::unique_ptr<StoreServer> make_bazel_like_server(const ServerOptions& options = {});
std::unique_ptr<StoreServer> make_s3_server(const ServerOptions& options = {});  // no TLS

// Passes connections on to a port of this machine, and can be a bad network.
class Proxy {
 public:
  explicit Proxy(int target_port);
  ~Proxy();

  int port() const;
  // From now on, for connections that are there and those to come: what the target sends is held
  // back for so long; nothing of it beyond so many bytes a connection goes through before the
  // connection is cut (-1: no limit).
  void set_delay_ms(int delay);
  void set_cut_after(long bytes);
  long connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A port that was free.
int free_port();

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_SERVERS_H_
