//! What commands will look at, told from their arguments alone, so that a batch can have it read
//! at once (`types::ahead`). What is wrong or missing here costs time and nothing else.

use bytes::Bytes;

use super::arguments::is_word;
use super::pops;
use super::row::Row;
use crate::layout::ValueType;
use crate::limits::AHEAD_MEMBERS_MAX;
use crate::types::ahead::Glance;
use crate::types::list::End;

/// What a command looks at in each of its keys.
pub fn of(row: &Row, arguments: &[Bytes]) -> Vec<(Bytes, Glance)> {
    let keys = row.key_indexes(arguments);
    let keys = keys.into_iter().filter_map(|at| arguments.get(at));
    let end = |from_end, count| Glance::End {
        value_type: ValueType::List,
        from_end,
        count,
        with_length: true,
    };
    let push = |from_end| end(from_end, 0);
    let pop = |from_end| end(from_end, 1);
    match row.name {
        "lpush" | "lpushx" => keys.map(|key| (key.clone(), push(false))).collect(),
        "rpush" | "rpushx" => keys.map(|key| (key.clone(), push(true))).collect(),
        "lmove" | "blmove" => {
            let is_right = |at: usize| {
                let word = arguments.get(at).map(|word| super::lists::end(word));
                matches!(word, Some(Ok(End::Right)))
            };
            keys.cloned()
                .zip([pop(is_right(3)), push(is_right(4))])
                .collect()
        }
        "rpoplpush" | "brpoplpush" => keys.cloned().zip([pop(true), push(false)]).collect(),
        "zadd" | "zincrby" => keys
            .map(|key| (key.clone(), Glance::Members(members(row, arguments))))
            .collect(),
        _ => {
            let glance = match pops::demand(row, arguments) {
                Some(demand) => Glance::End {
                    value_type: demand.value_type,
                    from_end: demand.from_end,
                    count: demand.count,
                    with_length: false,
                },
                None => Glance::Meta,
            };
            keys.map(|key| (key.clone(), glance.clone())).collect()
        }
    }
}

/// The members that ZADD or ZINCRBY names.
fn members(row: &Row, arguments: &[Bytes]) -> Vec<Bytes> {
    let options = ["nx", "xx", "gt", "lt", "ch", "incr"];
    let behind = arguments.get(2..).unwrap_or_default();
    let is_option = |word: &&Bytes| options.iter().any(|option| is_word(word, option));
    let skipped = match row.name {
        "zadd" => behind.iter().take_while(is_option).count(),
        _ => 0,
    };
    let pairs = behind.get(skipped..).unwrap_or_default().chunks_exact(2);
    pairs
        .filter_map(|pair| pair.get(1).cloned())
        .take(AHEAD_MEMBERS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table;

    fn of_line(line: &str) -> Vec<(String, Glance)> {
        let words = line.split(' ').map(str::to_owned).map(Bytes::from);
        let arguments: Vec<Bytes> = words.collect();
        let row = table::find(&arguments[0]).unwrap();
        of(row, &arguments)
            .into_iter()
            .map(|(key, glance)| (String::from_utf8_lossy(&key).into_owned(), glance))
            .collect()
    }

    fn pop(value_type: ValueType, from_end: bool, count: usize) -> Glance {
        Glance::End {
            value_type,
            from_end,
            count,
            with_length: false,
        }
    }

    fn at_end(from_end: bool, count: usize) -> Glance {
        Glance::End {
            value_type: ValueType::List,
            from_end,
            count,
            with_length: true,
        }
    }

    fn push(from_end: bool) -> Glance {
        at_end(from_end, 0)
    }

    #[test]
    fn pushes_look_at_their_end_and_pops_at_what_they_take() {
        for (line, glance) in [
            ("LPUSH q a b", push(false)),
            ("RPUSHX q a", push(true)),
            ("RPOP q 9", pop(ValueType::List, true, 9)),
            ("ZPOPMIN q 3", pop(ValueType::SortedSet, false, 3)),
            ("PQ.POPMIN q", pop(ValueType::PriorityQueue, false, 1)),
        ] {
            let expected = vec![("q".to_owned(), glance)];
            assert_eq!(of_line(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_with_several_keys_look_at_each() {
        let list = |from_end| pop(ValueType::List, from_end, 1);
        assert_eq!(
            of_line("LMOVE q r RIGHT LEFT"),
            [
                ("q".to_owned(), at_end(true, 1)),
                ("r".to_owned(), push(false))
            ]
        );
        assert_eq!(
            of_line("BLPOP q r 0"),
            [("q".to_owned(), list(false)), ("r".to_owned(), list(false))]
        );
        assert_eq!(
            of_line("DEL q r"),
            ["q", "r"].map(|key| (key.to_owned(), Glance::Meta))
        );
        assert!(of_line("FLUSHALL").is_empty());
    }

    #[test]
    fn additions_to_a_sorted_set_look_at_their_members() {
        let members = |names: &[&str]| {
            let names = names
                .iter()
                .map(|name| Bytes::copy_from_slice(name.as_bytes()));
            vec![("q".to_owned(), Glance::Members(names.collect()))]
        };
        assert_eq!(of_line("ZADD q 1 a 2 b"), members(&["a", "b"]));
        assert_eq!(of_line("ZADD q NX CH 1 a"), members(&["a"]));
        assert_eq!(of_line("ZINCRBY q 1 a"), members(&["a"]));
        assert_eq!(of_line("ZADD q NX 1"), members(&[]));
    }
}
