#include "tests/support/servers.h"

#include "tests/support/loopback.h"

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <thread>

namespace kiln::testing {
namespace {

void need(const char* program) {
  if (exists(program)) return;
  std::fprintf(stderr, "%s must be installed: scripts/install_packages\n", program);
  std::abort();
}

bool wait_for_port(int port) {
  for (int i = 0; i < 3000; ++i) {
    if (connect_to(port).valid()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// As a part of a URL.
std::string escaped(const std::string& text) {
  std::string out;
  char code[4];
  for (const unsigned char c : text) {
    std::snprintf(code, sizeof code, "%%%02X", c);
    out += std::isalnum(c) != 0 ? std::string(1, static_cast<char>(c)) : code;
  }
  return out;
}

void make_certificate(const TempDir& dir) {
  need("/usr/bin/openssl");
  Child openssl(
      {"/bin/sh", "-c",
       "/usr/bin/openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
       "-nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout '" +
           dir / "key.pem" + "' -out '" + dir / "cert.pem" + "' 2>/dev/null"});
  if (openssl.wait() != 0) std::abort();
}

class RedisServer final : public StoreServer {
 public:
  using StoreServer::StoreServer;
  std::string scheme() const override { return options_.tls ? "rediss" : "redis"; }

  void set(const std::string& name, std::string_view value) override {
    if (ask({"SET", "kiln:" + name, std::string(value)}) != "+OK\r\n") std::abort();
  }
  bool has(const std::string& name) override { return ask({"EXISTS", "kiln:" + name}) == ":1\r\n"; }

 protected:
  std::vector<std::string> command() override {
    need("/usr/bin/redis-server");
    if (port_ == 0) plain_port_ = free_port();
    std::vector<std::string> out = {"/usr/bin/redis-server",
                                    "--bind",
                                    "127.0.0.1",
                                    "--dir",
                                    dir_.path(),
                                    "--logfile",
                                    dir_ / "log",
                                    "--appendonly",
                                    "yes",
                                    "--save",
                                    ""};
    const auto add = [&out](const std::string& name, const std::string& value) {
      out.push_back(name);
      out.push_back(value);
    };
    if (options_.tls) {
      if (port_ == 0) make_certificate(dir_);
      port_ = port_ == 0 ? free_port() : port_;
      add("--tls-port", std::to_string(port_));
      add("--tls-cert-file", dir_ / "cert.pem");
      add("--tls-key-file", dir_ / "key.pem");
      add("--tls-auth-clients", "no");
    } else {
      port_ = plain_port_;
    }
    add("--port", std::to_string(plain_port_));
    if (!options_.password.empty()) {
      out.insert(out.end(),
                 {"--user", options_.user, "on", ">" + options_.password, "~*", "+@all"});
    }
    return out;
  }

 private:
  // The reply to one command, which fits into one packet.
  std::string ask(const std::vector<std::string>& words) const {
    const Fd socket = connect_to(plain_port_);
    std::string bytes;
    const auto add = [&bytes](const std::vector<std::string>& all) {
      bytes += "*" + std::to_string(all.size()) + "\r\n";
      for (const std::string& word : all)
        bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    };
    add(words);
    if (!send_all(socket, bytes)) std::abort();
    return receive_some(socket);
  }

  int plain_port_ = 0;
};

class NginxServer final : public StoreServer {
 public:
  explicit NginxServer(const ServerOptions& options, bool like_bazel = false)
      : StoreServer(options), like_bazel_(like_bazel), folder_(like_bazel ? "ac" : "kiln") {}
  std::string scheme() const override { return options_.tls ? "https" : "http"; }
  void set(const std::string& name, std::string_view value) override {
    write_file(dir_ / (folder_ + "/" + name), value);
  }
  bool has(const std::string& name) override { return exists(dir_ / (folder_ + "/" + name)); }

 protected:
  std::string path() const override { return "/" + folder_; }
  std::vector<std::string> command() override {
    need("/usr/sbin/nginx");
    if (port_ == 0) {
      port_ = free_port();
      if (options_.tls) make_certificate(dir_);
      ::mkdir((dir_ / folder_).c_str(), 0755);
      write_file(dir_ / "conf", config());
      write_file(dir_ / "users", options_.user + ":{PLAIN}" + options_.password + "\n");
    }
    return {"/usr/sbin/nginx", "-p", dir_.path(), "-c", dir_ / "conf", "-e", dir_ / "log"};
  }

 private:
  std::string config() const {
    const std::string tls =
        options_.tls ? " ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem;" : ";";
    const std::string users =
        options_.password.empty() ? "" : "auth_basic kiln; auth_basic_user_file users;";
    return "daemon off; master_process off; pid nginx.pid;\n"
           "events {}\n"
           "http {\n"
           "  access_log access; client_body_temp_path body; proxy_temp_path proxy;\n"
           "  fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"
           "  server {\n"
           "    listen 127.0.0.1:" +
           std::to_string(port_) + tls +
           "\n    root .; client_max_body_size 64m; dav_methods PUT; create_full_put_path on;\n   "
           " " +
           users + (like_bazel_ ? kBazelRules : "") + "\n  }\n}\n";
  }

  // What server/http.go of bazel-remote looks at, with --disable_http_ac_validation.
  static constexpr const char* kBazelRules =
      "\n    if ($request_method !~ ^(GET|HEAD|PUT)$) { return 405; }"
      "\n    set $put_of \"$request_method$http_content_length\"; if ($put_of = PUT) { return 400; "
      "}"
      "\n    location / { return 400; }"
      "\n    location ~ \"^/?(.*/)?ac/[a-f0-9]{64}$\" { }";

  const bool like_bazel_;
  const std::string folder_;
};

// OpenStack Swift with its S3 gateway, which checks the signature of each request.
class S3Server final : public StoreServer {
 public:
  explicit S3Server(ServerOptions options) : StoreServer(with_keys(std::move(options))) {}
  std::string scheme() const override { return "s3+http"; }
  void set(const std::string& name, std::string_view value) override {
    if (ask("PUT", name, value).find(" 201 ") == std::string::npos) std::abort();
  }
  bool has(const std::string& name) override {
    return ask("HEAD", name, "").find(" 200 ") != std::string::npos;
  }

 protected:
  std::string path() const override { return "/kiln"; }
  std::vector<std::string> command() override {
    need("/usr/lib/python3/dist-packages/swift");
    if (port_ == 0) {
      port_ = free_port();
      plain_port_ = free_port();
    }
    return {"/usr/bin/python3",    "-B",
            KILN_TEST_S3_SERVER,   dir_.path(),
            std::to_string(port_), std::to_string(plain_port_),
            options_.user,         options_.password};
  }

 private:
  static ServerOptions with_keys(ServerOptions options) {
    if (options.user.empty()) options.user = "KILNKEY";
    if (options.password.empty()) options.password = "kilns3cret+/key";
    return options;
  }
  std::string ask(const std::string& method, const std::string& name, std::string_view body) const {
    const Fd socket = connect_to(plain_port_);
    if (!send_all(socket, method + " /v1/AUTH_test/kiln/" + name +
                              " HTTP/1.1\r\nHost: kiln\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + std::string(body)))
      std::abort();
    return receive_some(socket);
  }

  int plain_port_ = 0;
};

}  // namespace

void StoreServer::start() {
  for (int tries = 0; tries < 5; ++tries) {
    std::vector<std::string> line = {"/usr/bin/setpriv", "--pdeathsig", "KILL", "--"};
    for (std::string& word : command()) line.push_back(std::move(word));
    child_ = std::make_unique<Child>(line);
    if (wait_for_port(port_)) return;
  }
  std::fprintf(stderr, "%s", read_file(dir_ / "log").c_str());
  std::abort();
}

std::string StoreServer::url(int port) const {
  const std::string login =
      options_.password.empty() ? "" : options_.user + ":" + escaped(options_.password) + "@";
  return scheme() + "://" + login + "127.0.0.1:" + std::to_string(port > 0 ? port : port_) + path();
}

std::unique_ptr<StoreServer> make_redis_server(const ServerOptions& options) {
  auto out = std::make_unique<RedisServer>(options);
  out->start();
  return out;
}

std::unique_ptr<StoreServer> make_nginx_server(const ServerOptions& options) {
  auto out = std::make_unique<NginxServer>(options);
  out->start();
  return out;
}

std::unique_ptr<StoreServer> make_bazel_like_server(const ServerOptions& options) {
  auto out = std::make_unique<NginxServer>(options, true);
  out->start();
  return out;
}

std::unique_ptr<StoreServer> make_s3_server(const ServerOptions& options) {
  auto out = std::make_unique<S3Server>(options);
  out->start();
  return out;
}

int free_port() {
  int port = 0;
  listen_on_free_port(port);
  return port;
}

}  // namespace kiln::testing
