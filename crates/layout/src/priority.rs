//! Elements of priority queues: integers and doubles as priorities in one order of keys.

use std::cmp::Ordering;

use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, Layout, Section, corrupt, take};

/// The range in which integral doubles are 64-bit integers: from −2^63 up to but not including
/// 2^63.
const INTEGER_DOUBLES: std::ops::Range<f64> =
    -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;

/// Ends a key whose priority was given as a double although it is an integer.
const GIVEN_AS_DOUBLE: u64 = 1;
/// Ends all other keys with a sequence.
const GIVEN_AS_IT_IS: u64 = 0;

/// A priority as clients see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PriorityNumber {
    /// A 64-bit integer.
    Integer(i64),
    /// A double; never NaN, never −0.
    Double(f64),
}

/// A priority: a 64-bit integer or a double. Both share one order, that of their exact values. 1
/// and 1.0 are one priority, but each is returned in the form in which it was given.
///
/// Stored as the greatest double that is not above the number, and the difference between the two.
/// The difference is 0, except for integers beyond 2^53 that no double equals. Compared one after
/// another, these two order all numbers exactly, also as tuple elements.
#[derive(Debug, Clone, Copy)]
pub struct Priority {
    floor: f64,
    excess: u16,
    is_integer: bool,
}

impl Priority {
    /// The priority of an integer.
    pub fn integer(number: i64) -> Self {
        let nearest = number as f64;
        // The nearest double may be 2^63, which is not an i64.
        let floor = if nearest as i128 > i128::from(number) {
            nearest.next_down()
        } else {
            nearest
        };
        // Neighbouring doubles of this size are at most 1024 apart.
        let excess = u16::try_from(i128::from(number) - floor as i128).unwrap_or(0);
        Self {
            floor,
            excess,
            is_integer: true,
        }
    }

    /// The priority of a double, −0 being 0; `None` for NaN.
    pub fn double(number: f64) -> Option<Self> {
        if number.is_nan() {
            return None;
        }
        Some(Self {
            floor: if number == 0.0 { 0.0 } else { number },
            excess: 0,
            is_integer: false,
        })
    }

    fn pack_into(&self, key: &mut Vec<u8>) {
        pack_into(&(self.floor, u64::from(self.excess)), key);
    }

    /// The number in the form in which it was given.
    pub fn number(&self) -> PriorityNumber {
        if self.is_integer {
            // Within the integers by construction.
            let number = self.floor as i128 + i128::from(self.excess);
            PriorityNumber::Integer(number as i64)
        } else {
            PriorityNumber::Double(self.floor)
        }
    }

    /// The order of the exact values. An integer and a double with the same value are equal.
    pub fn order(&self, other: &Self) -> Ordering {
        self.floor
            .total_cmp(&other.floor)
            .then_with(|| self.excess.cmp(&other.excess))
    }

    /// Whether a key has to say that this is a double, since its value does not.
    fn is_integral_double(&self) -> bool {
        !self.is_integer && is_integral(self.floor)
    }
}

/// Whether a 64-bit integer equals this double.
fn is_integral(number: f64) -> bool {
    INTEGER_DOUBLES.contains(&number) && number.trunc() == number
}

/// The place of an element of a priority queue.
#[derive(Debug, Clone, Copy)]
pub struct QueuePlace {
    /// Its priority.
    pub priority: Priority,
    /// The number of its row within its priority, in push order.
    pub count: i64,
    /// Makes the keys of concurrent pushes differ.
    pub random: i64,
    /// Its number among the places of its row. `None` in rows of layouts before 6, which hold one
    /// element.
    pub sequence: Option<i64>,
}

impl QueuePlace {
    /// Appends the place to a key.
    pub fn pack_into(&self, key: &mut Vec<u8>) {
        self.priority.pack_into(key);
        pack_into(&(self.count, self.random), key);
        let is_marked = self.priority.is_integral_double();
        match self.sequence {
            Some(sequence) => {
                let given = if is_marked {
                    GIVEN_AS_DOUBLE
                } else {
                    GIVEN_AS_IT_IS
                };
                pack_into(&(sequence, given), key);
            }
            None if is_marked => {
                pack_into(&(GIVEN_AS_DOUBLE,), key);
            }
            None => {}
        }
    }

    /// The place with its sequence increased by `by`.
    pub fn raised_by(&self, by: usize) -> Self {
        let by = i64::try_from(by).unwrap_or(i64::MAX);
        Self {
            sequence: Some(self.sequence.unwrap_or(0).saturating_add(by)),
            ..*self
        }
    }
}

impl Layout {
    /// Prefix of the elements of a priority queue.
    pub fn queue_prefix(&self, data: Id) -> Vec<u8> {
        self.section_prefix(data, Section::Queue)
    }

