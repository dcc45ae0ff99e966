//! The digits of a floating-point number as Redis chooses them: the Grisu2 algorithm.
//!
//! Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers" (PLDI
//! 2010). Its digits always read back as the same number but are not always the fewest or the
//! closest: for about one random number in a thousand it prints a digit more than algorithms such
//! as Ryu. Redis 7.2 prints with Grisu2 (`deps/fpconv`), so byte-identical replies need the same
//! algorithm, down to the choice of the power of ten for scaling.

/// The most digits that [`shortest_digits`] returns.
const DIGITS_MAX: usize = 18;

/// A number `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Scaled {
    significand: u64,
    exponent: i32,
}

const HIDDEN_BIT: u64 = 1 << 52;
const FRACTION_MASK: u64 = HIDDEN_BIT - 1;
/// Bias of a double's exponent when its significand is read as an integer.
const EXPONENT_BIAS: i32 = 1023 + 52;

/// The range of the binary exponent of the scaled number, so that its integral part fits 32 bits.
const SCALED_EXPONENT_MIN: i32 = -60;
const SCALED_EXPONENT_MAX: i32 = -32;
const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;
/// log10(2), truncated to the precision that Redis uses for its first guess.
const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;

/// `10^-348, 10^-340, ... 10^340`, rounded to 64 significant bits.
#[rustfmt::skip]
const POWERS_OF_TEN: [(u64, i32); 87] = [
    (0xfa8fd5a0081c0288, -1220),
    (0xbaaee17fa23ebf76, -1193),
    (0x8b16fb203055ac76, -1166),
    (0xcf42894a5dce35ea, -1140),
    (0x9a6bb0aa55653b2d, -1113),
    (0xe61acf033d1a45df, -1087),
    (0xab70fe17c79ac6ca, -1060),
    (0xff77b1fcbebcdc4f, -1034),
    (0xbe5691ef416bd60c, -1007),
    (0x8dd01fad907ffc3c, -980),
    (0xd3515c2831559a83, -954),
    (0x9d71ac8fada6c9b5, -927),
    (0xea9c227723ee8bcb, -901),
    (0xaecc49914078536d, -874),
    (0x823c12795db6ce57, -847),
    (0xc21094364dfb5637, -821),
    (0x9096ea6f3848984f, -794),
    (0xd77485cb25823ac7, -768),
    (0xa086cfcd97bf97f4, -741),
    (0xef340a98172aace5, -715),
    (0xb23867fb2a35b28e, -688),
    (0x84c8d4dfd2c63f3b, -661),
    (0xc5dd44271ad3cdba, -635),
    (0x936b9fcebb25c996, -608),
    (0xdbac6c247d62a584, -582),
    (0xa3ab66580d5fdaf6, -555),
    (0xf3e2f893dec3f126, -529),
    (0xb5b5ada8aaff80b8, -502),
    (0x87625f056c7c4a8b, -475),
    (0xc9bcff6034c13053, -449),
    (0x964e858c91ba2655, -422),
    (0xdff9772470297ebd, -396),
    (0xa6dfbd9fb8e5b88f, -369),
    (0xf8a95fcf88747d94, -343),
    (0xb94470938fa89bcf, -316),
    (0x8a08f0f8bf0f156b, -289),
    (0xcdb02555653131b6, -263),
    (0x993fe2c6d07b7fac, -236),
    (0xe45c10c42a2b3b06, -210),
    (0xaa242499697392d3, -183),
    (0xfd87b5f28300ca0e, -157),
    (0xbce5086492111aeb, -130),
    (0x8cbccc096f5088cc, -103),
    (0xd1b71758e219652c, -77),
    (0x9c40000000000000, -50),
    (0xe8d4a51000000000, -24),
    (0xad78ebc5ac620000, 3),
    (0x813f3978f8940984, 30),
    (0xc097ce7bc90715b3, 56),
    (0x8f7e32ce7bea5c70, 83),
    (0xd5d238a4abe98068, 109),
    (0x9f4f2726179a2245, 136),
    (0xed63a231d4c4fb27, 162),
    (0xb0de65388cc8ada8, 189),
    (0x83c7088e1aab65db, 216),
    (0xc45d1df942711d9a, 242),
    (0x924d692ca61be758, 269),
    (0xda01ee641a708dea, 295),
    (0xa26da3999aef774a, 322),
    (0xf209787bb47d6b85, 348),
    (0xb454e4a179dd1877, 375),
    (0x865b86925b9bc5c2, 402),
    (0xc83553c5c8965d3d, 428),
    (0x952ab45cfa97a0b3, 455),
    (0xde469fbd99a05fe3, 481),
    (0xa59bc234db398c25, 508),
    (0xf6c69a72a3989f5c, 534),
    (0xb7dcbf5354e9bece, 561),
    (0x88fcf317f22241e2, 588),
    (0xcc20ce9bd35c78a5, 614),
    (0x98165af37b2153df, 641),
    (0xe2a0b5dc971f303a, 667),
    (0xa8d9d1535ce3b396, 694),
    (0xfb9b7cd9a4a7443c, 720),
    (0xbb764c4ca7a44410, 747),
    (0x8bab8eefb6409c1a, 774),
    (0xd01fef10a657842c, 800),
    (0x9b10a4e5e9913129, 827),
    (0xe7109bfba19c0c9d, 853),
    (0xac2820d9623bf429, 880),
    (0x80444b5e7aa7cf85, 907),
    (0xbf21e44003acdd2d, 933),
    (0x8e679c2f5e44ff8f, 960),
    (0xd433179d9c8cb841, 986),
    (0x9e19db92b4e31ba9, 1013),
    (0xeb96bf6ebadf77d9, 1039),
    (0xaf87023b9bf0ee6b, 1066),
];

