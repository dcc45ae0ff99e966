//! How active queues are, as the server counts it: QUEUE.TOP.

use quoin_client::{Client, ClientError};
use quoin_resp::wire::reply_reader::Value;

use crate::kind::Kind;
use crate::reply::{Pairs, items, text};

/// What the server has counted for a queue. It counts only the most active queues.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Its database.
    pub database: u32,
    /// Its key.
    pub name: Vec<u8>,
    /// Its type.
    pub kind: Kind,
    /// Elements added since the server began to count.
    pub elements_in: i64,
    /// Elements removed since then.
    pub elements_out: i64,
    /// Tries that failed, or ended with their lease, since then.
    pub retries: i64,
    /// Tasks that died since then.
    pub deaths: i64,
    /// Elements added per second.
    pub in_per_second: f64,
    /// Elements that go out a second.
    pub out_per_second: f64,
    /// Clients of this server that wait for it.
    pub waiting: i64,
}

impl Activity {
    /// Whether elements are added or removed, or clients wait. Less than one element in twenty
    /// seconds does not count.
    pub fn is_busy(&self) -> bool {
        self.in_per_second.max(self.out_per_second) >= 0.05 || self.waiting > 0
    }
}

/// The activity of up to `count` queues of all databases, the most active first. `None` if the server does not count it,
/// or does not show it to this user.
///
/// # Errors
/// The connection's.
pub fn activities(client: &mut Client, count: usize) -> Result<Option<Vec<Activity>>, ClientError> {
    let reply = client.call(&["QUEUE.TOP", "COUNT", &count.to_string()])?;
    if reply.error().is_some() {
        return Ok(None);
    }
    Ok(Some(items(&reply).iter().filter_map(activity).collect()))
}

/// One map of the reply. `None` for types that are not queues here.
fn activity(reply: &Value) -> Option<Activity> {
    let fields = Pairs::of(reply);
    let rate = |name: &str| {
        let rate: f64 = fields.text(name).parse().ok()?;
        rate.is_finite().then_some(rate)
    };
    Some(Activity {
        database: u32::try_from(fields.number("db")).ok()?,
        name: match fields.get("key")? {
            Value::Blob(_, name) => name.clone()?,
            Value::Line(..) | Value::Aggregate(..) => return None,
        },
        kind: Kind::of_type(&text(fields.get("type")?))?,
        elements_in: fields.number("in"),
        elements_out: fields.number("out"),
        retries: fields.number("retries"),
        deaths: fields.number("deaths"),
        in_per_second: rate("in-per-second")?,
        out_per_second: rate("out-per-second")?,
        waiting: fields.number("waiting"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_resp::wire::reply_reader::read_reply;

    fn one(kind: &str, first: &str, rate: &str) -> String {
        format!(
            "{first}$2\r\ndb\r\n:3\r\n$3\r\nkey\r\n$2\r\nq\u{1}\r\n$4\r\ntype\r\n+{kind}\r\n$2\r\nin\r\n:10\r\n\
             $3\r\nout\r\n:9\r\n$7\r\nretries\r\n:2\r\n$6\r\ndeaths\r\n:1\r\n$13\r\nin-per-second\r\n{rate}\
             $14\r\nout-per-second\r\n{rate}$7\r\nwaiting\r\n:4\r\n"
        )
    }

    #[test]
    fn both_protocols_say_the_same() {
        let expected = Activity {
            database: 3,
            name: b"q\x01".to_vec(),
            kind: Kind::TaskQueue,
            elements_in: 10,
            elements_out: 9,
            retries: 2,
            deaths: 1,
            in_per_second: 1.5,
            out_per_second: 1.5,
            waiting: 4,
        };
        for bytes in [
            one("taskqueue", "*20\r\n", "$3\r\n1.5\r\n"),
            one("taskqueue", "%10\r\n", ",1.5\r\n"),
        ] {
            let reply = read_reply(&mut bytes.as_bytes()).unwrap();
            assert_eq!(activity(&reply), Some(expected.clone()));
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for bytes in [
            one("hash", "*20\r\n", "$3\r\n1.5\r\n"),
            one("list", "*20\r\n", "$3\r\nnan\r\n"),
            "*0\r\n".to_owned(),
            ":1\r\n".to_owned(),
        ] {
            let reply = read_reply(&mut bytes.as_bytes()).unwrap();
            assert_eq!(activity(&reply), None, "{bytes}");
        }
    }
}
