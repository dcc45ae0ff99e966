//! The order of a batch's submissions.

use std::collections::HashMap;

use bytes::Bytes;

use super::invocation_of;
use crate::call::Submission;

/// With fewer submissions, there is nothing to reorder.
const SUBMISSIONS_MIN: usize = 3;

/// What the commands of a submission have in common: the number of their row, database and first key.
type Kind<'s> = (usize, u32, &'s Bytes);

/// Moves each submission next to the first one with commands of the same kind on the same key, so that they can be
/// coalesced. The clients of a batch wait for their replies concurrently, so their commands have no defined order yet.
/// Each client has one submission, whose commands keep their order.
pub(crate) fn bring_together(submissions: &mut [Submission]) {
    if submissions.len() < SUBMISSIONS_MIN {
        return;
    }
    let Some(places) = places(submissions) else {
        return;
    };
    // A stable sort by the position of the first submission of each kind.
    let mut places = places.into_iter();
    submissions.sort_by_cached_key(|_| places.next());
}

/// The new position of each submission. `None` if they are already in order.
fn places(submissions: &[Submission]) -> Option<Vec<usize>> {
    let mut first_of_kind: HashMap<Kind<'_>, usize> = HashMap::new();
    let mut places = Vec::with_capacity(submissions.len());
    let mut is_in_order = true;
    for (at, submission) in submissions.iter().enumerate() {
        let place = match kind_of(submission) {
            Some(kind) => *first_of_kind.entry(kind).or_insert(at),
            None => at,
        };
        is_in_order &= places.last().is_none_or(|before| *before <= place);
        places.push(place);
    }
    (!is_in_order).then_some(places)
}

fn kind_of(submission: &Submission) -> Option<Kind<'_>> {
    let mut kinds = submission.calls.iter().map(|call| {
        let invocation = invocation_of(call)?;
        invocation.row.coalescing?;
        let key = invocation.arguments.get(1)?;
        Some((invocation.row.id, invocation.database, key))
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unplanned;

    /// The order of submissions after [`bring_together`]. Semicolons separate the commands of one.
    fn brought_together(lines: &[&str]) -> Vec<String> {
        let submissions = lines.iter().map(|line| Submission {
            calls: line.split(';').map(unplanned).collect(),
            reply_bytes_max: usize::MAX,
            respond: None,
        });
        let mut submissions: Vec<Submission> = submissions.collect();
        bring_together(&mut submissions);
        let text = |submission: &Submission| {
            let calls = submission.calls.iter().filter_map(|call| call.arguments());
            let calls = calls.map(|words| {
                let words = words.iter().map(|word| String::from_utf8_lossy(word));
                words.collect::<Vec<_>>().join(" ")
            });
            calls.collect::<Vec<_>>().join(";")
        };
        submissions.iter().map(text).collect()
    }

    #[test]
    fn commands_of_one_kind_on_one_key_follow_the_first_of_them() {
        let lines = ["LPOP a", "LPUSH a 1", "LPOP b", "LPOP a", "LPUSH a 2"];
        let expected = ["LPOP a", "LPOP a", "LPUSH a 1", "LPUSH a 2", "LPOP b"];
        assert_eq!(brought_together(&lines), expected);
    }

    #[test]
    fn commands_that_never_coalesce_stay_where_they_are_among_the_others() {
        let lines = ["GET a", "LPOP a", "DEL a", "LPOP a", "GET a"];
        let expected = ["GET a", "LPOP a", "LPOP a", "DEL a", "GET a"];
        assert_eq!(brought_together(&lines), expected);
    }

    #[test]
    fn a_pipeline_moves_as_a_whole_and_only_if_its_commands_are_alike() {
        let lines = [
            "LPOP a",
            "LPUSH a 1;LPOP a",
            "LPUSH a 2",
            "LPOP a;LPOP a",
            "LPUSH a 3;LPUSH a 4",
        ];
        let expected = [
            "LPOP a",
            "LPOP a;LPOP a",
            "LPUSH a 1;LPOP a",
            "LPUSH a 2",
            "LPUSH a 3;LPUSH a 4",
        ];
        assert_eq!(brought_together(&lines), expected);
    }
}
