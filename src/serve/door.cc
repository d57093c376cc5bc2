#include "serve/door.h"

#include <array>
#include <random>

namespace placet {
namespace {

constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kNotAllowed = 405;
constexpr int kWrongType = 415;

bool is_here(std::string_view host, int port) {
  const std::string end = ":" + std::to_string(port);
  return host == "127.0.0.1" + end || host == "localhost" + end;
}

/// In a time that does not tell how much of it is right.
bool is_same(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(one[i]) ^
                                        static_cast<unsigned char>(other[i]));
  }
  return difference == 0;
}

TurnedAway turned_away_by_path(const Visit& visit) {
  const bool page = visit.path == "/";
  if (!page && visit.path != "/call") return {kNotFound, "there is / and /call"};
  if (visit.method != (page ? "GET" : "POST")) {
    return {kNotAllowed, page ? "/ takes GET" : "/call takes POST"};
  }
  return {};
}

}  // namespace

TurnedAway turned_away(const Visit& visit, const Door& door) {
  if (!is_here(visit.host, door.port)) return {kForbidden, "this host name is not served"};
  constexpr std::string_view kScheme = "http://";
  if (!visit.origin.empty() && !(visit.origin.starts_with(kScheme) &&
                                 is_here(visit.origin.substr(kScheme.size()), door.port))) {
    return {kForbidden, "pages of other origins may not ask"};
  }
  if (TurnedAway refusal = turned_away_by_path(visit); refusal.status != 0) return refusal;
  if (!is_same(visit.token, door.token)) {
    return {kForbidden, "open the address that the program printed: it holds a token"};
  }
  if (visit.method == "POST" && !visit.type.starts_with("application/json")) {
    return {kWrongType, "a request is a document of the type application/json"};
  }
  return {};
}

std::string new_token() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr int kWords = 4;
  constexpr int kDigitsOfWord = 8;
  std::random_device random;
  std::string token;
  for (int word = 0; word < kWords; ++word) {
    unsigned bits = random();
    for (int digit = 0; digit < kDigitsOfWord; ++digit, bits >>= 4U) {
      token += kDigits[bits & 15U];
    }
  }
  return token;
}

std::string page_with_token(std::string page, std::string_view token) {
  constexpr std::string_view kBefore = "<head>";
  const std::size_t head = page.find(kBefore);
  if (head == std::string::npos) return page;
  page.insert(head + kBefore.size(),
              "<meta name=\"placet-token\" content=\"" + std::string(token) + "\">");
  return page;
}

}  // namespace placet
