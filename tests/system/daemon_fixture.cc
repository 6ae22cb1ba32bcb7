#include "tests/system/daemon_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

namespace cairn::testing {

DaemonFixture::DaemonFixture(DaemonOptions options)
    : options_(std::move(options)),
      pool_("/dev/shm"),
      socket_path_(directory_ / "cairnd.sock") {}

DaemonFixture::~DaemonFixture() {
  if (process_) stop();
}

bool DaemonFixture::start() {
  std::vector<std::string> command = {sibling_program("cairnd"),
                                      "--set",
                                      "data_dir=" + (directory_ / "data"),
                                      "--set",
                                      "listen.unix=" + socket_path_,
                                      "--set",
                                      "listen.tcp=",
                                      "--set",
                                      "admin.listen=",
                                      "--set",
                                      "pool.dir=" + pool_.path(),
                                      "--set",
                                      "tiers.dram.size=" + options_.pool};
  for (const std::string& setting : options_.settings) {
    command.push_back("--set");
    command.push_back(setting);
  }
  process_ = Process::start(command);
  if (!process_) return false;
  const bool is_ready = process_->wait_for_line("ready", Milliseconds(30'000)).has_value();
  EXPECT_TRUE(is_ready) << process_->errors();
  return is_ready;
}

void DaemonFixture::kill_now() {
  process_->kill_now();
  process_.reset();
}

int DaemonFixture::stop() {
  process_->signal(SIGTERM);
  const int code = process_->wait_exit(Milliseconds(10'000)).value_or(-1);
  process_.reset();
  return code;
}

std::unique_ptr<client::Client> DaemonFixture::connect(client::ClientOptions options) const {
  options.server = server();
  std::string message;
  auto client = client::Client::connect(options, &message);
  EXPECT_TRUE(client.has_value()) << message;
  return client ? std::move(*client) : nullptr;
}

double DaemonFixture::statistic(client::Client& client, const std::string& pointer) const {
  const auto answer = client.stats();
  if (answer.status != BlockStatus::kOk) return -1;
  const auto json = nlohmann::json::parse(answer.json, nullptr, false);
  const nlohmann::json::json_pointer at(pointer);
  if (json.is_discarded() || !json.contains(at)) return -1;
  return json[at].get<double>();
}

client::Namespace open_test_namespace(client::Client& client) {
  std::string message;
  const auto name_space = client.open_namespace(R"({"application":"system-test"})", &message);
  EXPECT_TRUE(name_space.has_value()) << message;
  return name_space ? *name_space : client::Namespace{};
}

}  // namespace cairn::testing
