//! GPU jobs that need memory and cards, with the crate `redis`:
//! `cargo run --example gpu_jobs redis://127.0.0.1:6379`.

use redis::{Connection, RedisResult};

/// Tasks as TASK.TAKE with LEASE answers them: id, priority, tries, needs, payload, token.
type Taken = Option<Vec<(String, f64, i64, Vec<(String, f64)>, String, String)>>;

/// Three jobs; the lower the priority, the sooner.
pub fn add(connection: &mut Connection) -> RedisResult<()> {
    for (id, priority, gb, cards) in [
        ("train-a", 10, 40, 2),
        ("render-b", 20, 8, 1),
        ("render-c", 20, 8, 1),
    ] {
        redis::cmd("TASK.ADD")
            .arg(("gpu", priority, format!("{id}.json"), "ID", id))
            .arg(("MAXTRIES", 3, "NEEDS", "gb", gb, "cards", cards))
            .exec(connection)?;
    }
    Ok(())
}

/// Runs jobs that fit; ends when none has come for a while.
pub fn work(
    connection: &mut Connection,
    (gb, cards): (u32, u32),
    patience_ms: u32,
    mut run: impl FnMut(&str) -> Result<(), String>,
) -> RedisResult<()> {
    loop {
        let taken: Taken = redis::cmd("TASK.TAKE")
            .arg(("gpu", "HAVING", "gb", gb, "cards", cards))
            .arg(("LEASE", 60_000, "BLOCK", patience_ms))
            .query(connection)?;
        let Some(taken) = taken else {
            return Ok(());
        };
        for (id, _priority, tries, _needs, payload, token) in taken {
            match run(&payload) {
                Ok(()) => redis::cmd("TASK.ACK")
                    .arg(("gpu", id, "TOKEN", token))
                    .exec(connection)?,
                Err(_) => redis::cmd("TASK.NACK")
                    .arg(("gpu", id, "DELAY", 500 * tries, "TOKEN", token))
                    .exec(connection)?,
            }
        }
    }
}

/// Adds the jobs and does them on two machines, of which the small one fails once. Answers what
/// was done, in order.
pub fn jobs(connection: &mut Connection) -> RedisResult<Vec<String>> {
    let mut failures = vec!["render-b.json".to_owned()];
    let mut done = Vec::new();
    let mut run = |payload: &str| {
        if let Some(at) = failures.iter().position(|fails| fails == payload) {
            failures.remove(at);
            return Err("out of memory".to_owned());
        }
        done.push(payload.to_owned());
        Ok(())
    };
    add(connection)?;
    work(connection, (16, 1), 1_500, &mut run)?;
    work(connection, (80, 4), 100, &mut run)?;
    Ok(done)
}

// A test runs what is above.
#[allow(dead_code)]
fn main() -> RedisResult<()> {
    let url = std::env::args().nth(1);
    let client = redis::Client::open(url.as_deref().unwrap_or("redis://127.0.0.1:6379"))?;
    let mut connection = client.get_connection()?;
    for payload in jobs(&mut connection)? {
        println!("done: {payload}");
    }
    Ok(())
}
