//! Functions that replace those of stock Lua behave like them.

use std::rc::Rc;

use mlua::{Function, Lua, LuaOptions, StdLib, Table};
use proptest::prelude::*;
use proptest::sample::select;

use crate::state::State;
use crate::working::Working;
use crate::{strings, tables};

/// Calls a function with the library of stock Lua, and with ours: the texts that it returns.
struct Both {
    lua: Lua,
    stock: Table,
    own: Table,
    _state: Rc<State>,
}

impl Both {
    fn new(name: &str, replace: impl FnOnce(&Working<'_>, &Table) -> mlua::Result<()>) -> Self {
        let libraries = StdLib::TABLE | StdLib::STRING;
        let lua = Lua::new_with(libraries, LuaOptions::new()).unwrap();
        let state = Rc::new(State::default());
        let stock: Table = lua.globals().get(name).unwrap();
        let own = lua.create_table().unwrap();
        for pair in stock.pairs::<String, Function>() {
            let (name, function) = pair.unwrap();
            own.set(name, function).unwrap();
        }
        replace(&Working::new(&lua, &state).unwrap(), &own).unwrap();
        Self {
            lua,
            stock,
            own,
            _state: state,
        }
    }

    fn texts(
        &self,
        code: &str,
        arguments: impl mlua::IntoLuaMulti + Clone,
    ) -> [mlua::LuaString; 2] {
        let function: Function = self.lua.load(code).into_function().unwrap();
        [&self.stock, &self.own].map(|library| {
            let call = function.bind(library.clone()).unwrap();
            call.call(arguments.clone()).unwrap()
        })
    }
}

/// All functions that match patterns, in one text.
const MATCH: &str = r#"
local library, subject, pattern, template, init, most = ...
local out = {}
local function add(name, ...)
  out[#out + 1] = name
  for i = 1, select('#', ...) do out[#out + 1] = type(select(i, ...)) .. tostring(select(i, ...)) end
end
local function all(...)
  local found = {}
  for a, b, c in library.gmatch(...) do
    found[#found + 1] = tostring(a) .. "," .. tostring(b) .. "," .. tostring(c)
    if #found > 50 then break end
  end
  return table.concat(found, ";")
end
add("find", pcall(library.find, subject, pattern, init))
add("plain", pcall(library.find, subject, pattern, init, true))
add("match", pcall(library.match, subject, pattern, init))
add("gmatch", pcall(all, subject, pattern))
add("gfind", pcall(library.gfind, subject, pattern) )
out[#out] = nil
add("gsub", pcall(library.gsub, subject, pattern, template, most))
add("gsub", pcall(library.gsub, subject, pattern, template))
add("table", pcall(library.gsub, subject, pattern, {a = "x", b = false, ab = 7, [1] = {}}))
add("function", pcall(library.gsub, subject, pattern, function(...)
  local n = select('#', ...)
  if n > 1 then return nil end
  return (...) .. n
end))
add("line", pcall(function() return library.find(subject, pattern) end))
return table.concat(out, "\n")
"#;

/// A call with the wrong arguments, of each function.
const WRONG: &str = r#"
local library = ...
local out = {}
for _, name in ipairs{"find", "match", "gmatch", "gfind", "gsub", "rep"} do
  for _, arguments in ipairs{{}, {1}, {"a"}, {{}, "a"}, {"a", {}}, {"a", "a", {}}, {"a", "b", true},
      {"a", "a", "b", "c"}, {12, 1, 2}, {"a", 2}, {"a", "2"}, {"", 3}, {"ab", -3}, {"", "x"}, {"a", "x"}} do
    local called = {pcall(library[name], unpack(arguments))}
    for i = 1, #called do
      out[#out + 1] = type(called[i]) == "function" and "function" or tostring(called[i])
    end
    called = {pcall(function() local a = arguments return library[name](a[1], a[2], a[3], a[4]) end)}
    out[#out + 1] = type(called[2]) == "function" and "function" or tostring(called[2])
  end
end
return table.concat(out, "\n")
"#;

#[test]
fn wrong_arguments_are_told_as_by_stock_lua() {
    let both = Both::new("string", strings::replace);
    let [stock, own] = both.texts(WRONG, ());
    assert_eq!(own.to_string_lossy(), stock.to_string_lossy());
}

#[test]
fn odd_patterns_are_matched_as_by_stock_lua() {
    let both = Both::new("string", strings::replace);
    for pattern in [
        "",
        "^",
        "$",
        "^$",
        "%",
        "[",
        "[]",
        "[]]",
        "[^]",
        "[^]]",
        "[%",
        "[%]",
        "[a-]",
        "[-a]",
        "[a-%]]",
        "(",
        ")",
        "()",
        "(()",
        "%1",
        "(a)%1",
        "(%1)",
        "()%1",
        "%0",
        "%9",
        "%b",
        "%bx",
        "%b()",
        "%baa",
        "%f",
        "%fa",
        "%f[a]",
        "%f[%z]",
        "%z",
        "a$b",
        "a^b",
        "(a",
        "a)",
        "((((a))))",
        "%a+",
        "%A",
        "[%a_]",
        "[%w%s]",
        "[^%d]",
        "a-",
        "a-$",
        "(a-)b",
        "(a*(b))",
        "a?b?",
        ".-.-b",
        "a%",
        "[a",
        "[a%]b]",
        "[+--]",
        "[--/]",
        "%]",
        "%-",
        "(.)(.)%2%1",
        "\0",
        "a\0b",
        "[\0]",
        "%\0",
        &"(".repeat(33),
        &"()".repeat(12),
    ] {
        for subject in [
            "",
            "a",
            "ab",
            "aab(ab)b",
            "a\0b",
            "THE (quick) fox",
            "\u{e9}\t\u{b}x1_",
            "%1",
        ] {
            for template in ["%0", "%1", "%2", "%%", "%", "%x", "<%0>", "", "\0%0"] {
                for init in [1, -1, 3, 100, -100, 0] {
                    let arguments = (subject, pattern, template, init, 1);
                    let [stock, own] = both.texts(MATCH, arguments);
                    let (stock, own) = (stock.to_string_lossy(), own.to_string_lossy());
                    assert_eq!(own, stock, "{pattern:?} {subject:?} {template:?} {init}");
                }
            }
        }
    }
}

/// Sorts a list of keys with their positions, and returns the positions.
const SORT: &str = r#"
local library, keys, how = ...
local list = {}
for place = 1, #keys do list[place] = {key = keys:byte(place), place = place} end
local calls = 0
-- Where an order contradicts itself, stock Lua may sort for ever.
local function count() calls = calls + 1 if calls > 2000 then error("enough") end end
local orders = {
  function(a, b) count() return a.key < b.key end,
  function(a, b) count() return a.key <= b.key end,
  function(a, b) count() return (a.key * 7 + b.key * 3 + calls) % 3 == 0 end,
  function(a, b) count() return true end,
}
local plain = {}
for place = 1, #keys do plain[place] = keys:byte(place) end
if how == 5 then
  library.sort(plain)
  return table.concat(plain, ",")
end
local done, reason = pcall(library.sort, list, orders[how])
local out = {tostring(done), tostring(reason), calls}
for place = 1, #keys do out[#out + 1] = list[place] and list[place].place or "nil" end
return table.concat(out, ",")
"#;

/// Calls that change a list in various ways.
const CHANGE: &str = r#"
local library = ...
local out = {}
for _, call in ipairs{
  {"insert"}, {"insert", 5}, {"insert", {}}, {"insert", {}, 1, 2, 3}, {"insert", {}, 1}, {"insert", {}, "x", 1},
  {"insert", {1, 2, 3}, 2, 9}, {"insert", {1, 2, 3}, 4, 9}, {"insert", {1, 2, 3}, 8, 9}, {"insert", {1, 2, 3}, -3, 9},
  {"insert", {[0] = 7, [-1] = 8, 1, 2}, -2, 9}, {"insert", {1, 2}, 0, 9}, {"insert", {1, 2}, 1.9, 9},
  {"sort"}, {"sort", 1}, {"sort", {3, 1, 2}, 1}, {"sort", {3, 1, 2}, nil}, {"sort", {3, "a", 2}}, {"sort", {{}, {}}},
  {"foreach"}, {"foreach", {}}, {"foreach", {1, 2}, math}, {"foreachi", {1, 2}}, {"foreachi", 1, print},
  {"foreach", {4, 5}, tostring}, {"foreachi", {4, 5}, tostring}, {"foreachi", {4, 5}, function() end},
  {"concat"}, {"concat", {1, {}}}, {"concat", {1, 2, 3}, ",", 2}, {"remove"}, {"remove", {1, 2, 3}, 1}, {"maxn", {1, 2}},
} do
  local found = {pcall(library[call[1]], unpack(call, 2, 5))}
  local inside = {pcall(function() local f = library[call[1]] return (library[call[1]](call[2], call[3], call[4])) end)}
  out[#out + 1] = call[1] .. " " .. tostring(found[1]) .. " " .. tostring(found[2]):gsub("0x%x+", "")
    .. " " .. tostring(inside[2]):gsub("0x%x+", "")
  if type(call[2]) == "table" then
    for place = -4, 10 do out[#out + 1] = type(call[2][place]) .. tostring(tonumber(call[2][place])) end
  end
end
return table.concat(out, "\n")
"#;

#[test]
fn lists_are_changed_as_by_stock_lua() {
    let both = Both::new("table", tables::replace);
    let [stock, own] = both.texts(CHANGE, ());
    assert_eq!(own.to_string_lossy(), stock.to_string_lossy());
}

proptest! {
    #[test]
    fn patterns_match_as_in_stock_lua(
        subject in proptest::collection::vec(select(b"aab(b)1 %\0".as_slice()), 0..12),
        pattern in proptest::collection::vec(
            select(b"aab.*+-?^$()()%%[]1bfwd-]\0".as_slice()), 0..10),
        template in proptest::collection::vec(select(b"a%%012".as_slice()), 0..4),
        init in -14_i64..14,
        most in -1_i64..4,
    ) {
        thread_local! {
            static BOTH: Both = Both::new("string", strings::replace);
        }
        BOTH.with(|both| {
            let text = |bytes: &[u8]| both.lua.create_string(bytes).unwrap();
            let arguments = (text(&subject), text(&pattern), text(&template), init, most);
            let [stock, own] = both.texts(MATCH, arguments);
            prop_assert_eq!(own.to_string_lossy(), stock.to_string_lossy());
            Ok(())
        })?;
    }

    #[test]
    fn lists_are_sorted_as_by_stock_lua(
        keys in proptest::collection::vec(0_u8..20, 0..60),
        how in 1..6,
    ) {
        thread_local! {
            static BOTH: Both = Both::new("table", tables::replace);
        }
        BOTH.with(|both| {
            let keys = both.lua.create_string(&keys).unwrap();
            let [stock, own] = both.texts(SORT, (keys, how));
            prop_assert_eq!(own.to_string_lossy(), stock.to_string_lossy());
            Ok(())
        })?;
    }
}
