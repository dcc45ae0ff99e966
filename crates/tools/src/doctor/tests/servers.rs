//! Rows of servers that share the store.

use super::*;
use quoin_data::cluster::roster::write_own;
use quoin_layout::{ServerRow, encode_choice};

fn row(number: u64) -> ServerRow {
    ServerRow {
        ip: format!("10.0.0.{number}"),
        port: 6379,
        version: "0.1.0".to_owned(),
        ..ServerRow::default()
    }
}

#[test]
fn a_server_without_a_sign_of_life_is_told_and_its_row_removed() {
    let bench = Bench::cluster_like();
    let found = lines(&bench, CHECK);
    assert_eq!(line(&found, "servers").text, "none shares the store");
    change(&bench, |transaction, layout| {
        write_own(transaction, layout, 90, &row(1));
        transaction.set(&layout.choice_key(b"mymaster"), &encode_choice(90));
    });
    let found = lines(&bench, CHECK);
    let found = line(&found, "servers");
    assert_eq!(found.level, Level::Warn);
    assert!(
        found.text.starts_with(
            "none is alive; 1 name has a chosen server; 1 shows no sign of life (10.0.0.1:6379 (0.1.0))"
        ),
        "{found}"
    );
    let found = lines(&bench, REPAIR);
    assert_eq!(line(&found, "servers").level, Level::Ok);
    let found = lines(&bench, CHECK);
    let found = line(&found, "servers");
    assert_eq!(found.text, "none is alive; 1 name has a chosen server");
}

#[test]
fn a_row_that_cannot_be_read_is_left_alone() {
    let bench = Bench::cluster_like();
    change(&bench, |transaction, layout| {
        transaction.set(&layout.server_key(90), b"\xffnewer");
    });
    for options in [CHECK, REPAIR] {
        let found = lines(&bench, options);
        let found = line(&found, "servers");
        assert_eq!(found.level, Level::Warn);
        assert!(
            found.text.contains("1 row is from a newer Quoin"),
            "{found}"
        );
    }
}

#[test]
fn servers_that_live_are_named() {
    let bench = Bench::cluster_like();
    change(&bench, |transaction, layout| {
        write_own(transaction, layout, 90, &row(1));
    });
    let target = DoctorTarget {
        store: &*bench.store,
        layout: Layout::new("test"),
        clock: bench.clock.clone(),
        random: random(),
        repairs: false,
        is_deep: false,
        is_offline: false,
        is_standby: false,
        message_grace: Duration::from_millis(20),
        progress: ProgressLine::new(),
        shown: OnceCell::new(),
    };
    let mut found = Vec::new();
    let beating = async {
        for beat in 1.. {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let transaction = bench.store.begin_write().unwrap();
            let beating = ServerRow { beat, ..row(1) };
            write_own(&*transaction, &target.layout, 90, &beating);
            transaction.commit().await.unwrap();
        }
    };
    let mut report = |line: &Line| found.push(line.clone());
    bench.block_on(async {
        tokio::select! {
            () = examine(&target, &mut report) => {}
            () = beating => {}
        }
    });
    let found = line(&found, "servers");
    assert_eq!(
        (found.level, found.text.as_str()),
        (Level::Ok, "1 is alive: 10.0.0.1:6379 (0.1.0)")
    );
}
