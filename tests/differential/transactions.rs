//! Random transactions around the other commands, and commands that would wait outside of them.

use crate::lists::several_pop;
use crate::resp::{Value, Words};
use crate::stream_groups;
use crate::streams;
use crate::words::Dice;

const ENDS: &[&str] = &["LEFT", "RIGHT"];
/// The shortest timeout possible, because a command waits for that long outside of a transaction.
const SHORT: &str = "0.001";
const NO_TIMEOUTS: &[&str] = &["abc", "", "-1", "nan", "-1e400", "1 ", "-0.5"];

/// The state of a connection while a history is generated.
#[derive(Default, Clone, Copy)]
pub struct Session {
    pub is_in_multi: bool,
}

/// MULTI and related commands, occasionally.
pub fn command(dice: &mut Dice, session: &mut Session) -> Option<Words> {
    let words: Vec<Vec<u8>> = if session.is_in_multi {
        match dice.below(60) {
            0..8 => {
                session.is_in_multi = false;
                let mut words = vec![dice.word("EXEC")];
                if dice.one_in(20) {
                    words.push(b"now".to_vec());
                }
                words
            }
            8 => {
                session.is_in_multi = false;
                vec![dice.word("DISCARD")]
            }
            9 if dice.one_in(3) => vec![dice.choose_word(&["MULTI", "NOSUCHCOMMAND", "WATCH"])],
            10 if dice.one_in(3) => vec![dice.word("WATCH"), dice.any_key()],
            11 => vec![dice.word("UNWATCH")],
            12 => vec![dice.word("PING")],
            _ => return None,
        }
    } else {
        match dice.below(120) {
            0..8 => {
                let count = dice.below(3) + 1;
                let keys = (0..count).map(|_| dice.any_key());
                let keys: Vec<_> = keys.collect();
                std::iter::once(dice.word("WATCH")).chain(keys).collect()
            }
            8..16 => {
                session.is_in_multi = true;
                vec![dice.word("MULTI")]
            }
            16 => vec![dice.word("UNWATCH")],
            17 if dice.one_in(4) => vec![dice.choose_word(&["EXEC", "DISCARD"])],
            _ => return None,
        }
    };
    Some(words)
}

/// A command that waits if it finds nothing.
pub fn blocking(dice: &mut Dice, session: Session) -> Words {
    let timeout = match dice.below(12) {
        0 => dice.pick(NO_TIMEOUTS),
        1..5 if session.is_in_multi => dice.pick(&["0", "0.0", "100", "1.5"]),
        _ => SHORT,
    };
    let timeout = timeout.as_bytes().to_vec();
    let some_keys = |dice: &mut Dice, family| -> Vec<Vec<u8>> {
        (0..=dice.below(3)).map(|_| dice.key(family)).collect()
    };
    let (name, arguments): (&str, Vec<Vec<u8>>) = match dice.below(8) {
        7 => {
            let timeout = match dice.below(12) {
                0 => dice.pick(NO_TIMEOUTS),
                // Within a transaction it does not wait.
                1..5 if session.is_in_multi => "0",
                _ => "1",
            };
            return match dice.one_in(2) {
                true => streams::blocking(dice, timeout),
                false => stream_groups::blocking(dice, timeout),
            };
        }
        0 | 1 => {
            let name = dice.pick(&["BLPOP", "BRPOP"]);
            (name, [some_keys(dice, 'l'), vec![timeout]].concat())
        }
        2 => {
            let name = dice.pick(&["BZPOPMIN", "BZPOPMAX"]);
            (name, [some_keys(dice, 'z'), vec![timeout]].concat())
        }
        3 => {
            let mut arguments = vec![dice.key('l'), dice.key('l')];
            arguments.extend([dice.choose_word(ENDS), dice.choose_word(ENDS), timeout]);
            ("BLMOVE", arguments)
        }
        4 => ("BRPOPLPUSH", vec![dice.key('l'), dice.key('l'), timeout]),
        5 => {
            let pop = several_pop(dice, 'l', ENDS);
            ("BLMPOP", [vec![timeout], pop].concat())
        }
        _ => {
            let pop = several_pop(dice, 'z', &["MIN", "MAX"]);
            ("BZMPOP", [vec![timeout], pop].concat())
        }
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// The commands that a connection has queued. EXEC's reply contains theirs.
#[derive(Default)]
pub struct Queue {
    commands: Option<Vec<Words>>,
}

impl Queue {
    /// Records a command and its reply. For an EXEC that was carried out, returns the commands
    /// whose replies are in the reply.
    pub fn note(&mut self, command: &Words, reply: &Value) -> Option<Vec<Words>> {
        let is_queued = matches!(reply, Value::Line(b'+', text) if text == b"QUEUED");
        match &mut self.commands {
            Some(commands) if is_queued => {
                commands.push(command.clone());
                None
            }
            None if is_ok(reply) && is(command, "MULTI") => {
                self.commands = Some(Vec::new());
                None
            }
            Some(_) if is(command, "EXEC") => self.commands.take(),
            Some(_) if is(command, "DISCARD") && is_ok(reply) => {
                self.commands = None;
                None
            }
            _ => None,
        }
    }
}

fn is(command: &Words, name: &str) -> bool {
    crate::differences::upper(command, 0) == name
}

fn is_ok(reply: &Value) -> bool {
    matches!(reply, Value::Line(b'+', text) if text == b"OK")
}
