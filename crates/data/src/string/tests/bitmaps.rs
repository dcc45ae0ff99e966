//! Bitmap commands.

use super::*;
use quoin_base::random::{Random, SeededRandom};

fn integers(numbers: &[i64]) -> Reply {
    Reply::Array(numbers.iter().copied().map(Reply::Integer).collect())
}

#[test]
fn the_last_bit_of_the_longest_string_costs_one_piece() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("SETBIT k 4294967295 1"), Reply::Integer(0));
        assert_eq!(bench.data_rows(), 1);
        assert_eq!(bench.run("SETBIT k 4294967295 1"), Reply::Integer(1));
        assert_eq!(bench.run("GETBIT k 4294967295"), Reply::Integer(1));
        assert_eq!(bench.run("STRLEN k"), Reply::Integer(536_870_912));
        assert_eq!(bench.run("BITCOUNT k"), Reply::Integer(1));
        assert_eq!(bench.run("BITPOS k 1"), Reply::Integer(4_294_967_295));
        assert_eq!(bench.run("BITPOS k 0"), Reply::Integer(0));
        assert_eq!(bench.run("BITPOS k 0 -1"), Reply::Integer(4_294_967_288));
        assert_eq!(
            bench.run("BITPOS k 0 4294967295 -1 BIT"),
            Reply::Integer(-1)
        );
        let refused = error("ERR bit offset is not an integer or out of range");
        assert_eq!(bench.run("SETBIT k 4294967296 1"), refused);
        assert_eq!(bench.run("GETBIT k -1"), refused);
        let refused = error("ERR bit is not an integer or out of range");
        assert_eq!(bench.run("SETBIT k 1 2"), refused);
    });
}

#[test]
fn bits_are_counted_and_found_as_in_a_model() {
    on_both_stores(|bench| {
        let random = SeededRandom::new(3);
        for length in [1, 3, 900, 1_025, 16_384, 20_000, 50_000] {
            let mut model = vec![0_u8; length];
            for _ in 0..random.below(8) {
                let at = random.below(length as u64) as usize;
                let run = (random.below(20_000) as usize).min(length - at);
                model[at..at + run].fill([0x00, 0xff, 0x10][random.below(3) as usize]);
            }
            // No piece holds a part of zeros.
            bench.run_words(&[b"SET", b"k", &model]);
            let bit = |at: u64| model[(at / 8) as usize] & (0x80 >> (at % 8)) != 0;
            let bits = length as u64 * 8;
            for _ in 0..40 {
                let first = random.below(bits);
                let last = first + random.below(bits - first);
                let range = format!("{first} {last} BIT");
                let count = (first..=last).filter(|at| bit(*at)).count();
                assert_eq!(
                    bench.run(&format!("BITCOUNT k {range}")),
                    Reply::count(count)
                );
                for sought in [false, true] {
                    let found = (first..=last).find(|at| bit(*at) == sought);
                    let expected = found.map_or(-1, |at| at as i64);
                    let line = format!("BITPOS k {} {range}", i32::from(sought));
                    assert_eq!(bench.run(&line), Reply::Integer(expected), "{line}");
                }
            }
            let whole = (0..bits).find(|at| !bit(*at)).unwrap_or(bits);
            assert_eq!(bench.run("BITPOS k 0"), Reply::Integer(whole as i64));
        }
    });
}

