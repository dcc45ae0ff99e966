//! Random commands on a hash with fields that expire, compared with a map, while time passes and
//! background work runs.

use std::collections::BTreeMap;

use bytes::Bytes;
use quoin_base::clock::Clock;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::Bench;
use quoin_layout::{FieldValue, Space};
use quoin_resp::reply::Reply;

use super::expiry::{rows_in, run_dry};

/// Values and expiries, of the fields that have not expired.
type Model = BTreeMap<String, (String, Option<i64>)>;

struct Run<'b> {
    bench: &'b Bench,
    random: SeededRandom,
    model: Model,
    /// The number of fields that random commands choose from.
    fields: u64,
    key: String,
    keys: u64,
}

impl Run<'_> {
    fn now_ms(&self) -> i64 {
        self.bench.clock.now_ms()
    }

    fn below(&self, limit: u64) -> i64 {
        i64::try_from(self.random.below(limit)).unwrap()
    }

    /// Distinct fields, a few.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..=self.below(4))
            .map(|_| format!("f{}", self.below(self.fields)))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// A time that is rarely now.
    fn ahead_ms(&self) -> i64 {
        match self.below(10) {
            0 => 0,
            1 => 10_000_000 + self.below(1_000),
            _ => self.below(2_000),
        }
    }

    fn run(&self, line: &str) -> Reply {
        self.bench.run(line)
    }

    fn forget_expired(&mut self) {
        let now_ms = self.now_ms();
        self.model
            .retain(|_, (_, at_ms)| at_ms.is_none_or(|at_ms| at_ms > now_ms));
    }

    fn step(&mut self) {
        let key = self.key.clone();
        let names = self.names();
        let listed = format!("FIELDS {} {}", names.len(), names.join(" "));
        let value = format!("v{}", self.below(1_000));
        let values: Vec<Reply> = { names.iter() }
            .map(|name| match self.model.get(name) {
                Some((value, _)) => Reply::Bulk(value.clone().into()),
                None => Reply::Null,
            })
            .collect();
        match self.below(12) {
            0 | 1 => {
                let pairs: String = names
                    .iter()
                    .map(|name| format!(" {name} {value}"))
                    .collect();
                let new = names.iter().filter(|name| !self.model.contains_key(*name));
                let new = Reply::count(new.count());
                assert_eq!(self.run(&format!("HSET {key}{pairs}")), new);
                for name in names {
                    self.model.insert(name, (value.clone(), None));
                }
            }
            2 | 3 => {
                let at_ms = self.now_ms() + self.ahead_ms();
                let condition = ["", "NX", "XX", "GT", "LT"][self.random.below(5) as usize];
                let line = format!("HPEXPIREAT {key} {at_ms} {condition} {listed}");
                let codes = names.iter().map(|name| self.expire(name, at_ms, condition));
                let codes: Vec<Reply> = codes.collect::<Vec<_>>();
                assert_eq!(self.run(&line), Reply::Array(codes), "{line}");
                self.set_at(&names, at_ms, condition);
            }
            4 => {
                let codes = names.iter().map(|name| match self.model.get(name) {
                    None => -2,
                    Some((_, None)) => -1,
                    Some(_) => 1,
                });
                let codes = codes.map(Reply::Integer).collect();
                assert_eq!(
                    self.run(&format!("HPERSIST {key} {listed}")),
                    Reply::Array(codes)
                );
                for name in names {
                    self.model.entry(name).and_modify(|field| field.1 = None);
                }
            }
            5 => {
                let live = names
                    .iter()
                    .filter(|name| self.model.remove(*name).is_some());
                let live = live.count() as i64;
                let Reply::Integer(removed) = self.run(&format!("HDEL {key} {}", names.join(" ")))
                else {
                    panic!("no number");
                };
                // It may count some that have expired.
                assert!((live..=names.len() as i64).contains(&removed), "{removed}");
            }
            6 => {
                assert_eq!(
                    self.run(&format!("HGETDEL {key} {listed}")),
                    Reply::Array(values)
                );
                self.model.retain(|name, _| !names.contains(name));
            }
            7 => {
                let at_ms = self.now_ms() + self.ahead_ms();
                let line = format!("HGETEX {key} PXAT {at_ms} {listed}");
                assert_eq!(self.run(&line), Reply::Array(values));
                self.set_at(&names, at_ms, "");
            }
            8 | 9 => {
                let pairs: Vec<String> =
                    names.iter().map(|name| format!("{name} {value}")).collect();
                let (at_ms, keeps) = (self.now_ms() + self.ahead_ms(), self.below(2) == 0);
                let expiry = match keeps {
                    true => "KEEPTTL".to_owned(),
                    false => format!("PXAT {at_ms}"),
                };
                let condition = ["", "FNX", "FXX"][self.random.below(3) as usize];
                let exist = names
                    .iter()
                    .filter(|name| self.model.contains_key(*name))
                    .count();
                let is_set = match condition {
                    "FNX" => exist == 0,
                    "FXX" => exist == names.len(),
                    _ => true,
                };
                let line = format!(
                    "HSETEX {key} {condition} {expiry} FIELDS {} {}",
                    names.len(),
                    pairs.join(" ")
                );
                assert_eq!(self.run(&line), Reply::Integer(is_set.into()), "{line}");
                if is_set {
                    for name in &names {
                        let kept = self.model.get(name).and_then(|field| field.1);
                        let at_ms = if keeps { kept } else { Some(at_ms) };
                        self.model.insert(name.clone(), (value.clone(), at_ms));
                    }
                }
            }
            10 => {
                self.keys += 1;
                let to = format!("h{}", self.keys);
                if self.model.is_empty() {
                    // It may still exist, with fields that have expired.
                    return;
                }
                match self.below(3) {
                    0 => assert_eq!(self.run(&format!("RENAME {key} {to}")), Reply::OK),
                    1 => {
                        let copied = self.run(&format!("COPY {key} {to}"));
                        assert_eq!(copied, Reply::Integer(1));
                    }
                    _ => {
                        let Reply::Bulk(payload) = self.run(&format!("DUMP {key}")) else {
                            panic!("no payload");
                        };
                        let words: [&[u8]; 4] = [b"RESTORE", to.as_bytes(), b"0", &payload];
                        assert_eq!(self.bench.run_words(&words), Reply::OK);
                    }
                }
                self.run(&format!("DEL {key}"));
                self.key = to;
            }
            _ => self.bench.clock.advance_ms(self.below(700)),
        }
        self.forget_expired();
    }

    /// The code that HPEXPIREAT returns for a field.
    fn expire(&self, name: &String, at_ms: i64, condition: &str) -> Reply {
        Reply::Integer(match self.model.get(name) {
            None => -2,
            Some((_, present)) if !allows(*present, at_ms, condition) => 0,
            Some(_) if at_ms <= self.now_ms() => 2,
            Some(_) => 1,
        })
    }

    fn set_at(&mut self, names: &[String], at_ms: i64, condition: &str) {
        for name in names {
            if let Some(field) = self.model.get_mut(name)
                && allows(field.1, at_ms, condition)
            {
                field.1 = Some(at_ms);
            }
        }
    }

    fn check(&self) {
        let key = &self.key;
        let Reply::Map(pairs) = self.run(&format!("HGETALL {key}")) else {
            panic!("no map");
        };
        let text = |reply: &Reply| match reply {
            Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        let found: BTreeMap<String, String> = { pairs.iter() }
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let model = self.model.iter();
        let model: BTreeMap<String, String> = model
            .map(|(name, (value, _))| (name.clone(), value.clone()))
            .collect();
        assert_eq!(found, model);
        let names: Vec<&String> = self.model.keys().collect();
        if let Some(first) = names.first() {
            let ttl = self.run(&format!("HPEXPIRETIME {key} FIELDS 1 {first}"));
            let expected = self.model[*first].1.unwrap_or(-1);
            assert_eq!(ttl, Reply::Array(vec![Reply::Integer(expected)]));
        }
        let Reply::Array(drawn) = self.run(&format!("HRANDFIELD {key} 3")) else {
            panic!("no fields");
        };
        assert_eq!(drawn.len(), names.len().min(3));
        let Reply::Array(repeated) = self.run(&format!("HRANDFIELD {key} -7")) else {
            panic!("no fields");
        };
        assert_eq!(repeated.len(), if names.is_empty() { 0 } else { 7 });
        for one in drawn.iter().chain(&repeated) {
            assert!(self.model.contains_key(&text(one)), "{one:?}");
        }
        let Reply::Integer(length) = self.run(&format!("HLEN {key}")) else {
            panic!("no number");
        };
        assert!(length >= names.len() as i64, "{length}");
        self.check_rows();
    }

    /// Each field that expires has a row by expiry and vice versa, and background work will find
    /// it.
    fn check_rows(&self) {
        let layout = &self.bench.executor.environment().layout;
        let rows: BTreeMap<Bytes, Bytes> = rows_in(self.bench, Space::Data).into_iter().collect();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for (row_key, value) in &rows {
            let (data, _) = layout.read_data_key(row_key).unwrap();
            if let Ok((at_ms, field)) = layout.read_field_expiry_key(data, row_key) {
                found.push((at_ms, Bytes::from(field)));
            } else if let Some(at_ms) = FieldValue::decode(value).unwrap().expire_at_ms {
                expected.push((at_ms, row_key.clone()));
            }
        }
        expected.sort();
        // The embedded store's trash has rows too, and clears one of two related rows before the
        // other.
        if rows_in(self.bench, Space::Trash).is_empty() {
            found.sort();
            assert_eq!(found, expected);
        }
    }
}