    /// Prefix of the elements of one priority.
    pub fn priority_prefix(&self, data: Id, priority: &Priority) -> Vec<u8> {
        let mut key = self.queue_prefix(data);
        priority.pack_into(&mut key);
        key
    }

    /// Key of a row of a priority queue.
    pub fn queue_key(&self, data: Id, place: &QueuePlace) -> Vec<u8> {
        let mut key = self.queue_prefix(data);
        place.pack_into(&mut key);
        key
    }

    /// Reads a key whose prefix has the length of [`Layout::queue_prefix`]: the place, and the
    /// length of the prefix that all elements of its priority share.
    ///
    /// # Errors
    /// If it is not such a key.
    pub fn read_queue_key(
        &self,
        prefix_length: usize,
        key: &[u8],
    ) -> Result<(QueuePlace, usize), DecodeError> {
        let Some(mut rest) = key.get(prefix_length..) else {
            return corrupt("priority");
        };
        let floor: f64 = take(&mut rest, "priority")?;
        let excess: u64 = take(&mut rest, "priority")?;
        let priority_length = key.len() - rest.len();
        let count = take(&mut rest, "count")?;
        let random = take(&mut rest, "random")?;
        let (sequence, is_double) = match rest {
            [] => (None, false),
            _ => match (take(&mut rest, "sequence")?, rest) {
                (1, []) => (None, true),
                (_, []) => return corrupt("kind of a priority"),
                (sequence, mut rest) => match take::<u64>(&mut rest, "kind of a priority")? {
                    given @ (GIVEN_AS_IT_IS | GIVEN_AS_DOUBLE) if rest.is_empty() => {
                        (Some(sequence), given == GIVEN_AS_DOUBLE)
                    }
                    _ => return corrupt("kind of a priority"),
                },
            },
        };
        let place = QueuePlace {
            priority: read_priority(floor, excess, is_double)?,
            count,
            random,
            sequence,
        };
        Ok((place, priority_length))
    }
}

/// The length of the priority at the beginning of a place.
///
/// # Errors
/// If it is not a place.
pub fn priority_length(place: &[u8]) -> Result<usize, DecodeError> {
    let mut rest = place;
    take::<f64>(&mut rest, "priority")?;
    take::<u64>(&mut rest, "priority")?;
    Ok(place.len() - rest.len())
}

