//! Commands on streams that wait. See `script` for how these are written.

use crate::script::play;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
const NO_GROUP: &str =
    "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option|";

#[test]
fn what_is_last_is_looked_up_once() {
    play(
        "a: XADD s 1-0 n 1 => $3|1-0|
         b> XREAD BLOCK 0 STREAMS s $
         c> XREAD BLOCK 0 COUNT 1 STREAMS s 1
         a: XADD s 2-0 n 2 => $3|2-0|
         b< *1|*2|$1|s|*1|*2|$3|2-0|*2|$1|n|$1|2|
         c< *1|*2|$1|s|*1|*2|$3|2-0|*2|$1|n|$1|2|
         b> XREAD BLOCK 0 STREAMS s $
         a: MULTI => +OK|
         a: XADD s 3-0 n 3 => +QUEUED|
         a: XADD s 4-0 n 4 => +QUEUED|
         a: EXEC => *2|$3|3-0|$3|4-0|
         b< *1|*2|$1|s|*2|*2|$3|3-0|*2|$1|n|$1|3|*2|$3|4-0|*2|$1|n|$1|4|",
    );
}

#[test]
fn several_streams_are_waited_for() {
    play(
        "a: XADD s 1-0 n 1 => $3|1-0|
         b> XREAD BLOCK 0 STREAMS r s t $ $ 0
         a: XADD t 5-0 n 5 => $3|5-0|
         b< *1|*2|$1|t|*1|*2|$3|5-0|*2|$1|n|$1|5|
         b> XREAD BLOCK 0 STREAMS r s t $ $ $
         a: XADD s 2-0 n 2 => $3|2-0|
         b< *1|*2|$1|s|*1|*2|$3|2-0|*2|$1|n|$1|2|
         b: XREAD BLOCK 10 STREAMS r s t $ $ $ => *-1|
         b: HELLO 3 => *
         b: XREAD BLOCK 10 STREAMS r s t $ $ $ => _|
         b> XREAD BLOCK 0 STREAMS r s $ $
         a: XADD r 1-1 n 1 => $3|1-1|
         b< %1|$1|r|*1|*2|$3|1-1|*2|$1|n|$1|1|",
    );
}

#[test]
fn a_reader_waits_on_when_its_stream_goes_or_becomes_another_key() {
    play(
        "a: XADD s 5-0 n 5 => $3|5-0|
         b> XREAD BLOCK 0 STREAMS s $
         a: DEL s => :1|
         a: SET s x => +OK|
         b.
         a: DEL s => :1|
         a: XADD s 1-0 n 1 => $3|1-0|
         b.
         a: XADD s 6-0 n 6 => $3|6-0|
         b< *1|*2|$1|s|*1|*2|$3|6-0|*2|$1|n|$1|6|",
    );
}

#[test]
fn consumers_hear_that_their_group_is_gone() {
    for line in [
        "XGROUP DESTROY s g => :1|",
        "DEL s => :1|",
        "RENAME s t => +OK|",
    ] {
        play(&format!(
            "a: XGROUP CREATE s g 0 MKSTREAM => +OK|
             b> XREADGROUP GROUP g b BLOCK 0 STREAMS s >
             c> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
             a: {line}
             b< {NO_GROUP}
             7.0=> -*
             c< {NO_GROUP}
             7.0=> -*
             b: PING => +PONG|"
        ));
    }
}

#[test]
fn consumers_hear_that_their_stream_has_become_another_key() {
    play(&format!(
        "a: XGROUP CREATE s g 0 MKSTREAM => +OK|
         b> XREADGROUP GROUP g b BLOCK 0 STREAMS s >
         a: SET s x => +OK|
         b< {WRONG_TYPE}
         7.0=> -*
         a: DEL s => :1|
         a: RPUSH l x => :1|
         a: XGROUP CREATE s g 0 MKSTREAM => +OK|
         b> XREADGROUP GROUP g b BLOCK 0 STREAMS s >
         a: RENAME l s => +OK|
         b< {WRONG_TYPE}
         7.0=> -*"
    ));
}

#[test]
fn consumers_of_a_group_take_turns_and_groups_do_not() {
    play(
        "a: XGROUP CREATE s g 0 MKSTREAM => +OK|
         a: XGROUP CREATE s h 0 => +OK|
         b> XREADGROUP GROUP g b BLOCK 0 COUNT 1 STREAMS s >
         c> XREADGROUP GROUP g c BLOCK 0 COUNT 1 STREAMS s >
         d> XREADGROUP GROUP h d BLOCK 0 COUNT 1 STREAMS s >
         a: XADD s 1-0 n 1 => $3|1-0|
         b< *1|*2|$1|s|*1|*2|$3|1-0|*2|$1|n|$1|1|
         d< *1|*2|$1|s|*1|*2|$3|1-0|*2|$1|n|$1|1|
         c.
         a: XADD s 2-0 n 2 => $3|2-0|
         c< *1|*2|$1|s|*1|*2|$3|2-0|*2|$1|n|$1|2|
         b: XREADGROUP GROUP g b BLOCK 0 STREAMS s 0 => *1|*2|$1|s|*1|*2|$3|1-0|*2|$1|n|$1|1|",
    );
}

#[test]
fn a_consumer_that_waits_for_several_streams_needs_all_of_them() {
    play(
        "a: XGROUP CREATE s g 0 MKSTREAM => +OK|
         a: XGROUP CREATE t g 0 MKSTREAM => +OK|
         b> XREADGROUP GROUP g b BLOCK 0 STREAMS s t > >
         a: XADD t 1-0 n 1 => $3|1-0|
         b< *1|*2|$1|t|*1|*2|$3|1-0|*2|$1|n|$1|1|
         b> XREADGROUP GROUP g b BLOCK 0 STREAMS s t > >
         a: XGROUP DESTROY t g => :1|
         b< -NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option|
         7.0=> -*",
    );
}
