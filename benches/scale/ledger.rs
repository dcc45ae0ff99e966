//! Tracks what was pushed and what came out. Each payload is unique and says who pushed it and
//! when.

use std::collections::HashSet;

/// Digits of a payload before its padding: source, number, time.
pub const TICKET_BYTES: usize = 32;

/// The content of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The client that pushed it.
    pub source: u32,
    /// The how-manieth of that source.
    pub number: u32,
    /// When it was pushed, in microseconds from the beginning of the case.
    pub at_us: u64,
}

impl Ticket {
    /// Overwrites the beginning of a payload with it.
    pub fn write(self, payload: &mut [u8]) {
        write_hex(&mut payload[..8], u64::from(self.source));
        write_hex(&mut payload[8..16], u64::from(self.number));
        write_hex(&mut payload[16..TICKET_BYTES], self.at_us);
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let field = |from: usize, to: usize| {
            let text = std::str::from_utf8(payload.get(from..to)?).ok()?;
            u64::from_str_radix(text, 16).ok()
        };
        Some(Self {
            source: u32::try_from(field(0, 8)?).ok()?,
            number: u32::try_from(field(8, 16)?).ok()?,
            at_us: field(16, TICKET_BYTES)?,
        })
    }
}

fn write_hex(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

/// The ledger of one case.
pub struct Ledger {
    payload_bytes: usize,
    sources: Vec<Source>,
    pub pushed: u64,
    pub popped: u64,
    doubled: u64,
    unknown: u64,
    /// Pushes that were answered with an error: they may or may not have been done.
    uncertain: HashSet<(u32, u32)>,
}

#[derive(Default)]
struct Source {
    count: u32,
    popped: Vec<u64>,
}

impl Ledger {
    pub fn new(sources: usize, payload_bytes: usize) -> Self {
        Self {
            payload_bytes,
            sources: (0..sources).map(|_| Source::default()).collect(),
            pushed: 0,
            popped: 0,
            doubled: 0,
            unknown: 0,
            uncertain: HashSet::new(),
        }
    }

    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// The next payload of a source.
    pub fn issue(&mut self, source: u32, at_us: u64) -> Ticket {
        let entry = &mut self.sources[source as usize];
        let number = entry.count;
        entry.count += 1;
        Ticket {
            source,
            number,
            at_us,
        }
    }

    /// A push that was acknowledged, or failed.
    pub fn pushed(&mut self, ticket: Ticket, is_certain: bool) {
        if is_certain {
            self.pushed += 1;
        } else {
            self.uncertain.insert((ticket.source, ticket.number));
        }
    }

    /// Records a bulk string of a reply if it is a payload.
    pub fn popped(&mut self, payload: &[u8]) -> Option<Ticket> {
        if payload.len() != self.payload_bytes {
            return None;
        }
        let ticket = Ticket::read(payload);
        let known = ticket.and_then(|ticket| {
            let source = self.sources.get_mut(ticket.source as usize)?;
            (ticket.number < source.count).then_some((source, ticket))
        });
        let Some((source, ticket)) = known else {
            self.unknown += 1;
            return None;
        };
        let (word, bit) = (ticket.number as usize / 64, ticket.number % 64);
        if source.popped.len() <= word {
            source.popped.resize(word + 1, 0);
        }
        if source.popped[word] & (1 << bit) != 0 {
            self.doubled += 1;
            return None;
        }
        source.popped[word] |= 1 << bit;
        self.popped += 1;
        Some(ticket)
    }

    /// Compares both sides, when `left` elements are still in the queues.
    pub fn verdict(&self, left: u64) -> Verdict {
        let is_popped = |(source, number): &&(u32, u32)| {
            let words = &self.sources[*source as usize].popped;
            let word = words.get(*number as usize / 64);
            word.is_some_and(|word| word & (1 << (number % 64)) != 0)
        };
        let uncertain_popped = self.uncertain.iter().filter(is_popped).count() as i64;
        let missing = (self.pushed as i64) + uncertain_popped - (self.popped + left) as i64;
        Verdict {
            missing,
            doubled: self.doubled,
            unknown: self.unknown,
            uncertain: self.uncertain.len() as u64,
        }
    }
}

/// What is wrong with a case's elements.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    /// Acknowledged, not popped, and no longer there. Negative if there are too many.
    pub missing: i64,
    /// Popped twice.
    pub doubled: u64,
    /// Popped, and never pushed.
    pub unknown: u64,
    /// Pushes that were answered with an error.
    pub uncertain: u64,
}

impl Verdict {
    /// Whether every element is where it must be. Pushes that failed may still have been applied.
    pub fn is_good(&self) -> bool {
        let surplus_max = self.uncertain as i64;
        (-surplus_max..=0).contains(&self.missing) && self.doubled == 0 && self.unknown == 0
    }
}
