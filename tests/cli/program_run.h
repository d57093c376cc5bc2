// Runs the program and looks at what it prints.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace placet {

struct Result {
  int status = -1;
  std::string out;
  std::string err;
};

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "placet-cli-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Runs `placet ARGUMENTS` through the shell, with `before` (variables) in front of it.
inline Result run(const std::string& arguments, const std::string& before = "") {
  const Folder folder;
  const std::string command = before + " " PLACET_PROGRAM " " + arguments + " >" +
                              folder.file("out") + " 2>" + folder.file("err");
  const int raw = std::system(command.c_str());
  return {.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1,
          .out = read(folder.file("out")),
          .err = read(folder.file("err"))};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void expect_wrong_input(const std::string& arguments, const std::string& message) {
  const Result result = run(arguments);
  EXPECT_EQ(result.status, 2) << arguments;
  EXPECT_EQ(result.out, "") << arguments;
  EXPECT_TRUE(result.err.starts_with("placet: ")) << result.err;
  EXPECT_EQ(result.err.find("placet: ", 1), std::string::npos) << result.err;
  EXPECT_TRUE(has(result.err, message)) << result.err;
}

}  // namespace placet
