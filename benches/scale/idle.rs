//! What a request costs on an idle server: pushes and pops, one at a time over one connection,
//! alternating with bare transactions that read the end of a queue and commit.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use foundationdb::Database;

use crate::bare::{Mix, Writer};
use crate::report::percentile_ms;
use crate::settings::Settings;
use crate::wire::Client;

/// Rounds that are not counted.
const WARM_UP_TURNS: usize = 50;

pub async fn run(
    settings: &Settings,
    address: SocketAddr,
    database: &Rc<Database>,
    root_prefix: &str,
) -> io::Result<()> {
    let mut client = Client::connect(address).await?;
    let payload = vec![b'.'; settings.payload_bytes];
    let mut writer = Writer::new(
        Rc::clone(database),
        root_prefix,
        0,
        1,
        settings.payload_bytes,
    );
    let push = Mix {
        list_pushes: 1.0,
        ..Mix::default()
    };
    let pop = Mix {
        list_pops: 1.0,
        ..Mix::default()
    };
    // Some elements, so that neither side ever runs out.
    for _ in 0..10 {
        client.command(&[b"RPUSH", b"queue:0", &payload]).await?;
        writer.run(push).await.map_err(io::Error::other)?;
    }
    let mut times_us: [Vec<u32>; 4] = Default::default();
    for turn in 0..WARM_UP_TURNS + settings.idle_turns {
        for (what, times_us) in times_us.iter_mut().enumerate() {
            let started = Instant::now();
            match what {
                0 => {
                    let reply = client.command(&[b"RPUSH", b"queue:0", &payload]).await?;
                    assert_eq!(reply.first(), Some(&b':'));
                }
                1 => drop(writer.run(push).await.map_err(io::Error::other)?),
                2 => {
                    let reply = client.command(&[b"LPOP", b"queue:0"]).await?;
                    assert_eq!(reply.first(), Some(&b'$'));
                }
                _ => assert!(writer.run(pop).await.map_err(io::Error::other)?),
            }
            if turn >= WARM_UP_TURNS {
                times_us.push(started.elapsed().as_micros() as u32);
            }
        }
    }
    println!();
    println!("Idle latency: one request at a time over one connection, in turns with a bare");
    println!("transaction that reads the end of a queue, writes the same rows and commits; ms");
    println!(
        "{:>7} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} | {:>5} {:>6}",
        "", "p50", "p95", "p99", "bare p50", "p95", "p99", "ratio", "target"
    );
    for times_us in &mut times_us {
        times_us.sort_unstable();
    }
    let [push, bare_push, pop, bare_pop] = &times_us;
    for (name, ours, bare) in [("push", push, bare_push), ("pop", pop, bare_pop)] {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|part| percentile_ms(ours, part));
        let [bare50, bare95, bare99] = [0.5, 0.95, 0.99].map(|part| percentile_ms(bare, part));
        println!(
            "{name:>7} {p50:>8.3} {p95:>8.3} {p99:>8.3} | {bare50:>8.3} {bare95:>8.3} {bare99:>8.3} | {:>5.2} {:>6}",
            p50 / bare50,
            "≤ 1.5"
        );
    }
    let flushed = client.command(&[b"FLUSHALL"]).await?;
    assert_eq!(flushed, b"+OK\r\n");
    Ok(())
}
