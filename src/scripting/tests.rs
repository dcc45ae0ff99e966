use std::sync::Arc;

use bytes::Bytes;

use super::{Answer, Caller, End, Machine, Program, Script, Scripts, Step};
use crate::reply::Reply;

/// Runs a script whose calls are all answered with `+OK`.
fn run(text: &str) -> End {
    run_on(&mut Machine::new().unwrap(), text)
}

fn run_on(machine: &mut Machine, text: &str) -> End {
    let script = Arc::new(Script::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, None);
    let mut step = machine.begin(
        &Program::Script(script),
        Vec::new(),
        Vec::new(),
        guard.run(),
    );
    loop {
        match step {
            Step::Ended(end) => return end,
            Step::Calls(_) | Step::Checks(_) => step = machine.answer(Answer::Reply(Reply::OK)),
        }
    }
}

fn replied(text: &str) -> Reply {
    match run(text) {
        End::Replied(reply, _) => reply,
        other => panic!("{text}: {other:?}"),
    }
}

fn failed(text: &str) -> String {
    match run(text) {
        End::Failed(line, _) => line,
        other => panic!("{text}: {other:?}"),
    }
}

fn text_of(reply: Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_that_scripts_share_can_be_changed() {
    for change in [
        "x = 1",
        "_G.x = 1",
        "redis.x = 1",
        "string.x = 1",
        "math.random = nil",
        "cjson.encode = nil",
        "rawset(_G, 'x', 1)",
        "rawset(string, 'x', 1)",
        "setmetatable(_G, {})",
        "setmetatable(redis, nil)",
        "table.insert(string, 1)",
        "getmetatable('').x = 1",
        "getmetatable('').__index.x = 1",
        "getmetatable(_G).__index = 1",
        "loadstring('y = 1')()",
        "coroutine.wrap(function() y = 1 end)()",
        "function y() end",
    ] {
        let line = failed(change);
        assert!(
            line.contains("Attempt to modify a readonly table"),
            "{change}: {line}"
        );
    }
    // What iterates over a library sees its functions, and gets no table that could be changed.
    let script = "local n = 0 for k, v in pairs(string) do n = n + 1 end \
        local f, t = pairs(string) return {n, pcall(rawset, t, 'x', 1)}";
    let Reply::Array(found) = replied(script) else {
        panic!("no array");
    };
    assert!(
        matches!(found.first(), Some(Reply::Integer(count)) if *count > 10),
        "{found:?}"
    );
    assert_eq!(found.get(1), Some(&Reply::Null));
}

#[test]
fn what_reaches_beyond_a_script_is_not_there() {
    for name in [
        "io", "os", "debug", "package", "require", "module", "dofile", "loadfile", "print",
        "getfenv", "setfenv", "newproxy",
    ] {
        let line = failed(&format!("return {name}"));
        let expected = format!("Script attempted to access nonexistent global variable '{name}'");
        assert!(line.contains(&expected), "{name}: {line}");
    }
}

#[test]
fn bytecode_is_not_loaded() {
    let dumped = "local f = string.dump(function() return 7 end) ";
    assert_eq!(
        replied(&format!("{dumped} return loadstring(f) == nil")),
        Reply::Integer(1)
    );
    let reader = "local done = false return load(function() if done then return nil end \
                  done = true return f end) == nil";
    assert_eq!(replied(&format!("{dumped} {reader}")), Reply::Integer(1));
    assert!(failed("\u{1b}Lua").contains("Error compiling script"));
}

#[test]
fn unpack_does_not_count_beyond_its_limits() {
    for range in [
        "1, 1e7",
        "2147483647, 2147483647",
        "-2147483648, 2147483647",
    ] {
        let line = failed(&format!("return unpack({{}}, {range})"));
        assert!(
            line.contains("too many results to unpack"),
            "{range}: {line}"
        );
    }
    assert_eq!(
        replied("return select('#', unpack({}, 1, 7000))"),
        Reply::Integer(7_000)
    );
}

#[test]
fn long_brackets_are_short() {
    let equals = "=".repeat(300);
    assert!(failed(&format!("return [{equals}[x]{equals}]")).contains("long bracket"));
    let script =
        format!("local e = '{equals}' return loadstring('return ['..e..'[x]'..e..']') == nil");
    assert_eq!(replied(&script), Reply::Integer(1));
    assert_eq!(text_of(replied("return [==[x]==]")), "x");
}

#[test]
fn memory_is_limited() {
    let line = failed("local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1e6) .. i end");
    assert!(line.contains("not enough memory"), "{line}");
}

#[test]
fn an_error_tells_where_it_was_raised() {
    let line = failed("\n\nerror('boom')");
    assert!(
        line.starts_with("ERR user_script:3: boom script: "),
        "{line}"
    );
    assert!(line.ends_with(", on @user_script:3."), "{line}");
    let line = failed("local t = nil\nreturn t.x");
    assert!(line.ends_with(", on @user_script:2."), "{line}");
    let line = failed("#!lua\nreturn redis.call()");
    assert!(line.ends_with(", on @user_script:2."), "{line}");
}

#[test]
fn a_killed_script_ends_whatever_it_catches() {
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do local c = coroutine.create(function() while true do end end) \
         coroutine.resume(c) end",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "while true do redis.call('PING') end",
    ] {
        let script = Arc::new(Script::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap());
        let scripts = Arc::new(Scripts::default());
        let killer = Arc::clone(&scripts);
        let thread = std::thread::spawn(move || {
            while killer.kill(false).is_err() {
                std::thread::yield_now();
            }
        });
        let guard = scripts.begin(Caller::Script, None);
        let mut machine = Machine::new().unwrap();
        let mut step = machine.begin(
            &Program::Script(script),
            Vec::new(),
            Vec::new(),
            guard.run(),
        );
        let end = loop {
            match step {
                Step::Ended(end) => break end,
                _ => step = machine.answer(Answer::Reply(Reply::OK)),
            }
        };
        let End::Killed(line) = end else {
            panic!("{text}: {end:?}");
        };
        assert!(line.starts_with("ERR Script killed by user with SCRIPT KILL... script: "));
        assert!(!machine.is_reusable());
        thread.join().unwrap();
    }
}

