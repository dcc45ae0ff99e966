mod checks;
mod endless;
mod limits;
mod stock;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::FutureExt;

use super::{
    Caller, Commands, End, Fiber, KillError, Machine, Origin, Program, Script, Scripts, TimeLimit,
};
use quoin_base::redis_version::RedisVersion;
use quoin_resp::reply::Reply;

/// Commands that are all answered with `+OK`.
struct Fine;

impl Commands for Fine {
    fn call(&mut self, _: Vec<Bytes>, _: &Fiber<'_>) -> Option<Reply> {
        Some(Reply::OK)
    }

    fn check(&mut self, _: Vec<Bytes>) -> Reply {
        Reply::OK
    }
}

/// The result of a future that is ready immediately.
fn poll<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// Runs a script whose calls all get the reply `+OK`.
fn run(text: &str) -> End {
    run_on(&mut Machine::new(RedisVersion::default()).unwrap(), text)
}

fn run_on(machine: &mut Machine, text: &str) -> End {
    let script = Arc::new(Script::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let program = Program::Script(script);
    poll(machine.run(&program, Vec::new(), Vec::new(), guard.run(), &mut Fine))
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
    // Iteration over a library shows its functions, but returns no table that could be changed.
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
fn a_run_is_killed_or_writes_and_never_both() {
    let scripts = Scripts::default();
    let killed = scripts.begin(Caller::Script, TimeLimit::Nothing);
    assert_eq!(scripts.kill(false), Ok(()));
    assert!(killed.run().is_killed() && !killed.run().may_write());
    drop(killed);
    let written = scripts.begin(Caller::Script, TimeLimit::Nothing);
    assert!(written.run().may_write() && written.run().may_write());
    assert_eq!(scripts.kill(false), Err(KillError::Unkillable));
    assert!(!written.run().is_killed());
}

#[test]
fn a_table_that_scripts_share_stays_as_it_is_when_it_is_raised() {
    for raised in [
        "error(_G)",
        "error(string)",
        "__redis__err__handler(string)",
    ] {
        let mut machine = Machine::new(RedisVersion::default()).unwrap();
        run_on(&mut machine, raised);
        let end = run_on(
            &mut machine,
            "return {rawget(_G, 'source'), rawget(string, 'line')}",
        );
        let End::Replied(reply, _) = end else {
            panic!("{raised}: {end:?}");
        };
        assert_eq!(reply, Reply::Array(Vec::new()), "{raised}");
    }
}

#[test]
fn what_would_need_too_much_stack_is_refused() {
    for (script, expected) in [
        (
            "return string.find(string.rep('a', 70000), string.rep('a?', 70000))",
            "pattern too complex",
        ),
        (
            "return (string.rep('a', 3000)):gsub(string.rep('a-', 3000) .. 'b', '')",
            "pattern too complex",
        ),
        (
            "local t = {} t[1] = t cjson.encode_max_depth(2147483647) return cjson.encode(t)",
            "excessive nesting",
        ),
        (
            "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 9000))",
            "too many nested data structures",
        ),
    ] {
        let line = failed(script);
        assert!(line.contains(expected), "{script}: {line}");
    }
    let plain = "return string.find(string.rep('?', 5000), string.rep('?', 5000), 1, true)";
    assert_eq!(replied(plain), Reply::Integer(1));
}

#[test]
fn a_reader_that_never_ends_is_refused() {
    let reason = text_of(replied("local _, reason = load(math.random) return reason"));
    assert_eq!(reason, "reader function gives too many pieces");
}

#[test]
fn the_collector_is_set_as_ever_for_each_script() {
    let settings = "return {collectgarbage('setpause', 200), collectgarbage('setstepmul', 200)}";
    let expected = Reply::Array(vec![Reply::Integer(200), Reply::Integer(200)]);
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    for before in [
        "return 1",
        "collectgarbage('setpause', 1000) collectgarbage('setstepmul', 900)",
    ] {
        run_on(&mut machine, before);
        let end = run_on(&mut machine, settings);
        assert!(
            matches!(&end, End::Replied(reply, _) if *reply == expected),
            "{end:?}"
        );
    }
}

#[test]
fn a_collector_that_a_script_has_stopped_runs_again() {
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let garbage = "for number = 1, 1000 do local _ = string.rep(number, 1000) end \
                   return collectgarbage('count')";
    // Compiling it later would make the collector run again.
    run_on(&mut machine, garbage);
    run_on(&mut machine, "collectgarbage('stop')");
    let kilobytes = (0..20).map(|_| match run_on(&mut machine, garbage) {
        End::Replied(Reply::Integer(count), _) => count,
        end => panic!("{end:?}"),
    });
    // Each script makes four megabytes.
    assert!(kilobytes.max() < Some(10_000));
}

#[test]
fn what_is_wrong_with_collectgarbage_is_told_by_its_name() {
    let line = failed("collectgarbage('nonsense')");
    assert!(
        line.contains("bad argument #1 to 'collectgarbage' (invalid option 'nonsense')"),
        "{line}"
    );
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
        "xpcall(function() while true do end end, function() while true do end end)",
    ] {
        let script = Arc::new(Script::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap());
        let scripts = Arc::new(Scripts::default());
        let killer = Arc::clone(&scripts);
        let thread = std::thread::spawn(move || {
            while killer.kill(false).is_err() {
                std::thread::yield_now();
            }
        });
        let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
        let mut machine = Machine::new(RedisVersion::default()).unwrap();
        let program = Program::Script(script);
        let (keys, arguments) = (Vec::new(), Vec::new());
        let end = poll(machine.run(&program, keys, arguments, guard.run(), &mut Fine));
        let End::Killed(line) = end else {
            panic!("{text}: {end:?}");
        };
        assert!(line.starts_with("ERR Script killed by user with SCRIPT KILL... script: "));
        assert!(!machine.is_reusable());
        thread.join().unwrap();
    }
}

/// Commands that never have an answer, and note that they are given up.
struct Stuck<'g>(&'g Cell<usize>);

