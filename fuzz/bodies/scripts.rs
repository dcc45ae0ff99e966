//! A machine runs any script to an end: a reply, an error, or running out of memory. The libraries
//! read any bytes.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use quoin_base::redis_version::RedisVersion;
use quoin_lua::{Caller, Commands, Fiber, Machine, Program, Run, Script, Scripts, TimeLimit};
use quoin_resp::reply::Reply;

/// A script that never ends is ended after this time.
const LONGEST: Duration = Duration::from_millis(200);
/// Passes the data to the libraries' readers.
const READERS: &str = "local d = ARGV[1] pcall(cjson.decode, d) pcall(cmsgpack.unpack, d) \
    pcall(struct.unpack, d, d) pcall(struct.pack, d, 1, 'x', 2) pcall(struct.size, d) \
    local ok, v = pcall(cjson.decode, d) if ok then pcall(cjson.encode, v) pcall(cmsgpack.pack, v) end";

/// Panics if the machine misbehaves on this data.
pub(crate) fn run(data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    play(data.clone(), Vec::new());
    play(Bytes::from_static(READERS.as_bytes()), vec![data]);
}

fn play(text: Bytes, arguments: Vec<Bytes>) {
    let Ok(script) = Script::parse(text) else {
        return;
    };
    let script = Arc::new(script);
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Elapsed(LONGEST));
    let mut machine = Machine::new(RedisVersion::default()).expect("a machine starts");
    let run = Arc::clone(guard.run());
    let program = Program::Script(script);
    let mut commands = Answers(run);
    let ended = machine.run(&program, Vec::new(), arguments, guard.run(), &mut commands);
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(ended).poll(&mut context).is_ready(), "nothing waits");
}

/// Answers every command at once, until the run is late.
struct Answers(Arc<Run>);

impl Commands for Answers {
    fn call(&mut self, _: Vec<Bytes>, _: &Fiber<'_>) -> Option<Reply> {
        (!self.0.is_late()).then(|| Reply::Map(vec![(Reply::OK, Reply::Null)]))
    }

    fn check(&mut self, _: Vec<Bytes>) -> Reply {
        Reply::OK
    }
}
