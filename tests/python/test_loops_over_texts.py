"""Loops over texts: a run writes texts over those of the iteration before, and gives what the reference interpreter gives."""

import numpy as np
import pytest
import treadle

HEAD = '<ir_version: 10, opset_import: ["" : 22]>'
WORDS = ["", "a", "no", "fifteen letters", "sixteen letters.", "a word that is longer than what fits in place", "äöü"]

# The results of an iteration from the words w (one) and v (as many as the iteration's number, modulo 4).
NODES = {
    "Gather": "y = Gather <axis = 0> (table, v)",
    "Gather of rows": "y = Gather <axis = 0> (pairs, v)",
    "Gather of columns": "c = Mod(v, two)  y = Gather <axis = 1> (pairs, c)",
    "StringConcat": "y = StringConcat(ws, w)",
    "StringConcat of both": "y = StringConcat(ws, ws)",
    "StringConcat of a column": "c = Unsqueeze(ws, axis1)  y = StringConcat(c, some)",
    "Where": "e = Equal(ws, w)  y = Where(e, ws, w)",
    "Where of a column": "e = Equal(ws, w)  c = Unsqueeze(e, axis1)  y = Where(c, some, w)",
    "Equal": "e = Equal(ws, w)  y = Where(e, some1, ws)",
    "Identity": "y = Identity(ws)",
    "Concat": "y = Concat <axis = 0> (ws, some, ws)",
    "Slice": "y = Slice(ws, minus1, lowest, axis0, minus1)",
    "Reshape": "y = Reshape(ws, flat)",
    "StringNormalizer": 'c = StringConcat(some, w)  y = StringNormalizer <case_change_action = "UPPER"> (c)',
    "StringSplit": 'y, z = StringSplit <delimiter = " "> (ws)',
    "RegexFullMatch": 'm = RegexFullMatch <pattern = "[a-z]+"> (ws)  y = Where(m, ws, some1)',
    "branch": """e = Equal(w, word)  y = If (e) <then_branch = p () => (string[p] u) { u = StringConcat(ws, some1) },
                 else_branch = q () => (string[q] u) { u = StringConcat(some1, some1) }>""",
    "branch of what is outside": """e = Equal(w, word)  y = If (e) <then_branch = p () => (string[p] u) {
                 u = Identity(ws) }, else_branch = q () => (string[q] u) { u = StringConcat(some, w) }>""",
    "branch that gives a value twice": """e = Equal(w, word)  y, z = If (e) <then_branch = p () =>
                 (string[p] u, string[p] t) { u = StringConcat(some, w) t = Identity(u) },
                 else_branch = q () => (string[q] u, string[q] t) { u = Identity(some) t = StringConcat(ws, w) }>""",
}


def run(data: bytes, feeds: dict, tier: str = "program") -> list:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    options.add_session_config_entry("treadle.jit", "off")
    session = treadle.InferenceSession(data, options)
    session.run(None, feeds)
    return session.run(None, feeds)  # with the memory of the first run


def quoted(texts: list[str]) -> str:
    return "{" + ", ".join(f'"{text}"' for text in texts) + "}"


def given() -> str:
    pairs = [word + other for word in WORDS for other in ("", "!")]
    return f"""string[{len(WORDS)}] table = {quoted(WORDS)}, string[{len(WORDS)},2] pairs = {quoted(pairs)},
     string[2] some = {{"one", "another that does not fit in place"}}, string[1] some1 = {{"1"}},
     string word = {{"a"}}, bool yes = {{1}}, int64[1] axis0 = {{0}}, int64[1] axis1 = {{1}}, int64[1] minus1 = {{-1}},
     int64[1] lowest = {{-9223372036854775808}}, int64[1] flat = {{-1}}, int64 four = {{4}}, int64 two = {{2}}, int64 i1 = {{1}},
     int64 i0 = {{0}}"""


