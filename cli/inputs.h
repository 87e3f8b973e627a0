#pragma once
// A model and values for its inputs, for commands that run it.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common.h"
#include "drawing.h"
#include "feeds.h"

namespace cli {

struct Inputs {
  Common common;
  std::string model;
  std::vector<std::string> values;
  uint64_t seed = 0;
  CLI::Option* random = nullptr;

  void add(CLI::App& command, const std::vector<std::string>& tiers = {"program", "native", "reference"}) {
    command.add_option("model", model, "The model; - is standard input")->required()->type_name("MODEL");
    command
        .add_option("inputs", values,
                    "[NAME=]FILE (.npy, .npz, .pb, .wav; - is standard input), or NAME=NUMBER, NAME=[NUMBER,...]; "
                    "without a name the next "
                    "input takes it; or --random")
        ->type_name("VALUE");
    random = command
                 .add_option("--random", seed,
                             "Draw the inputs that are not given, from this seed (a number), and say what was drawn "
                             "(on standard error)")
                 ->type_name("SEED");
    add_session(command, common, tiers);
    add_json(command, common);
  }

  treadle::Feeds feeds(const treadle::Session& session) const {
    treadle::Feeds feeds = read_feeds(session, values);
    if (random->count() > 0) return with_drawn(session, std::move(feeds));
    require_feeds(session, feeds);
    return feeds;
  }

  // Draws values for the inputs that have none, and says what was drawn.
  treadle::Feeds with_drawn(const treadle::Session& session, treadle::Feeds feeds) const {
    Common as_program = common;
    as_program.tier = "program";  // every tier gets the same inputs
    const auto open = [&] { return open_session(model, as_program); };
    fmt::print(stderr, "{}", add_random_feeds(session, seed, dimensions_of(common), open, feeds));
    return feeds;
  }
};

}  // namespace cli