#[test]
fn a_script_that_is_given_up_ends_with_its_machine() {
    let text = "while true do pcall(redis.call, 'PING') end";
    let script = Arc::new(Script::parse(Bytes::from_static(text.as_bytes())).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, None);
    let mut machine = Machine::new().unwrap();
    let step = machine.begin(
        &Program::Script(script),
        Vec::new(),
        Vec::new(),
        guard.run(),
    );
    assert!(matches!(step, Step::Calls(_)));
    drop(machine);
}

#[test]
fn settings_of_a_library_hold_for_one_script() {
    let mut machine = Machine::new().unwrap();
    let sparse = "return cjson.encode({[1] = 1, [100] = 2})";
    let allowed = format!("cjson.encode_sparse_array(true) {sparse}");
    assert!(matches!(run_on(&mut machine, &allowed), End::Replied(..)));
    assert!(matches!(run_on(&mut machine, sparse), End::Failed(..)));
}

#[test]
fn shebangs_are_read_as_by_redis() {
    for (text, expected) in [
        ("#!lua", "ERR Invalid script shebang"),
        ("#!py\n", "ERR Unexpected engine in script shebang: #!py"),
        (
            "#!lua flags=nope\n",
            "ERR Unexpected flag in script shebang: nope",
        ),
        ("#!lua x=1\n", "ERR Unknown lua shebang option: x=1"),
    ] {
        let refused = Script::parse(Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(refused, Err(expected.to_owned()));
    }
    let text = "#!lua flags=no-writes,allow-oom,atomic\nreturn 1";
    let script = Script::parse(Bytes::from_static(text.as_bytes())).unwrap();
    assert!(script.flags.no_writes && script.flags.is_atomic && !script.flags.is_plain);
}

#[test]
fn math_random_counts_from_its_seed_as_redis_does() {
    let script = "math.randomseed(5) return tostring(math.random()) .. ' ' .. math.random()";
    assert_eq!(
        text_of(replied(script)),
        "0.52483957937213 0.27285430173988"
    );
}