def assert_same(ours: list, theirs: list) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, list):
            assert_same(a, b)
            continue
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NODES)
def test_texts_of_an_iteration(name):
    body = "\n".join(NODES[name].split("  "))
    data = f"""{HEAD} g (int64[k] at) => (seq(string) ys) <{given()}> {{
      iterations1 = Shape(at)
      iterations = Squeeze(iterations1)
      empty = SequenceEmpty <dtype = 8> ()
      ys = Loop <body = b (int64 i, bool go, seq(string) s) => (bool go2, seq(string) s2) {{
        go2 = Identity(go)
        k = Gather <axis = 0> (at, i)
        w = Gather <axis = 0> (table, k)
        more = Mod(i, four)
        n = Add(more, i1)
        v = Range(i0, n, i1)
        ws = Gather <axis = 0> (table, v)
        {body}
        s2 = SequenceInsert(s, y) }}> (iterations, yes, empty) }}""".encode()
    at = np.random.default_rng(5).integers(0, len(WORDS), 40)
    assert_same(run(data, {"at": at}), run(data, {"at": at}, "reference"))


# The states s and t (one text each) and u (any number of them), and the iteration's result, o.
STATES = {
    "made anew": "s2 = StringConcat(w, word)  t2 = StringConcat(s, w)  u2 = Gather <axis = 0> (table, v)",
    "change places": "s2 = Identity(t)  t2 = StringConcat(w, s)  u2 = Identity(u)",
    "both the same": "s2 = StringConcat(w, t)  t2 = Identity(s2)  u2 = StringConcat(u, w)",
    "grow": "s2 = StringConcat(s, w)  t2 = StringConcat(w, t)  u2 = Concat <axis = 0> (u, some)",
    "from outside": "s2 = Identity(word)  t2 = Identity(w)  u2 = Identity(some)",
    "by a branch": """e = Equal(w, word)  s2 = If (e) <then_branch = p () => (string u) { u = StringConcat(w, t) },
                      else_branch = q () => (string u) { u = StringConcat(t, t) }>  t2 = Identity(w)
                      u2 = Concat <axis = 0> (u, some1)""",
}


@pytest.mark.parametrize("gives", ["s2", "w", "t"])
@pytest.mark.parametrize("name", STATES)
def test_states_and_scan_outputs(name, gives):
    body = "\n".join(STATES[name].split("  "))
    data = f"""{HEAD} g (int64[k] at, string s0, string t0, string[1] u0) => (string s, string t, string[n] u, string[k] o)
    <{given()}> {{
      iterations1 = Shape(at)
      iterations = Squeeze(iterations1)
      s, t, u, o = Loop <body = b (int64 i, bool go, string s, string t, string[m] u)
          => (bool go2, string s2, string t2, string[m2] u2, string o) {{
        go2 = Identity(go)
        k = Gather <axis = 0> (at, i)
        w = Gather <axis = 0> (table, k)
        v = Range(i0, k, i1)
        {body}
        o = Identity({gives}) }}> (iterations, yes, s0, t0, u0) }}""".encode()
    feeds = {"at": np.random.default_rng(6).integers(0, len(WORDS), 9), "s0": np.array("start", object)}
    feeds |= {"t0": np.array("another start of more letters", object), "u0": np.array(["x"], object)}
    assert_same(run(data, feeds), run(data, feeds, "reference"))
    assert feeds["s0"] == "start"  # the caller's array is unchanged


@pytest.mark.parametrize("direction", [0, 1])
def test_rows_of_a_scan(direction):
    data = f"""{HEAD} g (string[k] x, string s0) => (string s, string[k,2] y) <{given()}> {{
      s, y = Scan <num_scan_inputs = 1, scan_output_directions = [{direction}], body = b (string s, string w)
          => (string s2, string[2] o) {{
        s2 = StringConcat(w, word)
        o = StringConcat(some, s) }}> (s0, x) }}""".encode()
    feeds = {"x": np.array(WORDS * 3, object), "s0": np.array("start", object)}
    ours = run(data, feeds)
    assert_same(ours, run(data, feeds, "reference"))
    states = ["start", *(word + "a" for word in WORDS * 3)]
    rows = [["one" + s, "another that does not fit in place" + s] for s in states[:-1]]
    assert ours[1].tolist() == (rows[::-1] if direction else rows)


