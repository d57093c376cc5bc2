// The one place where exceptions end and the exit status is set.
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include "cli/memory_limit.h"
#include "cli/program.h"
#include "units/error.h"

int main(int argc, char** argv) {
  // A reader that leaves early (head) is no fault of this call; writes to it then fail quietly.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that may not grow as large as it has to be: the write says so.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return placet::run(argc, argv);
  } catch (const placet::InputError& error) {
    std::cerr << "placet: " << error.what() << std::endl;
    return placet::kWrongInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "placet: " << placet::out_of_memory_text() << std::endl;
    return placet::kWrongInput;
  } catch (const std::filesystem::filesystem_error& error) {
    std::cerr << "placet: " << error.path1().string() << ": " << error.code().message()
              << std::endl;
    return placet::kWrongInput;
  } catch (const std::system_error& error) {
    // Threads, mostly: what the machine does not give is no fault of ours.
    std::cerr << "placet: the system refuses: " << error.what()
              << "; look at the limits of processes and threads (ulimit -u) and of memory"
              << std::endl;
    return placet::kWrongInput;
  } catch (const std::exception& error) {
    std::cerr << "placet: this is a fault of placet itself: " << error.what() << std::endl;
    return placet::kOurFault;
  } catch (...) {
    std::cerr << "placet: this is a fault of placet itself, of unknown kind" << std::endl;
    return placet::kOurFault;
  }
}
