//! Ranks in a set and in a list that two servers write to while both maintain their blocks.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use quoin_base::random::{Random, SeededRandom};
use quoin_data::keyspace::key::ClientKey;
use quoin_layout::{Id, KeyName, Meta};
use quoin_resp::reply::Reply;
use quoin_store::Isolation;

use crate::bench::{Bench, Server, bulk, texts};

const MEMBERS: u64 = 16_000;
const CLIENTS: u64 = 6;
const PIPELINES: usize = 40;

fn fill(bench: &Bench) {
    let random = SeededRandom::new(1);
    let members: Vec<String> = (0..MEMBERS)
        .map(|member| format!("{} m{member}", random.below(1_000)))
        .collect();
    for some in members.chunks(1_000) {
        bench.run(0, &format!("ZADD z {}", some.join(" ")));
    }
}

/// Writes in few places, where blocks are created and removed.
fn change(random: &SeededRandom, client: u64) -> String {
    let (member, score) = (random.below(MEMBERS), 300 + random.below(3));
    match random.below(10) {
        0 => "ZPOPMIN z 5".to_owned(),
        1 => format!("ZREM z m{member}"),
        2 => format!("ZINCRBY z 1 m{member}"),
        3 => format!("ZREMRANGEBYRANK z {} {}", 10 * client, 10 * client + 2),
        4 => format!("ZADD z 5000 m{member}"),
        _ => format!("ZADD z {score} {client}-{member}"),
    }
}

/// Pushes, pops, and changes in the middle.
fn change_list(random: &SeededRandom, client: u64) -> String {
    let element = random.below(MEMBERS);
    match random.below(24) {
        0 => format!("LINSERT l BEFORE m{element} {client}-{element}"),
        1 => format!("LREM l 1 m{element}"),
        2 => format!("LSET l {} {client}-{element}", 3_000 + element / 4),
        3..=7 => format!("LPOP l {}", 1 + random.below(30)),
        8..=10 => format!("RPOP l {}", 1 + random.below(30)),
        11..=13 => "LMOVE l l RIGHT LEFT".to_owned(),
        _ => {
            let elements: Vec<String> = (0..1 + random.below(20))
                .map(|number| format!("{client}-{number}-{element:0300}"))
                .collect();
            let push = if random.below(2) == 0 {
                "LPUSH"
            } else {
                "RPUSH"
            };
            format!("{push} l {}", elements.join(" "))
        }
    }
}

async fn write(server: &Server, client: u64, change: fn(&SeededRandom, u64) -> String) {
    let random = SeededRandom::new(client);
    for _ in 0..PIPELINES {
        let lines: Vec<String> = (0..25).map(|_| change(&random, client)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for reply in server.pipeline(&lines).await {
            assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
        }
    }
}

/// Makes both servers maintain the blocks repeatedly, although no command has read much.
async fn want(bench: &Bench, name: &'static str) {
    loop {
        for server in &bench.servers {
            let key = Bytes::from_static(name.as_bytes());
            let key = ClientKey { database: 0, key };
            server.0.environment().rank_wants.add(key);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn levels(server: &Server, name: &'static str) -> u8 {
    let layout = server.0.environment().layout.clone();
    let read = server.0.read(0, move |context| {
        let namespace = Id {
            instance: 0,
            sequence: 0,
        };
        let name = KeyName::new(&Bytes::from_static(name.as_bytes()));
        let key = layout.meta_key(namespace, &name);
        Box::pin(async move {
            let row = context.transaction.get(&key, Isolation::Snapshot).await?;
            Ok(row.and_then(|row| Meta::decode(&row).ok()))
        })
    });
    read.await.unwrap().map_or(0, |meta| meta.rank_levels)
}

/// Makes clients of both servers write while both maintain blocks.
fn write_beside_upkeep(
    bench: &Bench,
    name: &'static str,
    change: fn(&SeededRandom, u64) -> String,
) {
    let reapers = [bench.reap(0), bench.reap(1)];
    bench.block_on(async {
        let writes =
            (0..CLIENTS).map(|client| write(&bench.servers[client as usize % 2], client, change));
        tokio::select! {
            _ = join_all(writes) => {}
            () = want(bench, name) => {}
        }
        // Time for unfinished pieces.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let [one, other] = reapers;
        join(one.stop(), other.stop()).await;
        assert!(levels(&bench.servers[0], name).await > 0);
    });
}

pub fn ranks_stay_right_while_both_servers_write_and_look_after_blocks(bench: &Bench) {
    fill(bench);
    write_beside_upkeep(bench, "z", change);
    let members = texts(&bench.run(0, "ZRANGE z 0 -1"));
    assert_eq!(bench.run(1, "ZCARD z"), Reply::count(members.len()));
    bench.block_on(async {
        for (rank, member) in members.iter().enumerate().step_by(29) {
            let server = &bench.servers[rank % 2];
            let reply = server.run(&format!("ZRANK z {member}")).await;
            assert_eq!(reply, Reply::count(rank), "{member}");
            let reply = server.run(&format!("ZRANGE z {rank} {rank}")).await;
            assert_eq!(texts(&reply), std::slice::from_ref(member));
        }
    });
}

pub fn indexes_stay_right_while_both_servers_write_and_look_after_blocks(bench: &Bench) {
    let elements: Vec<String> = (0..MEMBERS).map(|element| format!("m{element}")).collect();
    for some in elements.chunks(50) {
        bench.run(0, &format!("RPUSH l {}", some.join(" ")));
    }
    write_beside_upkeep(bench, "l", change_list);
    let elements = texts(&bench.run(0, "LRANGE l 0 -1"));
    assert_eq!(bench.run(1, "LLEN l"), Reply::count(elements.len()));
    bench.block_on(async {
        for (index, element) in elements.iter().enumerate().step_by(29) {
            let server = &bench.servers[index % 2];
            let reply = server.run(&format!("LINDEX l {index}")).await;
            assert_eq!(reply, bulk(element), "{index}");
        }
    });
}
