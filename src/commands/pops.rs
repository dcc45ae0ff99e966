//! What commands pop, told from their arguments alone, so that the executor can have other
//! servers pop for them (`types::staging`). Where nothing is said here a command is run as it is.

use bytes::Bytes;

use super::multi_pop::MultiPop;
use super::row::Row;
use crate::layout::ValueType;
use crate::limits::STAGED_COUNT_MAX;
use crate::number::parse_i64;
use crate::types::list::End;
use crate::types::sorted_set::Extreme;
use crate::types::staging::Demand;

/// The one queue from which a command with these arguments pops, and how much at most. `None` for
/// commands that do anything else, that look at several queues, or whose arguments are wrong.
pub fn of(row: &Row, arguments: &[Bytes]) -> Option<(Bytes, Demand)> {
    let key = key(row, arguments)?;
    Some((key.clone(), demand(row, arguments)?))
}

/// The key that a command pops from, where there is but one.
fn key<'a>(row: &Row, arguments: &'a [Bytes]) -> Option<&'a Bytes> {
    let keys = row.key_indexes(arguments);
    match keys.as_slice() {
        [key] => arguments.get(*key),
        _ => None,
    }
}

/// From which end of a queue of which type a command pops, and how much at most, whichever of its
/// keys it is.
pub fn demand(row: &Row, arguments: &[Bytes]) -> Option<Demand> {
    let (value_type, from_end, count) = match row.name {
        "lpop" => (ValueType::List, false, count_at(arguments, 2)?),
        "rpop" => (ValueType::List, true, count_at(arguments, 2)?),
        "blpop" => (ValueType::List, false, 1),
        "brpop" => (ValueType::List, true, 1),
        "lmpop" | "blmpop" => {
            let at = if row.name == "lmpop" { 1 } else { 2 };
            let pop = MultiPop::parse(arguments, at, super::lists::end).ok()?;
            (ValueType::List, pop.end == End::Right, pop.limit)
        }
        "zpopmin" => (ValueType::SortedSet, false, count_at(arguments, 2)?),
        "zpopmax" => (ValueType::SortedSet, true, count_at(arguments, 2)?),
        "bzpopmin" => (ValueType::SortedSet, false, 1),
        "bzpopmax" => (ValueType::SortedSet, true, 1),
        "zmpop" | "bzmpop" => {
            let at = if row.name == "zmpop" { 1 } else { 2 };
            let pop = MultiPop::parse(arguments, at, super::sorted_sets::pop::extreme).ok()?;
            (ValueType::SortedSet, pop.end == Extreme::Max, pop.limit)
        }
        "pq.popmin" => (ValueType::PriorityQueue, false, count_at(arguments, 2)?),
        "pq.popmax" => (ValueType::PriorityQueue, true, count_at(arguments, 2)?),
        "pq.bpopmin" => (ValueType::PriorityQueue, false, 1),
        "pq.bpopmax" => (ValueType::PriorityQueue, true, 1),
        // LMOVE and its like may fail for what they move to, after others have popped behind.
        _ => return None,
    };
    (count <= STAGED_COUNT_MAX).then_some(Demand {
        value_type,
        from_end,
        count,
    })
}

/// A count that may be missing. One of 0 only asks whether there is something.
fn count_at(arguments: &[Bytes], at: usize) -> Option<usize> {
    match arguments.get(at) {
        None => Some(1),
        Some(word) => usize::try_from(parse_i64(word)?)
            .ok()
            .filter(|count| *count > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::flags::Flags;
    use crate::commands::table;

    fn of_line(line: &str) -> Option<(Bytes, Demand)> {
        let words = line.split(' ').map(str::to_owned).map(Bytes::from);
        let arguments: Vec<Bytes> = words.collect();
        let row = table::find(&arguments[0]).unwrap();
        of(row, &arguments)
    }

    #[test]
    fn a_command_says_which_end_of_what_it_pops() {
        for (line, value_type, from_end, count) in [
            ("LPOP q", ValueType::List, false, 1),
            ("RPOP q 7", ValueType::List, true, 7),
            ("LMPOP 1 q RIGHT COUNT 3", ValueType::List, true, 3),
            ("BLMPOP 0 1 q LEFT", ValueType::List, false, 1),
            ("BRPOP q 0", ValueType::List, true, 1),
            ("ZPOPMAX q 2", ValueType::SortedSet, true, 2),
            ("BZMPOP 0 1 q MIN COUNT 9", ValueType::SortedSet, false, 9),
            ("BZPOPMIN q 0", ValueType::SortedSet, false, 1),
            ("PQ.POPMIN q 5", ValueType::PriorityQueue, false, 5),
            ("PQ.BPOPMAX q 0", ValueType::PriorityQueue, true, 1),
        ] {
            let demand = Demand {
                value_type,
                from_end,
                count,
            };
            let expected = Some((Bytes::from_static(b"q"), demand));
            assert_eq!(of_line(line), expected, "{line}");
        }
    }

    #[test]
    fn what_looks_at_more_than_one_queue_or_is_wrong_pops_nothing_known() {
        for line in [
            "BLPOP q other 0",
            "LMOVE q other RIGHT LEFT",
            "LPOP q 1025",
            "LMPOP 2 q other LEFT",
            "LPOP q 0",
            "LPOP q -1",
            "LPOP q x",
            "LMPOP 1 q NOWHERE",
            "LPUSH q x",
            "LRANGE q 0 -1",
            "TASK.TAKE q",
        ] {
            assert_eq!(of_line(line), None, "{line}");
        }
    }

    #[test]
    fn every_command_named_here_is_a_command_that_writes() {
        let source = include_str!("pops.rs");
        let names = source.split("#[cfg(test)]").next().unwrap_or_default();
        let mut count = 0;
        for row in table::commands() {
            if names.contains(&format!("\"{}\"", row.name)) {
                assert!(row.flags.contains(Flags::WRITE), "{}", row.name);
                count += 1;
            }
        }
        assert_eq!(count, 16);
    }
}