impl Commands for Stuck<'_> {
    fn call(&mut self, _: Vec<Bytes>, fiber: &Fiber<'_>) -> Option<Reply> {
        let answer = fiber.wait(pin!(std::future::pending()));
        self.0.set(self.0.get() + 1);
        answer
    }

    fn check(&mut self, _: Vec<Bytes>) -> Reply {
        Reply::OK
    }
}

#[test]
fn a_script_that_waits_ends_when_its_run_is_given_up() {
    let text = "while true do pcall(redis.call, 'PING') end";
    let script = Arc::new(Script::parse(Bytes::from_static(text.as_bytes())).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let given_up = Cell::new(0);
    let mut stuck = Stuck(&given_up);
    let program = Program::Script(script);
    let run = machine.run(&program, Vec::new(), Vec::new(), guard.run(), &mut stuck);
    assert!(run.now_or_never().is_none());
    assert_eq!(given_up.get(), 1);
    assert!(!machine.is_reusable());
}

#[test]
fn a_script_goes_on_when_what_it_waits_for_is_there() {
    struct Slow(usize);
    impl Commands for Slow {
        fn call(&mut self, _: Vec<Bytes>, fiber: &Fiber<'_>) -> Option<Reply> {
            self.0 += 1;
            let mut polls = 0;
            fiber.wait(pin!(poll_fn(|context| {
                polls += 1;
                context.waker().wake_by_ref();
                match polls < 3 {
                    true => Poll::Pending,
                    false => Poll::Ready(Reply::count(self.0)),
                }
            })))
        }

        fn check(&mut self, _: Vec<Bytes>) -> Reply {
            Reply::OK
        }
    }
    let text = "local co = coroutine.wrap(function() coroutine.yield(redis.call('A')) end) \
                return {co(), select(2, pcall(redis.call, 'B'))}";
    let script = Arc::new(Script::parse(Bytes::from_static(text.as_bytes())).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let (program, mut slow) = (Program::Script(script), Slow(0));
    let run = machine.run(&program, Vec::new(), Vec::new(), guard.run(), &mut slow);
    let mut run = pin!(run);
    let mut polls = 0;
    let end = loop {
        polls += 1;
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(end) = run.as_mut().poll(&mut context) {
            break end;
        }
    };
    let expected = Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)]);
    assert_eq!((end, polls), (End::Replied(expected, Origin::Script), 5));
}

#[test]
fn to_wait_does_not_count_as_running() {
    let text = Bytes::from_static(b"redis.call('A') while true do end");
    let script = Arc::new(Script::parse(text).unwrap());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    /// A command that completes when it is told to.
    struct Later<'r>(&'r Cell<bool>);
    impl Commands for Later<'_> {
        fn call(&mut self, _: Vec<Bytes>, fiber: &Fiber<'_>) -> Option<Reply> {
            fiber.wait(pin!(poll_fn(|_| match self.0.get() {
                true => Poll::Ready(Reply::OK),
                false => Poll::Pending,
            })))
        }

        fn check(&mut self, _: Vec<Bytes>) -> Reply {
            Reply::OK
        }
    }
    let (program, is_there) = (Program::Script(script), Cell::new(false));
    let mut later = Later(&is_there);
    let run = machine.run(&program, Vec::new(), Vec::new(), guard.run(), &mut later);
    let mut run = pin!(run);
    let mut context = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut context).is_pending());
    const WAITED: std::time::Duration = std::time::Duration::from_millis(200);
    let limit_ms = || 100;
    std::thread::sleep(WAITED);
    assert!(guard.run().elapsed() >= WAITED);
    assert!(scripts.busy(limit_ms).is_none());
    is_there.set(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while scripts.busy(limit_ms).is_none() {
                std::thread::yield_now();
            }
            scripts.kill(false).unwrap();
        });
        let end = run.as_mut().poll(&mut context);
        assert!(matches!(end, Poll::Ready(End::Killed(_))), "{end:?}");
    });
}

#[test]
fn settings_of_a_library_hold_for_one_script() {
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
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
