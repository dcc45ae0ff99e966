//! Measurements that benchmarks have in common.

use std::net::SocketAddr;

use crate::resp::Connection;

/// The median of some numbers. Sorts them.
pub(crate) fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Processor time that a server has used in all its threads, in microseconds.
pub(crate) fn used_cpu_us(address: SocketAddr) -> f64 {
    let mut connection = Connection::open(address).unwrap();
    let reply = connection.command(&["INFO", "cpu"]).unwrap();
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let seconds_of = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    };
    (seconds_of("used_cpu_sys:") + seconds_of("used_cpu_user:")) * 1e6
}
