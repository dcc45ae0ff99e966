//! Random arguments: keys, values, members, numbers, and mistakes.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::resp::Words;

/// Generates the words of random commands.
pub struct Dice {
    random: StdRng,
}

/// The first letters of keys by family: lists, sorted sets, geo, hashes, strings, sets, streams,
/// HyperLogLogs.
const FAMILIES: &[char] = &['l', 'z', 'g', 'h', 't', 'm', 's', 'p'];

/// Numbers that Redis parses, or just does not.
const ODD_NUMBERS: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999",
    "4611686018427387904",
    "4294967296",
    "-4294967297",
    "2147483648",
    "abc",
    "",
    " 1",
    "1 ",
    "+1",
    "-0",
    "01",
    "1.0",
    "0x10",
    "1e2",
    "nan",
];

const SCORES: &[&str] = &[
    "0",
    "-0",
    "0.0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "1.5",
    "-1.5",
    "0.1",
    "0.2",
    "0.30000000000000004",
    "3.14159265358979",
    "1e3",
    "1e-7",
    "1.5e-10",
    "123456789.123456789",
    "1e15",
    "1e16",
    "1e17",
    "1e20",
    "1e21",
    "1e22",
    "-1e300",
    "1.7976931348623157e308",
    "9007199254740993",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775808",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "0x1p4",
    "100000",
    "1000000.5",
    "0.00001",
    "0.000123",
];

const NOT_SCORES: &[&str] = &[
    "nan", "abc", "", "1 ", "1x", "(1", "--1", "1e", "0x", "infx", "-nan",
];

