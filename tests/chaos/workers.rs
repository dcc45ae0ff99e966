//! Producers and consumers of unique payloads on every kind of queue.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::client::{Answer, Client};
use crate::history::{Action, Call, Element, End, FAMILIES, Family, Payload, QUEUES, Queue};
use crate::resp::Value;

/// Priorities and scores are below this. It is small, so that many elements share one.
const PRIORITIES: i64 = 4;
const PUSHED_MAX: u32 = 4;
const POPPED_MAX: usize = 4;
const PIPELINED_MAX: usize = 6;

/// Pushes until it is told to stop.
pub fn produce(
    client: &mut Client<'_>,
    number: u32,
    mut goes_on: impl FnMut() -> bool,
) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut payloads = 0;
    while goes_on() {
        client.wander();
        let commands = (0..pipelined(&mut client.random))
            .map(|_| a_push(&mut client.random, number, &mut payloads))
            .collect();
        calls.extend(carry_out(client, commands));
        pause(&mut client.random, 12);
    }
    calls
}

/// Pops and moves until it is told to stop.
pub fn consume(client: &mut Client<'_>, mut goes_on: impl FnMut() -> bool) -> Vec<Call> {
    let mut calls = Vec::new();
    while goes_on() {
        client.wander();
        let commands = (0..pipelined(&mut client.random))
            .map(|_| a_pop(&mut client.random))
            .collect();
        calls.extend(carry_out(client, commands));
        pause(&mut client.random, 4);
    }
    calls
}

/// Often none, so that commands of several clients coincide.
fn pause(random: &mut StdRng, up_to_ms: u64) {
    if random.random_range(0..3) > 0 {
        std::thread::sleep(std::time::Duration::from_millis(
            random.random_range(0..up_to_ms),
        ));
    }
}

/// How many commands are sent together, mostly one.
fn pipelined(random: &mut StdRng) -> usize {
    match random.random_range(0..5) {
        0 => random.random_range(2..=PIPELINED_MAX),
        _ => 1,
    }
}

fn carry_out(client: &mut Client<'_>, commands: Vec<(Vec<String>, Action)>) -> Vec<Call> {
    let (words, actions): (Vec<_>, Vec<_>) = commands.into_iter().unzip();
    let pipeline = client.next_pipeline();
    let invoked = client.now();
    let mut asked = words.iter().zip(actions);
    let mut calls = Vec::new();
    client.pipeline(&words, |client, answer| {
        let Some((words, mut action)) = asked.next() else {
            return;
        };
        let ended = match answer {
            Answer::Refused => return,
            Answer::Unknown => None,
            Answer::Reply(reply) => {
                if let Err(wrong) = read_reply(&reply, &mut action) {
                    client.report(format!("{words:?} was answered {reply:?}: {wrong}"));
                }
                Some(client.now())
            }
        };
        calls.push(Call {
            invoked,
            ended,
            pipeline,
            action,
        });
    });
    calls
}

fn pick<T: Copy>(random: &mut StdRng, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())]
}

fn a_queue(random: &mut StdRng, family: Family) -> Queue {
    Queue {
        family,
        number: random.random_range(0..QUEUES),
    }
}

fn line(text: String) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn a_push(random: &mut StdRng, client: u32, payloads: &mut u32) -> (Vec<String>, Action) {
    let family = pick(random, &FAMILIES);
    let queue = a_queue(random, family);
    let has_priorities = matches!(
        family,
        Family::Sorted | Family::Priority | Family::PriorityMoved
    );
    let mut elements: Vec<Element> = (0..random.random_range(1..=PUSHED_MAX))
        .map(|_| {
            let number = *payloads;
            *payloads += 1;
            let priority = if has_priorities {
                random.random_range(0..PRIORITIES)
            } else {
                0
            };
            (Payload { client, number }, priority)
        })
        .collect();
    let verb = match family {
        Family::Fifo => "RPUSH",
        Family::Mixed | Family::Moved => pick(random, &["LPUSH", "RPUSH"]),
        Family::Sorted => "ZADD",
        Family::Priority | Family::PriorityMoved => "PQ.PUSH",
        Family::Members => "SADD",
    };
    let mut words = vec![verb.to_owned(), queue.to_string()];
    for (payload, priority) in &elements {
        if has_priorities {
            words.push(priority.to_string());
        }
        words.push(payload.to_string());
    }
    if verb == "LPUSH" {
        elements.reverse();
    }
    (words, Action::Push { queue, elements })
}

