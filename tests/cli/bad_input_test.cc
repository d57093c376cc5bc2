// Malformed input of every kind, through the program: exit status 2, nothing on standard output,
// one message that says where, what and what would be right. The cases are data: tests/bad_input.
//
// A case has a name, the arguments ("{}" is a folder of its own), texts that the message must hold,
// and files: a text, or an object with one of
//   json     the value, printed          repeat   a text and how many times
//   parts    texts one after another     bytes    hexadecimal
//   folder   true                        link     what a symbolic link points to
//   secret   a text that nobody may read                pipe     true: nobody writes to it
//   zeros    how many bytes of zero
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace placet {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Case {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> expected;
  Json files;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "placet-bad-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (content.contains("json")) return content["json"].dump(1);
  if (content.contains("secret")) return content["secret"].get<std::string>();
  std::string text;
  if (content.contains("repeat")) {
    const auto part = content["repeat"][0].get<std::string>();
    for (int i = content["repeat"][1].get<int>(); i > 0; --i) text += part;
  } else if (content.contains("parts")) {
    for (const Json& part : content["parts"]) text += text_of(part);
  } else {
    const auto digits = content.at("bytes").get<std::string>();
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  return text;
}

void make_file(const fs::path& path, const Json& content) {
  if (content.is_object() && content.contains("folder")) {
    fs::create_directory(path);
  } else if (content.is_object() && content.contains("link")) {
    fs::create_symlink(content["link"].get<std::string>(), path);
  } else if (content.is_object() && content.contains("pipe")) {
    ASSERT_EQ(mkfifo(path.c_str(), S_IRUSR | S_IWUSR), 0);
  } else if (content.is_object() && content.contains("zeros")) {
    std::ofstream(path, std::ios::binary).close();
    fs::resize_file(path, content["zeros"].get<std::uintmax_t>());
  } else {
    std::ofstream(path, std::ios::binary) << text_of(content);
  }
  if (content.is_object() && content.contains("secret")) fs::permissions(path, fs::perms::none);
}

bool needs_permissions(const Case& one) {
  for (const auto& [name, content] : one.files.items()) {
    if (content.is_object() && content.contains("secret")) return true;
  }
  return false;
}

struct Result {
  int status = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

/// In the child: bounds that a call with small input must keep, then the program.
[[noreturn]] void execute(const Case& one, const fs::path& folder) {
  const rlimit seconds{.rlim_cur = 10, .rlim_max = 10};
  setrlimit(RLIMIT_CPU, &seconds);
#ifndef __SANITIZE_ADDRESS__
  const rlimit bytes{.rlim_cur = 1U << 28, .rlim_max = 1U << 28};
  setrlimit(RLIMIT_AS, &bytes);
#endif
  std::vector<std::string> words = {PLACET_PROGRAM};
  for (std::string word : one.arguments) {
    const std::size_t at = word.find("{}");
    if (at != std::string::npos) word.replace(at, 2, folder.string());
    words.push_back(word);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (std::freopen((folder / ".out").c_str(), "w", stdout) == nullptr) _exit(97);
  if (std::freopen((folder / ".err").c_str(), "w", stderr) == nullptr) _exit(97);
  execv(PLACET_PROGRAM, arguments.data());
  _exit(98);
}

Result run(const Case& one, const fs::path& folder) {
  for (const auto& [name, content] : one.files.items()) make_file(folder / name, content);
  const pid_t child = fork();
  if (child == 0) execute(one, folder);
  int status = 0;
  waitpid(child, &status, 0);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = read(folder / ".out"),
          .err = read(folder / ".err")};
}

std::vector<Case> read_cases(const std::string& group) {
  std::vector<Case> cases;
  const fs::path path = fs::path(PLACET_SOURCE_DIR) / "tests/bad_input" / (group + ".json");
  for (const Json& one : Json::parse(read(path))) {
    cases.push_back({.name = one.at("name"),
                     .arguments = one.at("arguments"),
                     .expected = one.at("expected"),
                     .files = one.value("files", Json::object())});
  }
  return cases;
}

void expect_one_message(const Case& one, const Result& result) {
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("placet: "));
  EXPECT_EQ(result.err.find("\nplacet: "), std::string::npos) << "a second message";
  EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 3);
  EXPECT_LT(result.err.size(), 1500U);
  for (const std::string& expected : one.expected) {
    EXPECT_NE(result.err.find(expected), std::string::npos) << "expected: " << expected;
  }
}

class BadInput : public ::testing::TestWithParam<const char*> {};

TEST_P(BadInput, EndsInOneHelpfulMessage) {
  for (const Case& one : read_cases(GetParam())) {
    if (needs_permissions(one) && geteuid() == 0) continue;  // nothing is secret to root
    const Folder folder;
    const Result result = run(one, folder.path());
    SCOPED_TRACE(one.name + "\n" + result.err);
    expect_one_message(one, result);
  }
}

INSTANTIATE_TEST_SUITE_P(InGroups, BadInput,
                         ::testing::Values("clusters", "engines", "faults", "flags", "jobs",
                                           "models", "placements", "tables"),
                         [](const auto& group) { return std::string(group.param); });

TEST(BadInputCases, AreMany) {
  std::size_t cases = 0;
  for (const char* group :
       {"clusters", "engines", "faults", "flags", "jobs", "models", "placements", "tables"}) {
    cases += read_cases(group).size();
  }
  EXPECT_GE(cases, 190U);
}

// What looks odd and is good: these must not be refused.
TEST(OddInput, IsRead) {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100,)"
      "\r\n"
      R"("num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128})";
  const std::vector<Case> cases = {
      {.name = "a byte order mark and Windows line ends",
       .arguments = {"model", "{}/config.json"},
       .files = {{"config.json", "\xef\xbb\xbf" + config + "\r\n"}}},
      {.name = "a folder", .arguments = {"model", "{}"}, .files = {{"config.json", config}}},
      {.name = "a model after the flags",
       .arguments = {"derive", "--placement", "dp=8:ddp", "gpt2"},
       .files = Json::object()},
      {.name = "Windows line ends in a job",
       .arguments = {"derive", "--job", "{}/job.toml"},
       .files = {{"job.toml", "model = \"gpt2\"\r\nplacement = \"dp=8:ddp\"\r\n"}}},
  };
  for (const Case& one : cases) {
    const Folder folder;
    const Result result = run(one, folder.path());
    EXPECT_EQ(result.status, 0) << one.name << "\n" << result.err;
    EXPECT_EQ(result.err, "") << one.name;
    EXPECT_NE(result.out, "") << one.name;
  }
}

}  // namespace
}  // namespace placet