/// The priority made of these elements of a key. They must be exactly those that are written for
/// it.
fn read_priority(floor: f64, excess: u64, is_double: bool) -> Result<Priority, DecodeError> {
    let read = if is_integral(floor) && !is_double {
        i64::try_from(floor as i128 + i128::from(excess))
            .ok()
            .map(Priority::integer)
    } else {
        Priority::double(floor)
    };
    match read {
        Some(priority)
            if priority.floor.to_bits() == floor.to_bits()
                && u64::from(priority.excess) == excess
                && priority.is_integral_double() == is_double =>
        {
            Ok(priority)
        }
        _ => corrupt("priority"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DATA: Id = Id {
        instance: 1,
        sequence: 300,
    };

    /// Numbers near the boundary between integers and doubles.
    fn number() -> impl Strategy<Value = PriorityNumber> {
        let edge = prop_oneof![
            Just(0_i64),
            Just(i64::MAX),
            Just(i64::MIN),
            (0..63_u32).prop_map(|bits| 1 << bits),
            (0..63_u32).prop_map(|bits| -(1 << bits)),
        ];
        let near = (edge, -3..4_i64).prop_map(|(edge, by)| edge.saturating_add(by));
        let double = any::<f64>().prop_filter("NaN is no priority", |number| !number.is_nan());
        prop_oneof![
            any::<i64>().prop_map(PriorityNumber::Integer),
            near.clone().prop_map(PriorityNumber::Integer),
            double.prop_map(|number| PriorityNumber::Double(number + 0.0)),
            near.clone()
                .prop_map(|number| PriorityNumber::Double(number as f64)),
            near.prop_map(|number| PriorityNumber::Double((number as f64).next_up() + 0.0)),
            prop_oneof![Just(f64::INFINITY), Just(f64::NEG_INFINITY)]
                .prop_map(PriorityNumber::Double),
        ]
    }

    fn priority(number: PriorityNumber) -> Priority {
        match number {
            PriorityNumber::Integer(number) => Priority::integer(number),
            PriorityNumber::Double(number) => Priority::double(number).unwrap(),
        }
    }

    /// Exact comparison by other means: whole numbers up to 2^100 as 128-bit integers.
    fn exact_order(one: PriorityNumber, other: PriorityNumber) -> Ordering {
        use PriorityNumber::{Double, Integer};
        match (one, other) {
            (Integer(one), Integer(other)) => one.cmp(&other),
            (Double(one), Double(other)) => one.partial_cmp(&other).unwrap(),
            (Integer(one), Double(other)) => {
                let whole = (other.floor().clamp(-1e30, 1e30)) as i128;
                i128::from(one).cmp(&whole).then_with(|| {
                    if other.floor() < other {
                        Ordering::Less
                    } else {
                        Ordering::Equal
                    }
                })
            }
            (Double(_), Integer(_)) => exact_order(other, one).reverse(),
        }
    }

    fn place(
        number: PriorityNumber,
        (count, random): (i64, i64),
        sequence: Option<i64>,
    ) -> QueuePlace {
        QueuePlace {
            priority: priority(number),
            count,
            random,
            sequence,
        }
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_exact_values_then_counts_then_randoms_then_sequences(
            one in (number(), 0..3_i64, 0..3_i64, 0..3_i64),
            other in (number(), 0..3_i64, 0..3_i64, 0..3_i64),
        ) {
            let layout = Layout::new("test");
            let by_number = exact_order(one.0, other.0);
            prop_assert_eq!(priority(one.0).order(&priority(other.0)), by_number);
            let expected = by_number
                .then_with(|| one.1.cmp(&other.1))
                .then_with(|| one.2.cmp(&other.2))
                .then_with(|| one.3.cmp(&other.3));
            let one = layout.queue_key(DATA, &place(one.0, (one.1, one.2), Some(one.3)));
            let other = layout.queue_key(DATA, &place(other.0, (other.1, other.2), Some(other.3)));
            if expected != Ordering::Equal {
                prop_assert_eq!(one.cmp(&other), expected);
            }
        }

        #[test]
        fn a_key_gives_back_the_number_as_what_it_was(
            number in number(), count in any::<i64>(), random in any::<i64>(),
            sequence in any::<Option<i64>>(),
        ) {
            let layout = Layout::new("test");
            let key = layout.queue_key(DATA, &place(number, (count, random), sequence));
            let prefix_length = layout.queue_prefix(DATA).len();
            let (read, priority_length) = layout.read_queue_key(prefix_length, &key).unwrap();
            prop_assert_eq!(read.priority.number(), number);
            prop_assert_eq!((read.count, read.random, read.sequence), (count, random, sequence));
            let shared = layout.priority_prefix(DATA, &priority(number));
            prop_assert_eq!(&key[..priority_length], shared.as_slice());
        }

        #[test]
        fn an_integer_and_a_double_of_one_value_share_their_prefix(number in -(1_i64 << 53)..1 << 53) {
            let layout = Layout::new("test");
            let double = Priority::double(number as f64).unwrap();
            let integer = Priority::integer(number);
            prop_assert_eq!(
                layout.priority_prefix(DATA, &integer),
                layout.priority_prefix(DATA, &double)
            );
            prop_assert_eq!(integer.order(&double), Ordering::Equal);
        }
    }

    #[test]
    fn nan_is_no_priority_and_zero_has_no_sign() {
        assert!(Priority::double(f64::NAN).is_none());
        let zero = Priority::double(-0.0).unwrap();
        assert!(
            matches!(zero.number(), PriorityNumber::Double(number) if number.is_sign_positive())
        );
        assert_eq!(zero.order(&Priority::integer(0)), Ordering::Equal);
    }

    #[test]
    fn integers_that_no_double_equals_stand_between_the_doubles() {
        let beyond = (1_i64 << 53) + 1;
        let double = |number: f64| Priority::double(number).unwrap();
        let integer = Priority::integer(beyond);
        assert_eq!(integer.number(), PriorityNumber::Integer(beyond));
        assert_eq!(
            integer.order(&double(9_007_199_254_740_992.0)),
            Ordering::Greater
        );
        assert_eq!(
            integer.order(&double(9_007_199_254_740_994.0)),
            Ordering::Less
        );
        let greatest = Priority::integer(i64::MAX);
        assert_eq!(
            greatest.order(&double(9_223_372_036_854_775_808.0)),
            Ordering::Less
        );
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        let layout = Layout::new("");
        for (floor, excess, tail) in [
            (f64::NAN, 0_u64, None),
            (-0.0, 0, None),
            (1.5, 1, None),
            (1.0, 1, None),
            (f64::INFINITY, 1, None),
            (1.5, 0, Some(1_u64)),
            (1.0, 0, Some(0)),
            (1.0, 0, Some(2)),
            (1e300, 0, Some(1)),
            (9_223_372_036_854_774_784.0, 1024, None),
        ] {
            let mut key = foundationdb_tuple::pack(&(floor, excess, 0, 0));
            if let Some(tail) = tail {
                pack_into(&(tail,), &mut key);
            }
            assert!(
                layout.read_queue_key(0, &key).is_err(),
                "{floor} {excess} {tail:?}"
            );
        }
    }
}
