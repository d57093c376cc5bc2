#include "catalog/reader.h"

#include <gtest/gtest.h>

#include "catalog/catalog_files.h"

namespace placet {
namespace {

Document document(const std::string& text) { return {"f.json", parse_json(text, "f.json")}; }

template <class Read>
std::string complaint(const std::string& text, const Read& read) {
  return message_of([&] {
    const Document file = document(text);
    read(Reader(file));
  });
}

TEST(ParseJsonTest, MalformedTextIsShownWithItsPlace) {
  EXPECT_EQ(message_of([] { parse_json("{\n  \"a\": 1,\n}", "f.json"); }).substr(0, 43),
            "f.json: line 3, column 1: this is not JSON;");
  EXPECT_NE(message_of([] { parse_json("", "f.json"); }).find("this is not JSON"),
            std::string::npos);
}

TEST(ParseJsonTest, WhatWasExpectedIsSaid) {
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {R"({"a": 1, })",
       "f.json: line 1, column 10: this is not JSON; expected a key in quotation marks"},
      {R"({"a" 1})", "f.json: line 1, column 6: this is not JSON; expected ':' behind a key"},
      {R"({"a": 1 "b": 2})", "f.json: line 1, column 9: this is not JSON; expected ',' or '}'"},
      {"[1, 2", "f.json: line 1, column 6: this is not JSON; expected ',' or ']'"},
      {"[1, x]", "f.json: line 1, column 5: this is not JSON; expected a value"},
      {"{} {}", "f.json: line 1, column 4: this is not JSON; expected nothing behind the value"},
      {std::string("{}\0 {}", 6),
       "f.json: line 1, column 3: this is not JSON; expected nothing behind the value"},
      {"[1.]", "f.json: line 1, column 4: this is not JSON; expected digits of a number"},
      {"[\"\xC3(\"]",
       "f.json: line 1, column 3: this is not JSON; expected a string in UTF-8 without control "
       "characters"},
      {R"(["\x"])",
       "f.json: line 1, column 3: this is not JSON; expected one of the escapes \\\" \\\\ \\/ \\b "
       "\\f \\n \\r \\t \\uXXXX"},
      {"[\"a\tb\"]",
       "f.json: line 1, column 4: this is not JSON; expected a string in UTF-8 without control "
       "characters"},
      {R"(["\udc00"])",
       "f.json: '\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD' is no text; expected UTF-8, and escapes of "
       "whole characters"},
      {R"({"\udc00": 1})",
       "f.json: '\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD' is no text; expected UTF-8, and escapes of "
       "whole characters"},
      {"[1e999]", "f.json: line 1, column 2: a number is beyond what JSON readers handle"},
  };
  for (const auto& [text, complaint] : complaints) {
    EXPECT_EQ(message_of([&] { parse_json(text, "f.json"); }), complaint) << text;
  }
}

TEST(ParseJsonTest, NumbersStayExactAndStringsWhole) {
  EXPECT_EQ(
      parse_json(R"([18446744073709551615, -9223372036854775808, 0.1, -0, 1e3, 5e-324])", "f.json")
          .dump(),
      "[18446744073709551615,-9223372036854775808,0.1,0,1000.0,5e-324]");
  EXPECT_EQ(parse_json(R"(["\u00e9\ud83d\ude00\n\\", "é", "a\u0000b"])", "f.json").dump(),
            R"(["é😀\n\\","é","a\u0000b"])");
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{}", "f.json").dump(), "{}");
}

TEST(ParseJsonTest, NumbersOfAnyLengthAreTheNearestDoubles) {
  const auto number = [](const std::string& text) {
    return parse_json("[" + text + "]", "f.json")[0].get<double>();
  };
  EXPECT_EQ(number("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(number("0e40"), 0.0);
  EXPECT_EQ(number("0.0e99"), 0.0);
  EXPECT_EQ(number("123456789012345678901234567890e270"), 123456789012345678901234567890e270);
  EXPECT_EQ(number("18446744073709551616"), 18446744073709551616.0);
  EXPECT_EQ(number("-9223372036854775809"), -9223372036854775808.0);
  EXPECT_EQ(number("9007199254740993.0"), 9007199254740992.0);
  EXPECT_EQ(number("2.2250738585072011e-308"), 2.2250738585072011e-308);
}

TEST(ParseJsonTest, AKeyMayStandOnlyOnce) {
  EXPECT_EQ(message_of([] { parse_json(R"({"a": 1, "b": {"a": 2, "a": 3}})", "f.json"); }),
            "f.json: 'a' is a key given twice");
  EXPECT_NO_THROW(parse_json(R"({"a": {"x": 1}, "b": {"x": 2}})", "f.json"));
  EXPECT_EQ(parse_json(R"({"": 1, "x": 2})", "f.json").dump(), R"({"":1,"x":2})");
  EXPECT_NE(message_of([] {
              parse_json(R"({"a": 1, "": 2, "b": [[})", "f.json");
            }).find("this is not JSON"),
            std::string::npos);
}

TEST(OpenFrontTest, WhatStandsBehindIsNotRead) {
  const TestFolder folder;
  const auto front_of = [&](const std::string& text) {
    return open_front(folder.write("front.json", text), "keys").value.dump();
  };
  // A key of that name further down, or a value, is no end.
  EXPECT_EQ(front_of(R"({"a": {"keys": 1}, "b": "keys", "keys": [1, 2], "c": )"),
            R"({"a":{"keys":1},"b":"keys"})");
  EXPECT_EQ(front_of(R"({"a": 1, "b": [2]})"), R"({"a":1,"b":[2]})");
  const std::string longer(100'000, 'x');
  EXPECT_EQ(front_of(R"({"a": ")" + longer + R"(", "keys": 1, "b": 2})"),
            R"({"a":")" + longer + R"(","keys":1,"b":2})");
  EXPECT_NE(message_of([&] { front_of(R"({"a": 1, )"); }).find("this is not JSON"),
            std::string::npos);
}

TEST(ReaderTest, AnEmptyKeyIsSpokenOf) {
  EXPECT_EQ(complaint(R"({"": 1})", [](const Reader& r) { r.allow({"bandwidth"}); }),
            "f.json: an empty key says nothing; expected bandwidth");
}

TEST(ReaderTest, AnUnknownKeyIsNamedWithTheNearest) {
  EXPECT_EQ(complaint(R"({"bandwith": 1})",
                      [](const Reader& r) {
                        r.allow({"bandwidth", "name"});
                      }),
            "f.json: 'bandwith' is not a key here; expected bandwidth or name; did you mean "
            "'bandwidth'?");
}

TEST(ReaderTest, AMissingKeyIsNamedWithItsPath) {
  EXPECT_EQ(complaint(R"({"a": [{"b": {}}]})",
                      [](const Reader& r) { r.at("a").items()[0].at("b").at("c"); }),
            "f.json: a[0].b: the key 'c' is missing");
}

TEST(ReaderTest, TypesAndRangesAreChecked) {
  const auto whole = [](const Reader& r) { r.at("n").whole({1, 8}); };
  EXPECT_EQ(complaint(R"({"n": 9})", whole),
            "f.json: n: '9' is out of range; expected a whole number from 1 to 8");
  EXPECT_EQ(complaint(R"({"n": 1.5})", whole),
            "f.json: n: '1.5' is not a whole number; expected a whole number from 1 to 8");
  EXPECT_EQ(complaint(R"({"n": 18446744073709551615})", whole),
            "f.json: n: '18446744073709551615' is too large; expected a whole number from 1 to 8");
  EXPECT_EQ(complaint(R"({"n": "8"})",
                      [](const Reader& r) {
                        r.at("n").number({0, 1});
                      }),
            "f.json: n: '8' is not a number; expected a number from 0 to 1");
  EXPECT_EQ(complaint(R"({"n": ""})", [](const Reader& r) { r.at("n").text(); }),
            "f.json: n: the text is empty");
  EXPECT_EQ(complaint(R"({"n": "yes"})", [](const Reader& r) { r.at("n").flag(); }),
            "f.json: n: 'yes' is not a yes or no; expected true or false");
  EXPECT_EQ(complaint(R"([1])", [](const Reader& r) { r.at("n"); }),
            "f.json: '[1]' is not an object; expected an object with the key 'n'");
}

TEST(ReadDocumentTest, TomlGivesTheSameAsJson) {
  const TestFolder folder;
  const std::string toml = folder.write("a.toml", "a = 1\n[b]\nc = [\"x\", true, 1.5]\n");
  const std::string json = folder.write("a.json", R"({"a":1,"b":{"c":["x",true,1.5]}})");
  EXPECT_EQ(read_document(toml), read_document(json));
}

TEST(ReadDocumentTest, MalformedTomlIsShownWithItsLine) {
  const TestFolder folder;
  const std::string file = folder.write("a.toml", "a = 1\nb = \n");
  EXPECT_EQ(message_of([&] { read_document(file); }, folder.path()),
            "a.toml: line 2: this is not TOML (missing value after key-value separator '=')")
      << "the text of the line is not shown: the file may be anybody's";
  const std::string date = folder.write("d.toml", "a = 2024-01-01\n");
  EXPECT_NE(message_of([&] { read_document(date); }, folder.path()).find("is a date"),
            std::string::npos);
}

// The parsers look keys up one by one: 100,000 tables took a minute, 200,000 keys minutes.
TEST(ReadDocumentTest, TextsOfManyTablesOrKeysAreRefusedAtOnce) {
  std::string tables, keys, json = "{";
  for (int i = 0; i < 100'000; ++i) {
    const std::string number = std::to_string(i);
    if (i < 10'000) tables += "[t" + number + "]\n";
    if (i < 10'000) keys += "k" + number + " = 1\n";
    json += (i > 0 ? ",\"k" : "\"k") + number + "\":1";
  }
  const TestFolder folder;
  const auto message = [&](const char* name, const std::string& text) {
    const std::string file = folder.write(name, text);
    return message_of([&] { read_document(file); }, folder.path());
  };
  EXPECT_EQ(message("a.toml", tables),
            "a.toml: line 501: the text has too many tables; expected at most 500 tables");
  EXPECT_EQ(message("b.toml", keys),
            "b.toml: line 5001: the text has too many keys; expected at most 5000 keys");
  EXPECT_EQ(message("c.json", json + "}"),
            "c.json: an object has too many keys; expected at most 25000");
  // A list of small objects, and keys of many parts, take time with the square of their number.
  std::string objects = "[{}";
  for (int i = 0; i < 30'000; ++i) objects += ",{}";
  EXPECT_EQ(message("e.json", objects + "]"),
            "e.json: the text has too many objects; expected at most 25000");
  std::string parts = "k";
  for (int i = 0; i < 1000; ++i) parts += ".a";
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += std::to_string(i) + parts + " = 1\n";
  EXPECT_EQ(message("f.toml", lines),
            "f.toml: line 5: the text has too many dots; expected at most 4096 dots");
  EXPECT_EQ(message("d.toml", std::string(300'000, ' ')),
            "d.toml: the text is too long for TOML; expected at most 262144 bytes");
}

TEST(ReadDocumentTest, WhatIsNoFileIsSaid) {
  const TestFolder folder;
  EXPECT_EQ(message_of([&] { read_document(folder.path() / "none.json"); }, folder.path()),
            "none.json: the file cannot be read: No such file or directory; expected a file");
  EXPECT_NE(message_of([&] { read_document(folder.path()); }).find("is a folder"),
            std::string::npos);
  const std::string empty = folder.write("e.json", "");
  EXPECT_EQ(message_of([&] { read_document(empty); }, folder.path()), "e.json: the file is empty");
}

}  // namespace
}  // namespace placet
