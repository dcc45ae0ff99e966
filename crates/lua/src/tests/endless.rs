//! Work that takes long within one Lua instruction, or a few, and can be ended nevertheless.

use std::time::{Duration, Instant};

use super::*;

/// How long a script runs before it is killed, so that it has reached its slow part.
const RUN: Duration = Duration::from_millis(100);
/// It must end within this time, even on a busy machine.
const END: Duration = Duration::from_secs(20);

#[track_caller]
fn ends(text: &str, end: impl FnOnce(&Scripts) + Send + 'static) -> End {
    let script = Arc::new(Script::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap());
    let scripts = Arc::new(Scripts::default());
    let others = Arc::clone(&scripts);
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let ending = std::thread::spawn(move || {
        std::thread::sleep(RUN);
        end(&others);
        Instant::now()
    });
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let program = Program::Script(script);
    let (keys, arguments) = (Vec::new(), Vec::new());
    let end = poll(machine.run(&program, keys, arguments, guard.run(), &mut Fine));
    let killed_at = ending.join().unwrap();
    assert!(
        killed_at.elapsed() < END,
        "{text}: {:?}",
        killed_at.elapsed()
    );
    end
}

#[track_caller]
fn is_killed(text: &str) {
    let end = ends(text, |scripts| scripts.kill(false).unwrap());
    let End::Killed(line) = end else {
        panic!("{text}: {end:?}");
    };
    assert!(line.contains(", on @user_script:1."), "{text}: {line}");
}

#[test]
fn patterns() {
    for call in [
        "string.find(a, ('a*'):rep(20) .. 'b')",
        "string.find(a, ('a-'):rep(20) .. 'b')",
        "string.find(a, ('.-'):rep(20) .. 'b')",
        "string.find(a, ('a?'):rep(60) .. 'b')",
        "string.find(a, ('a+'):rep(20) .. 'b')",
        "string.find(a, ('[ab]*'):rep(20) .. 'c')",
        "string.find(a, ('(a*)'):rep(20) .. 'b')",
        "a:match(('a*'):rep(20) .. 'b')",
        "a:match('^' .. ('a*'):rep(20) .. 'b')",
        "a:gmatch(('a*'):rep(20) .. 'b')()",
        "a:gfind(('a*'):rep(20) .. 'b')()",
        "a:gsub(('a*'):rep(20) .. 'b', '')",
        "while true do pcall(string.find, a, ('a*'):rep(20) .. 'b') end",
        "xpcall(function() return a:find(('a*'):rep(20) .. 'b') end, function() end) while true do end",
        "coroutine.wrap(function() a:find(('a*'):rep(20) .. 'b') end)()",
        "table.sort({1, 2}, function() return a:find(('a*'):rep(20) .. 'b') end)",
        "while true do ('('):rep(2e6):find('%b()') end",
        "while true do a:rep(1e4):find(('[' .. a .. 'b]'):rep(30) .. '.-c') end",
        "while true do local s = a:rep(3e4) s:find(s .. 'b', 1, true) end",
        "while true do a:rep(1e5):gsub('a', '%0') end",
        "a:rep(1e5):gsub('.', function() while true do end end)",
    ] {
        is_killed(&format!("local a = ('a'):rep(60) {call}"));
    }
}

#[test]
fn tables() {
    for text in [
        "table.insert({}, -2147483648, 1)",
        "local t = {} for i = 1, 3e5 do t[i] = -i end while true do table.sort(t, rawequal) end",
        "local t = {} for i = 1, 3e5 do t[i] = i % 7 end while true do table.sort(t) end",
        "local t = {} for i = 1, 300 do t[i] = ('x'):rep(1e5) end while true do table.sort(t) end",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "local t = {} for i = 1, 3e5 do t[i] = 'x' end while true do table.concat(t) end",
        "local t = {} for i = 1, 3e5 do t[i] = 1e5 end while true do table.foreachi(t, string.rep) end",
        "local t = {} for i = 1, 3e5 do t[i] = 1e5 end while true do table.foreach(t, string.rep) end",
        "local t = {} for i = 1, 3e5 do t[i] = i end while true do table.insert(t, 1, 1) end",
        "local t = {} for i = 1, 3e5 do t[i] = i end while true do table.remove(t, 1) t[3e5] = 1 end",
        "local t = {} for i = 1, 3e5 do t[i] = i end while true do table.maxn(t) end",
        "local t = {} for i = 1, 3e5 do t[i] = {} end while true do collectgarbage() end",
    ] {
        is_killed(text);
    }
}