#[test]
fn strings_are_combined_in_all_forms() {
    on_both_stores(|bench| {
        let random = SeededRandom::new(9);
        for lengths in [[3, 5], [1_000, 1_030], [20_000, 100], [40_000, 1_100_000]] {
            let strings = lengths.map(|length| -> Vec<u8> {
                (0..length).map(|_| random.next_u64() as u8).collect()
            });
            bench.run_words(&[b"SET", b"a", &strings[0]]);
            bench.run_words(&[b"SET", b"b", &strings[1]]);
            let longest = lengths.into_iter().max().unwrap();
            let byte = |which: usize, at: usize| strings[which].get(at).copied().unwrap_or(0);
            type Operation = fn(u8, u8) -> u8;
            let operations: [(&str, Operation); 3] = [
                ("AND", |a, b| a & b),
                ("OR", |a, b| a | b),
                ("XOR", |a, b| a ^ b),
            ];
            for (name, operation) in operations {
                // The target is a source too.
                bench.run("COPY a t REPLACE");
                let line = format!("BITOP {name} t t b nosuch t");
                let expected: Vec<u8> = (0..longest)
                    .map(|at| {
                        let (a, b) = (byte(0, at), byte(1, at));
                        operation(operation(operation(a, b), 0), a)
                    })
                    .collect();
                assert_eq!(bench.run(&line), Reply::count(longest));
                assert_eq!(bench.run("GET t"), Reply::bulk(expected), "{name}");
            }
            assert_eq!(bench.run("BITOP NOT t a"), Reply::count(lengths[0]));
            let expected: Vec<u8> = strings[0].iter().map(|byte| !byte).collect();
            assert_eq!(bench.run("GET t"), Reply::bulk(expected));
        }
        assert_eq!(bench.run("BITOP OR t nosuch"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS t"), Reply::Integer(0));
        assert_eq!(
            bench.run("BITOP NOT t a b"),
            error("ERR BITOP NOT must be called with a single source key.")
        );
    });
}

#[test]
fn a_combination_that_no_transaction_holds_changes_nothing() {
    let bench = Bench::cluster_like();
    bench.run("SETRANGE far 20000000 x");
    bench.run("SET t v");
    let refused = error(
        "ERR command needs more than one transaction of the store can hold; nothing was changed",
    );
    assert_eq!(bench.run("BITOP NOT t far"), refused);
    assert_eq!(bench.run("GET t"), bulk("v"));
    // Zeros take no space.
    assert_eq!(bench.run("BITOP OR t far"), Reply::Integer(20_000_001));
    assert_eq!(bench.run("GETRANGE t -2 -1"), bulk("\0x"));
}

#[test]
fn fields_are_read_added_and_written() {
    on_both_stores(|bench| {
        assert_eq!(
            bench.run("BITFIELD k INCRBY i5 100 1 GET u4 0"),
            integers(&[1, 0])
        );
        assert_eq!(
            bench.run("BITFIELD k SET u8 #1 200 OVERFLOW SAT INCRBY u8 #1 100 GET i8 8"),
            integers(&[0, 255, -1])
        );
        assert_eq!(
            bench.run("BITFIELD k OVERFLOW FAIL INCRBY u8 #1 1"),
            Reply::Array(vec![Reply::Null])
        );
        // A field on the border of two pieces, in a string that becomes long.
        let line = "BITFIELD k SET i64 131040 -2 GET i64 131040 GET u8 131064 GET u1 9999999";
        assert_eq!(bench.run(line), integers(&[0, -2, 255, 0]));
        assert_eq!(bench.run("STRLEN k"), Reply::Integer(16_388));
        assert_eq!(bench.run("BITFIELD_RO k GET i64 131040"), integers(&[-2]));
        assert_eq!(
            bench.run("BITFIELD_RO k SET u8 0 1"),
            error("ERR BITFIELD_RO only supports the GET subcommand")
        );
        assert_eq!(bench.run("BITFIELD k"), integers(&[]));
        let no_type = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                       supported but i64 is.";
        for wrong in ["u64", "i65", "x8", "i0", "u"] {
            assert_eq!(
                bench.run(&format!("BITFIELD k GET {wrong} 0")),
                error(no_type)
            );
        }
        assert_eq!(
            bench.run("BITFIELD k OVERFLOW NO GET u8 0"),
            error("ERR Invalid OVERFLOW type specified")
        );
    });
}

#[test]
fn a_field_that_fails_makes_room_but_is_no_change() {
    let bench = Bench::embedded();
    let line = "BITFIELD k OVERFLOW FAIL SET u8 16 256";
    assert_eq!(bench.run(line), Reply::Array(vec![Reply::Null]));
    assert_eq!(bench.run("GET k"), bulk("\0\0\0"));
}

#[test]
fn many_fields_over_many_pieces_are_written_once_each() {
    let bench = Bench::cluster_like();
    let mut line = "BITFIELD k".to_owned();
    // More pieces than the editor holds, twice, and reads far beyond the end of a string in
    // metadata.
    for round in 0..2 {
        for piece in 0..100 {
            line.push_str(&format!(" INCRBY u8 {} {}", piece * 131_072, piece + round));
        }
    }
    bench.run(&line);
    for piece in 0..100 {
        let line = format!("BITFIELD_RO k GET u8 {}", piece * 131_072);
        assert_eq!(bench.run(&line), integers(&[2 * piece + 1]));
    }
    let mut line = "BITFIELD small SET u8 0 7".to_owned();
    for piece in 0..100 {
        line.push_str(&format!(" GET u8 {}", piece * 131_072));
    }
    bench.run(&line);
    assert_eq!(bench.run("GET small"), bulk("\u{7}"));
}