/// Decimal digits (as ASCII) and exponent of a finite number other than 0, without its sign:
/// the number is `digits * 10^exponent`.
pub(super) fn shortest_digits(number: f64) -> (DigitBuffer, i32) {
    let bits = number.to_bits();
    let fraction = bits & FRACTION_MASK;
    let biased = i32::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
    let (significand, exponent) = if biased == 0 {
        (fraction, 1 - EXPONENT_BIAS)
    } else {
        (fraction | HIDDEN_BIT, biased - EXPONENT_BIAS)
    };

    // Halfway to each neighbour: everything in between reads back as this number.
    let upper = normalize((significand << 1) + 1, exponent - 1);
    let lower_shift = if significand == HIDDEN_BIT { 2 } else { 1 };
    let lower_exponent = exponent - lower_shift;
    let lower = Scaled {
        significand: ((significand << lower_shift) - 1) << (lower_exponent - upper.exponent),
        exponent: upper.exponent,
    };

    let (power, decimal_exponent) = power_of_ten_for(upper.exponent);
    let middle = multiply(normalize(significand, exponent), power);
    let mut upper = multiply(upper, power);
    let mut lower = multiply(lower, power);
    // The products are off by less than one, so narrow the interval to be safe.
    lower.significand += 1;
    upper.significand -= 1;

    let mut digits = DigitBuffer::new();
    let shift = generate_digits(middle, upper, lower, &mut digits);
    (digits, shift - decimal_exponent)
}

fn normalize(significand: u64, exponent: i32) -> Scaled {
    let shift = significand.leading_zeros();
    Scaled {
        significand: significand << shift,
        exponent: exponent - shift.cast_signed(),
    }
}

/// The upper 64 bits of the product, rounded.
fn multiply(left: Scaled, right: Scaled) -> Scaled {
    let product = u128::from(left.significand) * u128::from(right.significand);
    let rounded = (product + (1 << 63)) >> 64;
    Scaled {
        significand: u64::try_from(rounded).unwrap_or(u64::MAX),
        exponent: left.exponent + right.exponent + 64,
    }
}