fn allows(present: Option<i64>, at_ms: i64, condition: &str) -> bool {
    match condition {
        "NX" => present.is_none(),
        "XX" => present.is_some(),
        "GT" => present.is_some_and(|present| at_ms > present),
        "LT" => present.is_none_or(|present| at_ms < present),
        _ => true,
    }
}

fn run(bench: &Bench, seed: u64, fields: u64) {
    let mut run = Run {
        bench,
        random: SeededRandom::new(seed),
        model: Model::new(),
        fields,
        key: "h0".to_owned(),
        keys: 0,
    };
    for _ in 0..150 {
        run.step();
        run.check();
        if run.below(6) == 0 {
            run_dry(bench);
            // Timers are at most 100 ms late. Then background work has removed all expired fields.
            run.bench.clock.advance_ms(100);
            run.forget_expired();
            run_dry(bench);
            run.check();
        }
    }
    bench.clock.advance_ms(20_000_000);
    run.forget_expired();
    run_dry(bench);
    run.check();
    let length = bench.run(&format!("HLEN {}", run.key));
    assert_eq!(length, Reply::count(run.model.len()));
    bench.run("FLUSHALL");
    bench.clock.advance_ms(200_000_000);
    run_dry(bench);
    for space in [Space::Data, Space::HashTimers] {
        assert_eq!(rows_in(bench, space), [], "{space:?}");
    }
}

#[test]
fn fields_expire_as_in_a_model() {
    for seed in 0..6 {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            run(&bench, seed, 3 + seed % 4 * 20);
        }
    }
}
