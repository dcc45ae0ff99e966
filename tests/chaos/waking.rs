//! Once all faults are healed, what is added through any server wakes a client of any other.

use std::thread;
use std::time::{Duration, Instant};

use crate::fleet::Fleet;
use crate::resp::Connection;
use crate::workers::texts;

/// Far more than it takes, and less than the renewal of a watch that was lost.
const LATE: Duration = Duration::from_secs(5);

/// `{}` stands for the number of the round.
const PAIRS: [[&str; 2]; 5] = [
    ["BLPOP fifo:0 fifo:1 15", "RPUSH fifo:0 element"],
    ["BZPOPMIN sorted:1 sorted:0 15", "ZADD sorted:0 1 element"],
    ["PQ.BPOPMIN priority:0 15", "PQ.PUSH priority:0 1 element"],
    [
        "XREADGROUP GROUP g0 woken BLOCK 15000 STREAMS stream:0 >",
        "XADD stream:0 * element 1",
    ],
    [
        "XREAD BLOCK 15000 STREAMS followed:{} 0",
        "XADD followed:{} * element 1",
    ],
];

/// Waits at each server for what is pushed through each, on empty queues.
pub fn check(fleet: &Fleet) -> Result<(), String> {
    let turns = fleet.len().pow(2).max(PAIRS.len());
    for (turn, [wait, push]) in PAIRS.iter().cycle().take(turns).enumerate() {
        let (waiting, pushing) = (turn % fleet.len(), turn / fleet.len() % fleet.len());
        let [wait, push] = [wait, push].map(|text| text.replace("{}", &turn.to_string()));
        let late = hand_over(fleet, [waiting, pushing], &wait, &push)?;
        if late > LATE {
            return Err(format!(
                "{push:?} at server {pushing} woke {wait:?} at server {waiting} after {late:?}"
            ));
        }
    }
    Ok(())
}

/// Returns how long it took from the push to the end of the wait.
fn hand_over(
    fleet: &Fleet,
    [waiting, pushing]: [usize; 2],
    wait: &str,
    push: &str,
) -> Result<Duration, String> {
    let run = |connection: &mut Connection, line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        connection.command(&words).unwrap()
    };
    let mut connections = fleet.connections();
    let mut pusher = connections.remove(pushing);
    let mut waiter = fleet.connections().remove(waiting);
    thread::scope(|scope| {
        let waiter = scope.spawn(move || (run(&mut waiter, wait), Instant::now()));
        // The rest does not depend on whether it waits by then.
        thread::sleep(Duration::from_millis(30));
        let pushed = Instant::now();
        run(&mut pusher, push);
        let (reply, woken) = waiter.join().unwrap();
        if texts(&reply).iter().any(|text| text == "element") {
            Ok(woken.saturating_duration_since(pushed))
        } else {
            Err(format!(
                "{wait:?} at server {waiting} was answered {reply:?} after {push:?} at {pushing}"
            ))
        }
    })
}
