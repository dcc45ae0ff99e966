//! Whatever a script is, its machine runs it to an end: a reply, an error, or no more memory. The
//! libraries read whatever bytes they are given.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quoin::reply::Reply;
use quoin::scripting::{Answer, Caller, Machine, Program, Script, Scripts, Step};

/// A script that never ends is ended after so long.
const LONGEST: Duration = Duration::from_millis(200);
/// What hands the data to the libraries' readers.
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
    let guard = scripts.begin(Caller::Script, Some(LONGEST));
    let mut machine = Machine::new().expect("a machine starts");
    let mut step = machine.begin(&Program::Script(script), Vec::new(), arguments, guard.run());
    while !matches!(step, Step::Ended(_)) {
        let answer = match guard.run().is_late() {
            true => Answer::Abort,
            false => Answer::Reply(Reply::Map(vec![(Reply::OK, Reply::Null)])),
        };
        step = machine.answer(answer);
    }
}