/// A power of ten that scales a number with this exponent into the range for generating digits, and
/// its decimal exponent. If there are two, the one that Redis finds first.
fn power_of_ten_for(exponent: i32) -> (Scaled, i32) {
    #[allow(clippy::cast_possible_truncation)]
    let guess = (f64::from(-(exponent + 87)) * LOG10_OF_2) as i32;
    let mut index = (guess - FIRST_POWER) / POWER_STEP;
    loop {
        let position = usize::try_from(index).unwrap_or(0);
        let Some((significand, power_exponent)) = POWERS_OF_TEN.get(position).copied() else {
            // Not reached: the table spans every exponent of a double.
            return (
                Scaled {
                    significand: 1 << 63,
                    exponent: -63,
                },
                0,
            );
        };
        let scaled = exponent + power_exponent + 64;
        if scaled < SCALED_EXPONENT_MIN {
            index += 1;
        } else if scaled > SCALED_EXPONENT_MAX {
            index -= 1;
        } else {
            let power = Scaled {
                significand,
                exponent: power_exponent,
            };
            return (power, FIRST_POWER + index * POWER_STEP);
        }
    }
}

/// Generates digits from the left until the remainder is within the interval. Returns the decimal
/// exponent of the last digit.
fn generate_digits(middle: Scaled, upper: Scaled, lower: Scaled, digits: &mut DigitBuffer) -> i32 {
    let distance = upper.significand - middle.significand;
    let mut delta = upper.significand - lower.significand;
    let point = upper.exponent.unsigned_abs();
    let one = 1_u64 << point;

    let mut whole = upper.significand >> point;
    let mut part = upper.significand & (one - 1);

    let mut place = 10;
    let mut divisor = 1_000_000_000_u64;
    while place > 0 {
        let digit = whole / divisor;
        whole %= divisor;
        digits.push(digit);
        place -= 1;
        let rest = (whole << point) + part;
        if rest <= delta {
            digits.round(delta, rest, divisor << point, distance);
            return place;
        }
        divisor /= 10;
    }

    let mut unit = 1_u64;
    loop {
        part = part.wrapping_mul(10);
        delta = delta.wrapping_mul(10);
        unit = unit.wrapping_mul(10);
        digits.push(part >> point);
        part &= one - 1;
        place -= 1;
        if part < delta || digits.is_full() {
            digits.round(delta, part, one, distance.wrapping_mul(unit));
            return place;
        }
    }
}

/// Decimal digits without leading zeros.
pub(super) struct DigitBuffer {
    digits: [u8; DIGITS_MAX],
    length: usize,
}

impl DigitBuffer {
    fn new() -> Self {
        DigitBuffer {
            digits: [b'0'; DIGITS_MAX],
            length: 0,
        }
    }

    /// The digits as ASCII.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.digits.get(..self.length).unwrap_or_default()
    }

    fn is_full(&self) -> bool {
        self.length == DIGITS_MAX
    }

    fn push(&mut self, digit: u64) {
        if digit == 0 && self.length == 0 {
            return;
        }
        if let Some(place) = self.digits.get_mut(self.length) {
            *place = b'0' + u8::try_from(digit % 10).unwrap_or_default();
            self.length += 1;
        }
    }

    /// Lowers the last digit while that brings the digits closer to the number itself.
    fn round(&mut self, delta: u64, mut rest: u64, place: u64, distance: u64) {
        let last = self.length.checked_sub(1);
        let Some(digit) = last.and_then(|last| self.digits.get_mut(last)) else {
            return;
        };
        while rest < distance
            && delta - rest >= place
            && (rest.wrapping_add(place) < distance
                || distance - rest > rest.wrapping_add(place).wrapping_sub(distance))
        {
            *digit = digit.saturating_sub(1);
            rest = rest.wrapping_add(place);
        }
    }
}