#[test]
fn what_runs_out_of_memory_again_and_again() {
    for text in [
        "while true do pcall(string.rep, 'x', 1e9) end",
        "local f = function() return ('x'):rep(1e9) end while true do xpcall(f, type) end",
        "while true do pcall(coroutine.wrap(function() return ('x'):rep(1e9) end)) end",
    ] {
        is_killed(text);
    }
    let long = "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end \
                local f = function() return table.concat(t) end while true do";
    for call in [
        "pcall(f)",
        "xpcall(f, type)",
        "coroutine.resume(coroutine.create(f))",
        "pcall(coroutine.wrap(f))",
        "load(f)",
    ] {
        is_killed(&format!("{long} {call} end"));
    }
}

/// The script only creates coroutines that do little.
#[test]
fn coroutines_within_coroutines() {
    is_killed(
        "local function f(depth) if depth == 0 then return end \
         for i = 1, 200 do coroutine.wrap(f)(depth - 1) end end f(50)",
    );
}

#[test]
fn long_texts() {
    let long = "local s = ('x'):rep(2e7) while true do ";
    for text in [
        "while true do local s = ('x'):rep(2e7) end".to_owned(),
        "local s = 'x' while true do s = s .. s if #s > 2e7 then s = 'x' end end".to_owned(),
        format!("{long} local t = s .. s end"),
        format!("{long} local t = s:upper() end"),
        format!("{long} local t = s:reverse() end"),
        format!("{long} local t = ('%s'):format(s) end"),
        format!("{long} local t = ('%q'):format(s) end"),
        format!("{long} local t = tonumber(s) end"),
        format!("{long} local t = s:find('y', 1, true) end"),
        format!("{long} local t = redis.sha1hex(s) end"),
        format!("{long} local t = cjson.encode(s) end"),
        format!("{long} local t = pcall(cjson.decode, s) end"),
        format!("{long} local t = cmsgpack.pack(s) end"),
        format!("{long} local t = struct.pack('s', s) end"),
        format!("{long} local t = struct.pack('c0', s) end"),
        format!("{long} local t = loadstring(s) end"),
        "local s = '[' .. ('1,'):rep(1e7) .. '1]' while true do pcall(cjson.decode, s) end".to_owned(),
        "local s = '{' .. ('\"a\":1,'):rep(1e7) .. '\"a\":1}' cjson.decode(s) while true do end".to_owned(),
        "local s = '\\223\\1\\0\\0\\0' .. ('\\1\\1'):rep(2^24) cmsgpack.unpack(s) while true do end"
            .to_owned(),
        "local s = (('x'):rep(1000) .. '\\n'):rep(1e4) while true do load(s:gmatch('.-\\n')) end"
            .to_owned(),
    ] {
        is_killed(&text);
    }
}

#[test]
fn what_has_written_is_ended_as_well_when_the_server_stops() {
    let end = ends("redis.call('SET', 'k', 'v') while true do end", |scripts| {
        let [run] = scripts.under_way().try_into().unwrap();
        assert!(run.may_write());
        assert_eq!(scripts.kill(false), Err(KillError::Unkillable));
        scripts.end_all();
        // Runs that begin later do not run.
        let late = scripts.begin(Caller::Script, TimeLimit::Nothing);
        assert!(late.run().is_ended() && !late.run().may_write());
    });
    assert_eq!(end, End::Aborted);
}

#[test]
fn nothing_is_repeated_at_once() {
    assert_eq!(text_of(replied("return (''):rep(2147483647)")), "");
}

#[test]
fn what_is_packed_keeps_to_the_memory_limit() {
    let text = "local s = ('x'):rep(1e7) local t = {} for i = 1, 100 do t[i] = s end \
                return #struct.pack(('c0'):rep(100), unpack(t))";
    assert!(failed(text).contains("not enough memory"));
}
