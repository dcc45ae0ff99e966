//! What a script may use, even beyond the reach of Lua's memory limit and its hook.

use std::time::Duration;

use super::*;
use crate::{Library, Run, library_source};

/// A table in which the leaf `('x'):rep(1000)` occurs 2^levels times.
fn doubled(levels: usize) -> String {
    format!("local t = ('x'):rep(1000) for i = 1, {levels} do t = {{t, t}} end ")
}

#[test]
fn what_is_built_outside_lua_keeps_to_the_memory_limit() {
    let many = "local s = ('x'):rep(1e6) local t = {} for i = 1, 300 do t[i] = s end ";
    let wide = "local t = ('x'):rep(1000) for level = 1, 3 do \
                local u = {} for i = 1, 100 do u[i] = t end t = u end ";
    for text in [
        doubled(19) + "return t",
        doubled(19) + "return cjson.encode(t)",
        many.to_owned() + "return {map = t}",
        many.to_owned() + "return #cjson.encode(t)",
        many.to_owned() + "return #cmsgpack.pack(t)",
        wide.to_owned() + "return t",
        wide.to_owned() + "return #cmsgpack.pack(t)",
    ] {
        assert!(failed(&text).contains("not enough memory"), "{text}");
    }
}

#[test]
fn what_messagepack_promises_is_believed_when_it_is_there() {
    let error = |text: &str| match replied(&format!("return {{pcall(cmsgpack.unpack, {text})}}")) {
        Reply::Array(mut items) => match items.pop() {
            Some(Reply::Bulk(line)) => String::from_utf8(line.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    for text in [
        // Each promises four billion items.
        "string.rep('\\221\\255\\255\\255\\255', 1000)",
        "string.rep('\\223\\255\\255\\255\\255\\1', 1000)",
    ] {
        assert_eq!(error(text), "Missing bytes in input.");
    }
    let too_many = "stack overflow (too many return values at once; use unpack_one or unpack_limit \
                    instead.)";
    assert_eq!(error("string.rep('\\1', 8001)"), too_many);
    assert_eq!(error("string.rep('\\129\\1', 5000)"), too_many);
    assert_eq!(
        error("string.rep('\\145', 5000)"),
        "stack overflow (in function mp_decode_to_lua_array)"
    );
    assert_eq!(error("'\\129\\192\\1'"), "table index is nil");
    assert_eq!(error("'\\129\\192'"), "Missing bytes in input.");
}

#[test]
fn a_long_result_is_the_same_as_a_short_one() {
    let text = "local t = {} for i = 1, 200000 do t[i] = i end return t";
    let expected = (1..=200_000).map(Reply::Integer).collect();
    assert_eq!(replied(text), Reply::Array(expected));
}

#[test]
fn a_script_cannot_call_a_command_with_more_than_it_may_use() {
    let text = "local s = ('x'):rep(5e7) local t = {} for i = 1, 6 do t[i] = s end ";
    let refused = Reply::Error("ERR not enough memory".to_owned());
    let called = replied(&(text.to_owned() + "return redis.pcall('RPUSH', 'k', unpack(t))"));
    assert_eq!(called, refused);
    let line = failed(&(text.to_owned() + "return redis.call('RPUSH', 'k', unpack(t))"));
    assert!(line.starts_with("ERR not enough memory"), "{line}");
}

#[test]
fn what_takes_long_outside_lua_is_ended_as_the_script_is() {
    for last in [
        "return t",
        "pcall(cjson.encode, t)",
        "pcall(cmsgpack.pack, {t, t})",
        "cjson.encode_sparse_array(false, 0) pcall(cjson.encode, {[1e5] = 1})",
    ] {
        let text = doubled(14) + last;
        let script = Arc::new(Script::parse(text.into()).unwrap());
        let scripts = Scripts::default();
        let guard = scripts.begin(Caller::Script, TimeLimit::Elapsed(Duration::ZERO));
        let mut machine = Machine::new(RedisVersion::default()).unwrap();
        let program = Program::Script(script);
        let end = poll(machine.run(&program, Vec::new(), Vec::new(), guard.run(), &mut Fine));
        assert_eq!(end, End::Late, "{last}");
        assert!(!machine.is_reusable());
    }
}

#[test]
fn a_machine_that_has_compiled_much_is_not_used_again() {
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let text = format!("return '{}'", "x".repeat(8_000_000));
    let script = Arc::new(Script::parse(text.into()).unwrap());
    assert_eq!(machine.compile(&script), Ok(()));
    assert!(!machine.is_reusable());
}

/// Calls the last function of a library with the key `k` and the argument `v`.
fn call_last(machine: &mut Machine, code: String) -> End {
    let code = Bytes::from(code);
    let run = Run::of_load(Duration::from_secs(60));
    let functions = machine.load(library_source(&code), &run).unwrap();
    assert!(machine.is_reusable());
    let last = functions.len() - 1;
    let library = Library {
        id: 1,
        name: "l".to_owned(),
        code,
        functions,
    };
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let program = Program::Function(Arc::new(library), last);
    let texts = |text: &'static str| vec![Bytes::from_static(text.as_bytes())];
    poll(machine.run(&program, texts("k"), texts("v"), guard.run(), &mut Fine))
}

#[test]
fn a_library_may_have_more_functions_than_the_bindings_have_references() {
    let code = "#!lua name=l\nfor i = 1, 12000 do \
                redis.register_function('f' .. i, function() return i end) end";
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let end = call_last(&mut machine, code.to_owned());
    assert_eq!(end, End::Replied(Reply::Integer(12_000), Origin::Script));
    assert!(machine.is_reusable());
}

#[test]
fn a_function_sees_no_keys_and_arguments_but_its_own() {
    let mut machine = Machine::new(RedisVersion::default()).unwrap();
    let script = Script::parse(Bytes::from_static(b"return ARGV[1]")).unwrap();
    let (program, scripts) = (Program::Script(Arc::new(script)), Scripts::default());
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    let secret = vec![Bytes::from_static(b"secret")];
    let end = poll(machine.run(&program, secret.clone(), secret, guard.run(), &mut Fine));
    assert!(matches!(end, End::Replied(Reply::Bulk(_), _)));
    for name in ["KEYS", "ARGV"] {
        let code = format!(
            "#!lua name=l\nredis.register_function('f', function() \
             return loadstring('return {name}')() end)"
        );
        let End::Failed(line, _) = call_last(&mut machine, code) else {
            panic!("{name} is seen");
        };
        assert!(line.contains("nonexistent global variable"), "{line}");
    }
}
