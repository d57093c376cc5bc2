// The whole process `placet derive MODEL --placement ... --json`, as a user starts it, for every
// model of the catalogue: the median of several runs each, in milliseconds of wall and of processor
// time.
//   process_bench PROGRAM [RUNS [MODEL...]]
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "catalog/model_catalog.h"

extern char** environ;

namespace placet {
namespace {

struct Run {
  double wall = 0;       // milliseconds
  double processor = 0;  // user and system
  int status = -1;
};

double milliseconds_of(const timeval& time) {
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
}

Run run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const auto begin = std::chrono::steady_clock::now();
  const int failed =
      posix_spawn(&child, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  return {.wall = wall.count(),
          .processor = milliseconds_of(used.ru_utime) + milliseconds_of(used.ru_stime),
          .status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  std::string model;
  double wall = 0;
  double processor = 0;
};

Row measure(const std::string& program, const std::string& model, int runs) {
  std::vector<double> walls;
  std::vector<double> processors;
  for (int i = 0; i < runs; ++i) {
    const Run one = run({program, "derive", model, "--placement", "dp=8:zero1 tp=2:tp+sp",
                         "--cluster", "h100-sxm:2", "--json"});
    if (one.status != 0 && one.status != 1) {
      std::fprintf(stderr, "%s: exit status %d\n", model.c_str(), one.status);
      std::exit(1);
    }
    walls.push_back(one.wall);
    processors.push_back(one.processor);
  }
  return {.model = model, .wall = median(walls), .processor = median(processors)};
}

int measure_all(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: process_bench PROGRAM [RUNS [MODEL...]]\n");
    return 2;
  }
  const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20;
  std::vector<std::string> models(argv + std::min(argc, 3), argv + argc);
  if (models.empty()) models = model_names(find_catalog());
  std::vector<Row> rows;
  for (const std::string& model : models) rows.push_back(measure(argv[1], model, runs));
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.wall > b.wall; });
  std::vector<double> walls;
  std::vector<double> processors;
  for (const Row& row : rows) {
    walls.push_back(row.wall);
    processors.push_back(row.processor);
  }
  double load[1] = {0};
  getloadavg(load, 1);
  std::printf("%zu models, median of %d runs each; load of the machine %.1f\n", rows.size(), runs,
              load[0]);
  std::printf("wall       median %7.2f ms, most %7.2f ms\n", median(walls), rows.front().wall);
  std::printf("processor  median %7.2f ms, most %7.2f ms\n", median(processors),
              *std::max_element(processors.begin(), processors.end()));
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 10); ++i) {
    std::printf("  %-28s %7.2f ms wall %7.2f ms processor\n", rows[i].model.c_str(), rows[i].wall,
                rows[i].processor);
  }
  return 0;
}

}  // namespace
}  // namespace placet

int main(int argc, char** argv) { return placet::measure_all(argc, argv); }
