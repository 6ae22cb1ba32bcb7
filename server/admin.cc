#include "server/admin.h"

#include "server/log.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cerrno>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

namespace cairn::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Reply = http::response<http::string_body>;

constexpr Milliseconds kAcceptPause{100};
constexpr const char* kTextType = "text/plain; charset=utf-8";
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

Reply make_reply(http::status status, std::string body, const char* type = kTextType) {
  Reply reply(status, 11);
  reply.set(http::field::content_type, type);
  reply.set(http::field::cache_control, "no-store");
  reply.body() = std::move(body);
  return reply;
}

Reply answer(const AdminPages& pages, const http::request<http::empty_body>& request) {
  const std::string target(request.target());
  const std::string path = target.substr(0, target.find('?'));
  if (path != "/metrics" && path != "/healthz") {
    return make_reply(http::status::not_found, "no such page: /metrics and /healthz are\n");
  }
  if (request.method() != http::verb::get) {
    Reply reply = make_reply(http::status::method_not_allowed, "GET only\n");
    reply.set(http::field::allow, "GET");
    return reply;
  }
  if (path == "/metrics") return make_reply(http::status::ok, pages.metrics(), kMetricsType);
  const char* const why = pages.why_unhealthy();
  if (why == nullptr) return make_reply(http::status::ok, "ok\n");
  return make_reply(http::status::service_unavailable, std::string(why) + "\n");
}

struct Context {
  const AdminPages& pages;
  Milliseconds timeout;
};

// One connection; owns itself through the handlers that wait for it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Tcp::socket socket, const Context& context, std::size_t& open)
      : stream_(std::move(socket)),
        context_(context),
        open_(open) {
    ++open_;
  }
  ~Connection() { --open_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // NOLINTBEGIN(misc-no-recursion): the loop calls a handler, never the call that hands it over, so
  // read() and write() take turns without ever standing on each other's stack.
  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(kAdminRequestBytesMax.value()));
    parser_->body_limit(std::uint64_t{0});
    stream_.expires_after(context_.timeout);
    http::async_read(
        stream_, buffer_, *parser_, [self = shared_from_this()](error_code ec, std::size_t) {
          self->on_read(ec);
        });
  }

 private:
  void on_read(error_code ec) {
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
      write(make_reply(http::status::request_header_fields_too_large, "too long\n"), false);
    } else if (ec == http::error::body_limit || ec == http::error::unexpected_body) {
      write(make_reply(http::status::payload_too_large, "a request here has no body\n"), false);
    } else if (ec == http::error::end_of_stream || ec.category() != parse_errors()) {
      if (ec) return;  // gone, or silent for too long
      write(safe_answer(), parser_->get().keep_alive());
    } else {
      write(make_reply(http::status::bad_request, "not HTTP\n"), false);
    }
  }

  static const boost::system::error_category& parse_errors() {
    return http::make_error_code(http::error::bad_method).category();
  }

  Reply safe_answer() const {
    try {
      return answer(context_.pages, parser_->get());
    } catch (const std::exception& failure) {
      log_event(LogLevel::kError, "admin_page_failed", {{"reason", failure.what()}});
      return make_reply(http::status::internal_server_error, "failed\n");
    }
  }

  void write(Reply reply, bool keep_alive) {
    reply_ = std::move(reply);
    reply_.keep_alive(keep_alive);
    reply_.prepare_payload();
    stream_.expires_after(context_.timeout);
    http::async_write(
        stream_, reply_, [self = shared_from_this(), keep_alive](error_code ec, std::size_t) {
          if (!ec && keep_alive) self->read();
        });
  }
  // NOLINTEND(misc-no-recursion)

  beast::tcp_stream stream_;
  const Context& context_;
  std::size_t& open_;
  beast::flat_buffer buffer_{static_cast<std::size_t>((kAdminRequestBytesMax * 2).value())};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Reply reply_;
};

Error listen_error(const error_code& ec, const char* what) {
  if (ec.value() == EADDRINUSE) return {ErrorCode::kExists, ec.value(), what};
  if (ec.value() == EACCES || ec.value() == EPERM) {
    return {ErrorCode::kPermission, ec.value(), what};
  }
  return {ErrorCode::kIo, ec.value(), what};
}

}  // namespace

class AdminEndpoint::Impl {
 public:
  Impl(const AdminPages& pages, Milliseconds timeout)
      : context_{pages, timeout} {}
  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status listen(const transport::Address& address) {
    error_code ec;
    const asio::ip::address host = asio::ip::make_address(address.host, ec);
    if (ec || address.is_unix) return Error{ErrorCode::kInvalid, 0, "admin address"};
    const Tcp::endpoint endpoint(host, address.port);
    acceptor_.open(endpoint.protocol(), ec);
    if (ec) return listen_error(ec, "socket");
    acceptor_.set_option(Tcp::acceptor::reuse_address(true), ec);
    if (ec) return listen_error(ec, "SO_REUSEADDR");
    acceptor_.bind(endpoint, ec);
    if (ec) return listen_error(ec, "bind");
    acceptor_.listen(static_cast<int>(kAdminConnectionsMax), ec);
    if (ec) return listen_error(ec, "listen");
    const Tcp::endpoint bound = acceptor_.local_endpoint(ec);
    if (ec) return listen_error(ec, "getsockname");
    address_ = address;
    address_.port = bound.port();
    return {};
  }

  void start() {
    accept();
    thread_ = std::thread([this] { run(); });
  }

  const transport::Address& address() const { return address_; }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code ec, Tcp::socket socket) {
      if (ec) return accept_later();
      greet(std::move(socket));
      accept();
    });
  }

  void greet(Tcp::socket socket) noexcept {
    if (open_ >= kAdminConnectionsMax) return;
    try {
      std::make_shared<Connection>(std::move(socket), context_, open_)->read();
    } catch (const std::exception& failure) {
      log_event(LogLevel::kError, "admin_connection_failed", {{"reason", failure.what()}});
    }
  }

  // Descriptors may have run out; asking again at once would only burn a core.
  void accept_later() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code ec) {
      if (!ec) accept();
    });
  }

  void run() noexcept {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception& failure) {
        log_event(LogLevel::kError, "admin_request_failed", {{"reason", failure.what()}});
      }
    }
  }

  const Context context_;
  transport::Address address_;
  std::size_t open_ = 0;  // outlives the connections, which io_ owns through their handlers
  asio::io_context io_{1};
  Tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  std::thread thread_;
};

AdminEndpoint::AdminEndpoint(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

AdminEndpoint::~AdminEndpoint() = default;

Result<std::unique_ptr<AdminEndpoint>> AdminEndpoint::open(const transport::Address& address,
                                                           const AdminPages& pages,
                                                           Milliseconds timeout) noexcept {
  try {
    auto impl = std::make_unique<Impl>(pages, timeout);
    CAIRN_TRY_STATUS(impl->listen(address));
    impl->start();
    return std::unique_ptr<AdminEndpoint>(new AdminEndpoint(std::move(impl)));
  } catch (const std::exception&) {
    return Error{ErrorCode::kIo, 0, "admin endpoint"};
  }
}

transport::Address AdminEndpoint::address() const {
  return impl_->address();
}

}  // namespace cairn::server
