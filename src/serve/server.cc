#include "serve/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <memory>

#include "call/call.h"
#include "catalog/file_text.h"
#include "catalog/memory.h"
#include "serve/door.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostPageBytes = std::size_t{16} << 20;
constexpr std::size_t kThreads = 16;  // a slow visitor holds one while its request arrives
constexpr int kBacklog = 1024;        // visitors not accepted yet; the library asks for 5
constexpr int kPatience = 10;         // seconds for a request to arrive
constexpr int kInternalFault = 500;
constexpr int kBadRequest = 400;
constexpr const char* kHere = "127.0.0.1";
constexpr const char* kText = "text/plain; charset=utf-8";

Visit visit_of(const httplib::Request& request) {
  return {.method = request.method,
          .path = request.path,
          .host = request.get_header_value("Host"),
          .origin = request.get_header_value("Origin"),
          .type = request.get_header_value("Content-Type"),
          .token = request.path == "/" ? request.get_param_value("token")
                                       : request.get_header_value("X-Placet-Token")};
}

void refuse_visitor(const TurnedAway& refusal, httplib::Response& response) {
  response.status = refusal.status;
  response.set_header("Connection", "close");
  response.set_content(refusal.text + "\n", kText);
}

void answer_call(const Catalog& catalog, const httplib::Request& request,
                 httplib::Response& response) {
  try {
    const Answer answer = call(catalog, request.body);
    response.set_header("X-Placet-Status", std::to_string(answer.status));
    response.status = answer.status == 2 ? kBadRequest : 200;
    response.set_content(answer.document, "application/json");
  } catch (const std::exception& error) {
    response.status = kInternalFault;
    response.set_content(std::string(error.what()) + "\n", kText);
  }
}

void set_limits(httplib::Server& server) {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostRequestBytes);
  server.set_read_timeout(kPatience);
  server.set_write_timeout(kPatience);
  // A connection kept holds a thread while it is idle, and others wait for it; on this machine a
  // new one costs little.
  server.set_keep_alive_max_count(1);
}

/// The port that the server listens at from now on.
int bound_port(httplib::Server& server, int asked) {
  int listening = -1;
  server.set_socket_options([&listening](int opened) {
    httplib::default_socket_options(opened);
    listening = opened;
  });
  int port = asked;
  if (asked == 0) {
    port = server.bind_to_any_port(kHere);
  } else if (!server.bind_to_port(kHere, asked)) {
    port = 0;
  }
  server.set_socket_options(httplib::default_socket_options);
  // Where many come at once and the queue is full, the system drops some and they try again after
  // seconds. Listening once more makes the queue longer.
  if (port > 0 && ::listen(listening, kBacklog) == 0) return port;
  refuse("--port", std::to_string(asked), "cannot be listened at", "a port that is free");
}

}  // namespace

void serve(const Catalog& catalog, const ServeChoice& choice,
           const std::function<void(const std::string& address)>& told) {
  Catalog kept = catalog;
  kept.memory = std::make_shared<CatalogMemory>();
  Door door{.port = 0, .token = new_token()};
  const std::string page = page_with_token(
      read_file_text(choice.page, kMostPageBytes, "a page that ./dev web builds"), door.token);

  httplib::Server server;
  set_limits(server);
  server.set_pre_routing_handler(
      [&door](const httplib::Request& request, httplib::Response& response) {
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Referrer-Policy", "no-referrer");
        response.set_header("X-Frame-Options", "DENY");
        response.set_header("Cache-Control", "no-store");
        const TurnedAway refusal = turned_away(visit_of(request), door);
        if (refusal.status == 0) return httplib::Server::HandlerResponse::Unhandled;
        refuse_visitor(refusal, response);
        return httplib::Server::HandlerResponse::Handled;
      });
  server.Get("/", [&page](const httplib::Request&, httplib::Response& response) {
    response.set_content(page, "text/html; charset=utf-8");
  });
  server.Post("/call", [&kept](const httplib::Request& request, httplib::Response& response) {
    answer_call(kept, request, response);
  });

  door.port = bound_port(server, choice.port);
  told("http://" + std::string(kHere) + ":" + std::to_string(door.port) + "/?token=" + door.token);
  server.listen_after_bind();
}

}  // namespace placet