def test_an_index_that_is_out_of_range_is_named():
    data = f"""{HEAD} g (int64[k] at) => (string[k] y) <{given()}> {{
      y = Scan <num_scan_inputs = 1, body = b (int64 k) => (string o) {{ o = Gather <axis = 0> (table, k) }}> (at)
    }}""".encode()
    with pytest.raises(Exception, match="out of range") as ours:
        run(data, {"at": np.array([0, 1, 70])})
    with pytest.raises(Exception, match="out of range") as theirs:
        run(data, {"at": np.array([0, 1, 70])}, "reference")
    assert str(ours.value) == str(theirs.value)


# --- random programs

ONE = ["StringConcat({}, {})", "Where({flag}, {}, {})", "Gather <axis = 0> (table, k)", "Identity({})"]
MANY = [*ONE[:2], "Gather <axis = 0> (table, v)", "Concat <axis = 0> ({many}, {many})", "StringConcat({many}, {})"]


def random_body(rng: np.random.Generator) -> str:
    """Statements that make s2 and t2 (texts), u2 (a list of texts)."""
    ones, many, flags, lines = ["s", "t", "word"], ["u", "some"], ["same"], ["same = Equal(s, word)"]

    def expression(templates: list[str], operands: list[str]) -> str:
        template = str(rng.choice(templates))
        picks = [str(rng.choice(operands)) for _ in range(2)]
        return template.format(*picks, flag=rng.choice(flags), many=rng.choice(many))

    for i in range(int(rng.integers(3, 9))):
        kind = rng.integers(4)
        if kind == 0:
            flags.append(f"f{i}")
            lines.append(f"f{i} = Equal({rng.choice(ones)}, {rng.choice(ones)})")
        elif kind == 1:
            lines.append(f"m{i} = {expression(MANY[2:], ones)}")
            many.append(f"m{i}")
        elif kind == 2:
            lines.append(f"""o{i} = If ({rng.choice(flags)})
              <then_branch = p{i} () => (string a{i}) {{ a{i} = {expression(ONE, ones)} }},
               else_branch = q{i} () => (string b{i}) {{ b{i} = {expression(ONE, ones)} }}>""")
            ones.append(f"o{i}")
        else:
            lines.append(f"o{i} = {expression(ONE, ones)}")
            ones.append(f"o{i}")
    for name, operands in (("s2", ones), ("t2", ones), ("u2", many)):
        lines.append(f"{name} = Identity({operands[-1] if rng.integers(2) else rng.choice(operands)})")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_random_loops(seed):
    rng = np.random.default_rng(seed)
    data = f"""{HEAD} g (int64[n] at, string s0, string t0, string[1] u0) =>
        (string s, string t, string[n1] u, string[n] y, string[n] x) <{given()}> {{
      iterations1 = Shape(at)
      iterations = Squeeze(iterations1)
      s, t, u, y, x = Loop <body = b (int64 i, bool go, string s, string t, string[m] u)
          => (bool go2, string s2, string t2, string[m2] u2, string first, string second) {{
        go2 = Identity(go)
        k = Gather <axis = 0> (at, i)
        v = Range(i0, k, i1)
        {random_body(rng)}
        first = Identity(s2)
        second = Identity(t) }}> (iterations, yes, s0, t0, u0) }}""".encode()
    feeds = {"at": rng.integers(0, len(WORDS), 8), "s0": np.array("a", object)}
    feeds |= {"t0": np.array("sixteen letters.", object), "u0": np.array(["x"], object)}
    assert_same(run(data, feeds), run(data, feeds, "reference"))
