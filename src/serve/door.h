// Who may ask a server on this machine: whoever came by the address that the program printed, and
// no page of other origins that a browser on this machine has open.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace placet {

inline constexpr std::size_t kMostRequestBytes = std::size_t{4} << 20;

/// What is known to be right: the port that is listened at, and the word that the address holds.
struct Door {
  int port = 0;
  std::string token;
};

/// A request as far as it matters here; empty: the header is not there.
struct Visit {
  std::string method, path, host, origin, type;
  std::string token;  // in the query of the page's address, else in the header X-Placet-Token
};

/// Why somebody is turned away: a status of HTTP and a line of text. 0: they are not.
struct TurnedAway {
  int status = 0;
  std::string text;

  friend bool operator==(const TurnedAway&, const TurnedAway&) = default;
};

/// In this order: a host name that is not this machine's (one that was made to point here), another
/// page's origin, a path or method that there is none of, a wrong token, a body that is no JSON.
///   {"POST", "/call", "127.0.0.1:8080", "http://evil.example", ...}  403
TurnedAway turned_away(const Visit& visit, const Door& door);

/// 32 digits that nobody guesses.
std::string new_token();

/// The page with the token in it, as its script looks for it.
std::string page_with_token(std::string page, std::string_view token);

}  // namespace placet