fn a_pop(random: &mut StdRng) -> (Vec<String>, Action) {
    let family = pick(random, &FAMILIES);
    let first = a_queue(random, family);
    // Naming it twice is allowed, and has the same effect as once.
    let second = a_queue(random, family);
    let end = match family {
        Family::Fifo => End::First,
        _ => pick(random, &[End::First, End::Last]),
    };
    let count = random.random_range(1..=POPPED_MAX);
    let seconds = pick(random, &["0.05", "0.3", "1"]);
    let (left, pop, min) = match end {
        End::First => ("LEFT", "LPOP", "MIN"),
        End::Last => ("RIGHT", "RPOP", "MAX"),
    };
    let kind = random.random_range(0..5);
    let (text, queues, asked) = match (family, kind) {
        (Family::Moved, kind) => {
            let to = pick(random, &["LEFT", "RIGHT"]);
            let text = match kind {
                0 | 1 => format!("LMOVE {first} {second} {left} {to}"),
                _ => format!("BLMOVE {first} {second} {left} {to} {seconds}"),
            };
            return (line(text), a_move(first));
        }
        (Family::PriorityMoved, _) => {
            return (
                line(format!("PQ.MOVE {first} {second} {min}")),
                a_move(first),
            );
        }
        (Family::Mixed, 4) => {
            let to = pick(random, &["LEFT", "RIGHT"]);
            let text = format!("BLMOVE {first} {second} {left} {to} {seconds}");
            return (line(text), a_move(first));
        }
        (Family::Fifo | Family::Mixed, 0) => (format!("{pop} {first}"), vec![first], 1),
        (Family::Fifo | Family::Mixed, 1) => (format!("{pop} {first} {count}"), vec![first], count),
        (Family::Fifo | Family::Mixed, 2) => {
            let text = format!("B{pop} {first} {second} {seconds}");
            (text, vec![first, second], 1)
        }
        (Family::Fifo | Family::Mixed, _) => {
            let text = format!("BLMPOP {seconds} 2 {first} {second} {left} COUNT {count}");
            (text, vec![first, second], count)
        }
        (Family::Sorted, 0) => (format!("ZPOP{min} {first}"), vec![first], 1),
        (Family::Sorted, 1) => (format!("ZPOP{min} {first} {count}"), vec![first], count),
        (Family::Sorted, 2) => {
            let text = format!("BZPOP{min} {first} {second} {seconds}");
            (text, vec![first, second], 1)
        }
        (Family::Sorted, _) => {
            let text = format!("BZMPOP {seconds} 2 {first} {second} {min} COUNT {count}");
            (text, vec![first, second], count)
        }
        (Family::Members, 0) => (format!("SPOP {first}"), vec![first], 1),
        (Family::Members, _) => (format!("SPOP {first} {count}"), vec![first], count),
        (Family::Priority, 0) => (format!("PQ.POP{min} {first}"), vec![first], 1),
        (Family::Priority, 1) => (format!("PQ.POP{min} {first} {count}"), vec![first], count),
        (Family::Priority, _) => {
            let text = format!("PQ.BPOP{min} {first} {second} {seconds}");
            (text, vec![first, second], 1)
        }
    };
    let action = Action::Pop {
        queues,
        end,
        asked,
        from: None,
        took: Vec::new(),
    };
    (line(text), action)
}

fn a_move(from: Queue) -> Action {
    Action::Move { from, took: None }
}

/// Every bulk string of a reply, in order.
pub fn texts(reply: &Value) -> Vec<String> {
    match (reply.bytes(), reply.items()) {
        (Some(bytes), _) => vec![String::from_utf8_lossy(bytes).into_owned()],
        (None, Some(items)) => items.iter().flat_map(texts).collect(),
        (None, None) => Vec::new(),
    }
}

/// Elements, each followed by its score or not.
pub fn elements(texts: &[String]) -> Result<Vec<Element>, String> {
    let mut elements: Vec<Element> = Vec::new();
    for text in texts {
        if let Ok(payload) = text.parse() {
            elements.push((payload, 0));
        } else if let (Ok(priority), Some(last)) = (text.parse(), elements.last_mut()) {
            last.1 = priority;
        } else {
            return Err(format!("what is {text:?}?"));
        }
    }
    Ok(elements)
}

fn read_reply(reply: &Value, action: &mut Action) -> Result<(), String> {
    let mut texts = texts(reply);
    match action {
        Action::Push { queue, elements } => {
            let count = reply.integer().ok_or("not a number")?;
            let pushed = elements.len() as i64;
            // New members are counted exactly. For other types, the length may be larger, and on a
            // cluster it need not count concurrent pushes.
            let is_right = match queue.family {
                Family::Sorted | Family::Members => count == pushed,
                _ => count >= pushed,
            };
            is_right.then_some(()).ok_or("a wrong count".to_owned())
        }
        Action::Move { took, .. } => {
            let moved = elements(&texts)?;
            if moved.len() > 1 {
                return Err("more than one element moved".to_owned());
            }
            *took = moved.first().map(|element| element.0);
            Ok(())
        }
        Action::Pop {
            queues,
            asked,
            from,
            took,
            ..
        } => {
            if let Some(queue) = texts.first().and_then(|text| text.parse().ok()) {
                *from = Some(queue);
                texts.remove(0);
            } else if let [queue] = queues.as_slice() {
                *from = Some(*queue);
            }
            *took = elements(&texts)?;
            if took.len() > *asked {
                return Err("more than was asked for".to_owned());
            }
            let is_named = from.is_none_or(|queue| queues.contains(&queue));
            if !is_named || (from.is_none() && !took.is_empty()) {
                return Err("from which queue?".to_owned());
            }
            Ok(())
        }
    }
}