const VALUES: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "e",
    "0",
    "1",
    "2",
    "10",
    "-3",
    "3.5",
    "1e3",
    "",
    "hello world",
    "A",
    "B",
    "\0",
    "a\0b",
    "\r\n",
    "*1\r\n$4\r\n",
    "é",
    "inf",
];

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.random.random_range(0..times) == 0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound)
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.random.random_range(low..=high)
    }

    /// At least 0 and less than 1.
    pub fn fraction(&mut self) -> f64 {
        self.random.random()
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        *choices.choose(&mut self.random).unwrap()
    }

    fn text(&mut self, choices: &[&str]) -> Vec<u8> {
        self.pick(choices).as_bytes().to_vec()
    }

    /// A key, usually one that other commands of the family (one of [`FAMILIES`]) use.
    pub fn key(&mut self, family: char) -> Vec<u8> {
        match self.below(20) {
            0 => self.odd_key(),
            1 | 2 => format!("mixed{}", self.below(3)).into_bytes(),
            3 => format!("{}{}", self.pick(FAMILIES), self.below(4)).into_bytes(),
            4 => b"absent".to_vec(),
            _ => format!("{family}{}", self.below(4)).into_bytes(),
        }
    }

    /// A key of whatever type.
    pub fn any_key(&mut self) -> Vec<u8> {
        let family = self.pick(FAMILIES);
        self.key(family)
    }

    /// A key of sets in which all scores are equal.
    pub fn lexical_key(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => b"never".to_vec(),
            _ => format!("x{}", self.below(2)).into_bytes(),
        }
    }

    fn odd_key(&mut self) -> Vec<u8> {
        match self.below(7) {
            0 => Vec::new(),
            1 => b"\0\xff\r\n\0".to_vec(),
            2 => vec![b'k'; 950],
            3 => [vec![b'k'; 950], b"x".to_vec()].concat(),
            4 => [vec![b'k'; 2_000], self.text(&["", "a", "b"])].concat(),
            5 => vec![0; 1_000],
            _ => vec![0xff; 12_000],
        }
    }

    /// An element of a list or a member of a sorted set.
    pub fn value(&mut self) -> Vec<u8> {
        match self.below(60) {
            0 => [vec![b'v'; 899], self.text(&["", "a", "ab", "abc"])].concat(),
            1 => [vec![b'v'; 1_500], self.text(&["", "a", "ab", "abc"])].concat(),
            2 => vec![0xff; 905],
            3 => [vec![0; 950], self.text(&["", "a"])].concat(),
            4 if self.one_in(4) => {
                let length = self.pick(&[89_990, 90_000, 90_001, 100_001, 200_000]);
                [vec![b'w'; length], self.text(&["", "a"])].concat()
            }
            5..20 => format!("e{}", self.below(30)).into_bytes(),
            _ => self.text(VALUES),
        }
    }

    /// The value of a string.
    pub fn string(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => {
                let length = self.length();
                let length = usize::try_from(length).unwrap();
                (0..length).map(|at| b"abcabd"[at % 6]).collect()
            }
            1 => vec![self.pick(&[0x00, 0xff, 0x10]); self.below(30)],
            _ => self.value(),
        }
    }

    /// A length near the bounds of the storage forms of strings.
    pub fn length(&mut self) -> i64 {
        let bound = self.pick(&[0, 0, 1_024, 1_024, 16_384, 32_768]);
        (bound + self.between(-6, 6)).max(0)
    }

    /// One or a few values, occasionally many.
    pub fn values(&mut self) -> Vec<Vec<u8>> {
        let count = match self.below(30) {
            0 => self.below(300) + 1,
            1..6 => self.below(10) + 1,
            _ => self.below(3) + 1,
        };
        if count > 10 {
            return (0..count)
                .map(|number| format!("n{number}").into_bytes())
                .collect();
        }
        (0..count).map(|_| self.value()).collect()
    }

    /// A position in a list or set, or a count.
    pub fn integer(&mut self) -> Vec<u8> {
        match self.below(25) {
            0 => self.text(ODD_NUMBERS),
            1 | 2 => self.between(-300, 300).to_string().into_bytes(),
            _ => self.between(-6, 6).to_string().into_bytes(),
        }
    }

    /// A count, usually a valid one.
    pub fn count(&mut self) -> Vec<u8> {
        match self.below(25) {
            0 => self.text(ODD_NUMBERS),
            1 => b"-1".to_vec(),
            2 => b"0".to_vec(),
            _ => self.between(1, 8).to_string().into_bytes(),
        }
    }

    /// A count of random items. A huge negative one would have a very long reply.
    pub fn random_count(&mut self) -> Vec<u8> {
        match self.below(25) {
            0 => self.text(&[
                "9223372036854775807",
                "-9223372036854775808",
                "abc",
                "",
                "1.0",
            ]),
            _ => self.between(-20, 20).to_string().into_bytes(),
        }
    }

    pub fn score(&mut self) -> Vec<u8> {
        match self.below(30) {
            0 => self.text(NOT_SCORES),
            1..10 => self.text(SCORES),
            10..14 => {
                let number = self.random.random_range(-1e6..1e6_f64);
                number.to_string().into_bytes()
            }
            _ => self.between(-5, 12).to_string().into_bytes(),
        }
    }

    /// A number for INCRBYFLOAT: with few digits, with many, near the limits of an 80-bit float,
    /// hexadecimal, or not a number.
    pub fn long_double(&mut self) -> Vec<u8> {
        let sign = self.pick(&["", "", "-", "+"]);
        let text = match self.below(20) {
            0 => return self.text(NOT_SCORES),
            1 => return self.text(ODD_NUMBERS),
            2 => return self.text(SCORES),
            3 => format!("{sign}{}", self.pick(&[u64::MAX, 1 << 63, 1 << 62, 1])),
            4..8 => {
                let decimals = self.below(20);
                let number = self.random.random_range(-1e6..1e6_f64);
                format!("{number:.decimals$}")
            }
            8 => {
                let (whole, fraction) = (self.digits(40), self.digits(80));
                format!("{sign}{whole}.{fraction}")
            }
            9 => {
                let (digits, exponent) = (self.digits(30), self.between(-4_990, 4_990));
                format!("{sign}{digits}.{}e{exponent}", self.digits(3))
            }
            10 => format!("{sign}{}e{}", self.digits(5), self.between(4_925, 4_935)),
            11 => format!("{sign}{}e-{}", self.digits(5), self.between(4_945, 4_960)),
            12 => {
                let (bits, exponent) = (self.random.random::<u64>(), self.between(-200, 200));
                format!("{sign}{bits:#x}.{:x}p{exponent}", self.below(4_096))
            }
            13 => {
                let (bits, exponent) = (self.random.random::<u64>(), self.between(-16_520, 16_400));
                format!("{sign}{bits:#X}P{exponent}")
            }
            14 => {
                // Near a tie of the last bit, or of the last printed digit.
                let half =
                    self.pick(&["0x1p-18", "0x1.8p-17", "0x1p64", "0x1.0000000000000001p64"]);
                format!("{sign}{half}")
            }
            15 => format!("{sign}{}", self.digits(5_100)),
            _ => format!("{sign}{}e{}", self.digits(22), self.between(-25, 25)),
        };
        text.into_bytes()
    }

    /// Up to this many digits, at least one.
    fn digits(&mut self, count_max: usize) -> String {
        let count = self.below(count_max) + 1;
        (0..count)
            .map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap()))
            .collect()
    }

    /// A bound of a range of scores.
    pub fn score_bound(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => self.text(&["-inf", "+inf", "inf", "(inf", "(-inf"]),
            1 | 2 => [b"(".to_vec(), self.score()].concat(),
            _ => self.score(),
        }
    }

    /// A bound of a range of members.
    pub fn lex_bound(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..3 => b"-".to_vec(),
            3..6 => b"+".to_vec(),
            6 => self.text(&["", "a", "++", "-a", "+a", "[", "("]),
            7..10 => [b"[".to_vec(), self.value()].concat(),
            _ => [b"(".to_vec(), self.value()].concat(),
        }
    }

    pub fn pattern(&mut self) -> Vec<u8> {
        self.text(&[
            "*", "l*", "z*", "s*", "?1", "[lzh]0", "[^l]*", "mixed?", "k*", "e1*", "a", "", "\\*",
            "*\0*", "n*", "nothing*", "[a-", "[0-3]", "e[^1-2]",
        ])
    }

    /// A word in random case.
    pub fn word(&mut self, word: &str) -> Vec<u8> {
        match self.below(6) {
            0 => word.to_ascii_lowercase().into_bytes(),
            1 => word
                .bytes()
                .map(|byte| {
                    if self.one_in(2) {
                        byte.to_ascii_lowercase()
                    } else {
                        byte.to_ascii_uppercase()
                    }
                })
                .collect(),
            _ => word.as_bytes().to_vec(),
        }
    }

    pub fn choose_word(&mut self, words: &[&str]) -> Vec<u8> {
        let word = self.pick(words);
        self.word(word)
    }

    /// Occasionally makes a mistake: a word too many, too few, doubled, or another. Never one that
    /// shortens a long expiry.
    pub fn spoil(&mut self, mut words: Words) -> Words {
        if !self.one_in(25) {
            return words;
        }
        match self.below(4) {
            0 => {
                words.pop();
            }
            1 => {
                let value =
                    self.text(&["a", "LIMIT", "COUNT", "WITHSCORES", "NX", "XX", "0", "-1"]);
                words.push(value);
            }
            2 => {
                let at = self.below(words.len());
                let value = self.text(&["abc", "", "nan", "1.5x", "-99999999999999999999x"]);
                words[at] = value;
            }
            _ => {
                if let Some(last) = words.last().cloned() {
                    words.push(last);
                }
            }
        }
        if words.is_empty() {
            words.push(b"LPUSH".to_vec());
        }
        words
    }
}
