#include "serve/door.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

const Door kDoor{.port = 8080, .token = "0123456789abcdef"};

Visit call_visit() {
  return {.method = "POST",
          .path = "/call",
          .host = "127.0.0.1:8080",
          .origin = "http://127.0.0.1:8080",
          .type = "application/json",
          .token = "0123456789abcdef"};
}

int status_of(const Visit& visit) { return turned_away(visit, kDoor).status; }

TEST(Door, LetsItsOwnPageAsk) {
  EXPECT_EQ(status_of(call_visit()), 0);
  Visit visit = call_visit();
  visit.host = "localhost:8080";
  visit.origin = "";  // a program, not a page
  visit.type = "application/json; charset=utf-8";
  EXPECT_EQ(status_of(visit), 0);
  EXPECT_EQ(status_of({.method = "GET",
                       .path = "/",
                       .host = "127.0.0.1:8080",
                       .origin = "",
                       .type = "",
                       .token = "0123456789abcdef"}),
            0);
}

TEST(Door, RefusesHostNamesThatWereMadeToPointHere) {
  for (const char* host : {"evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:8081",
                           "127.0.0.1:8080.evil.example", "", "0.0.0.0:8080"}) {
    Visit visit = call_visit();
    visit.host = host;
    EXPECT_EQ(status_of(visit), 403) << host;
  }
}

TEST(Door, RefusesPagesOfOtherOrigins) {
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:8080",
                             "http://127.0.0.1:8081", "file://"}) {
    Visit visit = call_visit();
    visit.origin = origin;
    EXPECT_EQ(status_of(visit), 403) << origin;
  }
}

TEST(Door, RefusesWrongTokens) {
  for (const char* token : {"", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0"}) {
    Visit visit = call_visit();
    visit.token = token;
    EXPECT_EQ(status_of(visit), 403) << token;
  }
}

TEST(Door, HasTwoPathsAndAMethodForEach) {
  Visit visit = call_visit();
  for (const char* path : {"/../etc/passwd", "/index.html", "//", "/call/", "/%2e%2e/"}) {
    visit.path = path;
    EXPECT_EQ(status_of(visit), 404) << path;
  }
  visit.path = "/";
  EXPECT_EQ(status_of(visit), 405);
  visit = call_visit();
  visit.method = "GET";
  EXPECT_EQ(status_of(visit), 405);
  visit = call_visit();
  visit.type = "text/plain";  // what a form of another page may send without being asked
  EXPECT_EQ(status_of(visit), 415);
}

TEST(Door, MakesTokensThatDiffer) {
  const std::string token = new_token();
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, new_token());
}

TEST(Door, PutsTheTokenIntoThePage) {
  EXPECT_EQ(page_with_token("<html><head></head></html>", "ab"),
            "<html><head><meta name=\"placet-token\" content=\"ab\"></head></html>");
}

}  // namespace
}  // namespace placet
