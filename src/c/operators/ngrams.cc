// TfIdfVectorizer of integers (ops/text/tfidf_vectorizer.cc): the pool is a trie, whose nodes and edges are tables.

#include <algorithm>
#include <map>
#include <vector>

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

// Edges of a node are neighbours, sorted by their words.
struct Trie {
  std::vector<int32_t> first_edge, gram;  // of nodes; gram: the n-gram that ends at the node, or -1
  std::vector<int64_t> words;             // of edges
  std::vector<int32_t> to;

  // n-grams of n words begin at begins[n - 1].
  Trie(std::span<const int64_t> pool, std::span<const int64_t> begins, int64_t shortest, int64_t longest) {
    std::vector<std::map<int64_t, int32_t>> edges(1);
    gram.push_back(-1);
    int32_t number = 0;
    for (size_t n = 1; n <= begins.size(); ++n) {
      const int64_t end = n < begins.size() ? begins[n] : static_cast<int64_t>(pool.size());
      const auto length = static_cast<int64_t>(n);
      for (int64_t at = begins[n - 1]; at < end; at += length, ++number) {
        if (length < shortest || length > longest) continue;
        size_t node = 0;
        for (int64_t k = 0; k < length; ++k) {
          const auto [edge, is_new] =
              edges[node].try_emplace(pool[static_cast<size_t>(at + k)], static_cast<int32_t>(edges.size()));
          node = static_cast<size_t>(edge->second);
          if (!is_new) continue;
          edges.emplace_back();
          gram.push_back(-1);
        }
        gram[node] = number;
      }
    }
    for (const auto& of_node : edges) {
      first_edge.push_back(static_cast<int32_t>(words.size()));
      for (const auto& [word, node] : of_node) words.push_back(word), to.push_back(node);
    }
    first_edge.push_back(static_cast<int32_t>(words.size()));
  }
};

std::string trie_type(Functions& f) {
  return f.get("trie", [](Text& text, const std::string& name) {
    text.line("/* Node k has the edges first_edge[k] to first_edge[k + 1] - 1, sorted by word; gram[k] ends there. */");
    text.line("typedef struct {{ const int32_t *first_edge, *gram, *to; const int64_t *words; }} {};", name);
  });
}

// f(trie, row, n, skips, shortest, longest, counts): adds how often each n-gram occurs in a row.
std::string count_function(Functions& f, ElementType type) {
  const std::string trie = trie_type(f);
  const std::string child = f.get("trie_child", [&](Text& text, const std::string& name) {
    text.open("static int32_t {}(const {} *trie, int32_t node, int64_t word)", name, trie);
    text.line("int32_t low = trie->first_edge[node], high = trie->first_edge[node + 1];");
    text.open("while (low < high)");
    text.line("const int32_t middle = low + (high - low) / 2;");
    text.line("if (trie->words[middle] == word) return trie->to[middle];");
    text.line("if (trie->words[middle] < word) low = middle + 1;");
    text.line("else high = middle;");
    text.close();
    text.line("return -1;");
    text.close();
  });
  return f.get(fmt::format("count_ngrams_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {}(const {} *trie, const {} *row, ptrdiff_t n, ptrdiff_t distances, ptrdiff_t shortest, "
        "ptrdiff_t longest, int64_t *counts)",
        name, trie, stored(type));
    text.open("for (ptrdiff_t distance = 1; distance <= distances; ++distance)");
    text.line("/* single words count once */");
    text.line("const ptrdiff_t least = distance > 1 && shortest < 2 ? 2 : shortest;");
    text.open("for (ptrdiff_t start = 0; start < n; ++start)");
    text.line("int32_t node = 0;");
    text.line("ptrdiff_t at = start;");
    text.open("for (ptrdiff_t length = 1; length <= longest && at < n; ++length, at += distance)");
    text.line("node = {}(trie, node, row[at]);", child);
    text.line("if (node < 0) break;");
    text.line("if (length >= least && trie->gram[node] >= 0) ++counts[trie->gram[node]];");
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

void write_tfidf_vectorizer(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const auto pool = attributes.get_ints("pool_int64s"), columns = attributes.get_ints("ngram_indexes");
  if (pool.empty()) {
    why = "its words are texts";
    return;
  }
  const std::string_view mode = attributes.get_string("mode");
  const auto weights = attributes.get_floats("weights");
  const int64_t shortest = attributes.get_int("min_gram_length"), longest = attributes.get_int("max_gram_length"),
                skips = attributes.get_int("max_skip_count");
  const Dims x = call.dims(0), y = call.result_dims();
  const int64_t rows = x.size() == 2 ? x[0] : 1, length = x.empty() ? 1 : x.back(), width = y.back(),
                grams = static_cast<int64_t>(columns.size());
  if (rows * width == 0) return;
  const Trie trie(pool, attributes.get_ints("ngram_counts"), shortest, longest);
  const auto integers = [&](const char* name, const std::vector<int32_t>& list) {
    return w.table(name, ElementType::kInt32, list.data(), list.size());
  };
  const int64_t distances = std::min(skips, std::max<int64_t>(length, 1) - 1) + 1;
  text.open("");
  const std::string name = w.variable("pool");
  // A table has one element at least.
  std::vector<int64_t> words = trie.words;
  std::vector<int32_t> to = trie.to;
  if (words.empty()) words.push_back(0), to.push_back(0);
  text.line("static const {} {} = {{{}, {}, {}, {}}};", trie_type(w.functions()), name,
            integers("first_edge", trie.first_edge), integers("gram", trie.gram), integers("next", to),
            w.table("words", ElementType::kInt64, words.data(), words.size()));
  text.line("int64_t *const k = (int64_t *)(void *){};", w.scratch(static_cast<size_t>(grams) * sizeof(int64_t)));
  text.line("memset({}, 0, {});", call.out(), static_cast<size_t>(rows * width) * sizeof(float));
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", rows);
  text.line("memset(k, 0, {});", static_cast<size_t>(grams) * sizeof(int64_t));
  text.line("{}(&{}, {} + r * {}, {}, {}, {}, {}, k);", count_function(w.functions(), call.type(0)), name, call.in(0),
            length, length, distances, shortest, longest);
  text.open("for (ptrdiff_t g = 0; g < {}; ++g)", grams);
  const std::vector<int32_t> places(columns.begin(), columns.end());
  text.line("float *const to = {} + r * {} + {}[g];", call.out(), width, integers("columns", places));
  text.line("if (k[g] == 0) continue;");
  std::string term = mode == "IDF" ? "1.0f" : "(float)k[g]";
  if (mode != "TF" && !weights.empty()) {
    term += fmt::format(" * {}[g]", w.table("weights", ElementType::kFloat, weights.data(), weights.size()));
  }
  text.line("const float scaled = {};", term);
  text.line("*to = *to + scaled;");
  text.close();
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {{"TfIdfVectorizer", "", write_tfidf_vectorizer}};

}  // namespace

std::span<const OperatorRow> ngram_operators() {
  return kRows;
}

}  // namespace treadle::c
