#include "server/admin.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::server {
namespace {

class ScriptedPages final : public AdminPages {
 public:
  std::string metrics() const override {
    if (is_throwing) throw std::runtime_error("scripted");
    return "cairn_x 1\n";
  }
  const char* why_unhealthy() const override { return is_healthy ? nullptr : "stopping"; }

  std::atomic<bool> is_throwing{false};
  std::atomic<bool> is_healthy{true};
};

class Browser {
 public:
  explicit Browser(const transport::Address& address)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
    const void* const raw = &to;
    EXPECT_EQ(::connect(socket_, static_cast<const sockaddr*>(raw), sizeof to), 0);
  }
  ~Browser() { ::close(socket_); }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void send(std::string_view text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What comes until the other side closes.
  std::string rest() {
    std::string text;
    while (take(text)) {
    }
    return text;
  }
  // What comes until `end` has come.
  std::string until(std::string_view end) {
    std::string text;
    while (text.find(end) == std::string::npos && take(text)) {
    }
    return text;
  }

 private:
  bool take(std::string& text) {
    std::array<char, 1024> buffer{};
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  int socket_;
};

class AdminEndpointTest : public ::testing::Test {
 protected:
  static transport::Address loopback(std::uint16_t port) {
    return *transport::Address::parse("127.0.0.1:" + std::to_string(port));
  }
  void SetUp() override {
    Result<std::unique_ptr<AdminEndpoint>> opened = AdminEndpoint::open(loopback(0), pages_);
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    endpoint_ = *std::move(opened);
  }
  std::string ask(std::string_view request) {
    Browser browser(endpoint_->address());
    browser.send(request);
    return browser.rest();
  }
  std::string get(std::string_view path) {
    return ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  ScriptedPages pages_;
  std::unique_ptr<AdminEndpoint> endpoint_;
};

std::string status_line(const std::string& reply) {
  return reply.substr(0, reply.find("\r\n"));
}

TEST_F(AdminEndpointTest, ShowsMetrics) {
  for (const char* path : {"/metrics", "/metrics?format=text"}) {
    const std::string reply = get(path);
    EXPECT_EQ(status_line(reply), "HTTP/1.1 200 OK");
    EXPECT_NE(reply.find("text/plain; version=0.0.4"), std::string::npos);
    EXPECT_TRUE(reply.ends_with("\r\n\r\ncairn_x 1\n")) << reply;
  }
}

TEST_F(AdminEndpointTest, SaysWhetherTheNodeServes) {
  EXPECT_TRUE(get("/healthz").ends_with("\r\n\r\nok\n"));
  pages_.is_healthy = false;

  const std::string reply = get("/healthz");

  EXPECT_EQ(status_line(reply), "HTTP/1.1 503 Service Unavailable");
  EXPECT_TRUE(reply.ends_with("\r\n\r\nstopping\n"));
}

TEST_F(AdminEndpointTest, KnowsNoOtherPage) {
  for (const char* path : {"/", "/metrics/", "/healthz/x", "/../etc/passwd", "*"}) {
    EXPECT_EQ(status_line(get(path)), "HTTP/1.1 404 Not Found") << path;
  }
}

TEST_F(AdminEndpointTest, TakesNoOtherMethod) {
  for (const char* method : {"POST", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    const std::string reply =
        ask(std::string(method) + " /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(status_line(reply), "HTTP/1.1 405 Method Not Allowed") << method;
    EXPECT_NE(reply.find("Allow: GET"), std::string::npos) << method;
  }
}

TEST_F(AdminEndpointTest, AnswersSeveralRequestsOnOneConnection) {
  Browser browser(endpoint_->address());

  for (int i = 0; i < 3; ++i) {
    browser.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(browser.until("ok\n").find("200 OK"), std::string::npos);
  }
}

TEST_F(AdminEndpointTest, RefusesWhatIsNoHttp) {
  EXPECT_EQ(status_line(ask("\x16\x03\x01\x02\r\n\r\n")), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_line(ask("GET /metrics HTTP/9.9\r\n\r\n")), "HTTP/1.1 400 Bad Request");
}

TEST_F(AdminEndpointTest, BoundsTheSizeOfARequest) {
  const std::string long_header(kAdminRequestBytesMax.value(), 'x');

  EXPECT_EQ(status_line(ask("GET /metrics HTTP/1.1\r\nX: " + long_header + "\r\n\r\n")),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(status_line(ask("GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello")),
            "HTTP/1.1 413 Payload Too Large");
}

TEST_F(AdminEndpointTest, ClosesASilentConnection) {
  const auto impatient = AdminEndpoint::open(loopback(0), pages_, Milliseconds(20));
  ASSERT_TRUE(impatient.has_value());
  Browser browser((*impatient)->address());
  browser.send("GET /met");

  EXPECT_EQ(browser.rest(), "");
}

TEST_F(AdminEndpointTest, BoundsTheNumberOfConnections) {
  std::vector<std::unique_ptr<Browser>> open;
  for (std::size_t i = 0; i < kAdminConnectionsMax; ++i) {
    open.push_back(std::make_unique<Browser>(endpoint_->address()));
    open.back()->send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(open.back()->until("ok\n").find("200 OK"), std::string::npos);
  }

  Browser one_more(endpoint_->address());
  EXPECT_EQ(one_more.rest(), "");
  open.front()->send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(open.front()->until("ok\n").find("200 OK"), std::string::npos);
}

TEST_F(AdminEndpointTest, OutlivesAPageThatThrows) {
  pages_.is_throwing = true;
  EXPECT_EQ(status_line(get("/metrics")), "HTTP/1.1 500 Internal Server Error");
  pages_.is_throwing = false;

  EXPECT_EQ(status_line(get("/metrics")), "HTTP/1.1 200 OK");
}

TEST_F(AdminEndpointTest, SaysThatItsPortIsTaken) {
  const auto second = AdminEndpoint::open(endpoint_->address(), pages_);

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kExists);
}

TEST_F(AdminEndpointTest, NeedsAnAddressItCanHave) {
  const auto unix_socket = AdminEndpoint::open(*transport::Address::parse("unix:/s"), pages_);
  const auto name = AdminEndpoint::open(*transport::Address::parse("host:1"), pages_);
  const auto foreign = AdminEndpoint::open(*transport::Address::parse("192.0.2.1:0"), pages_);

  EXPECT_EQ(unix_socket.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(name.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(foreign.error().code, ErrorCode::kIo);
}

TEST_F(AdminEndpointTest, FreesItsPortWhenItGoes) {
  const transport::Address address = endpoint_->address();
  endpoint_.reset();

  const auto again = AdminEndpoint::open(address, pages_);

  EXPECT_TRUE(again.has_value());
}

}  // namespace
}  // namespace cairn::server
