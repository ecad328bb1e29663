//! Floating-point numbers that are decimals, as the whole numbers of their last digits: 52.5200 as 525200, four digits after the point.

use super::FloatKind;

/// The most digits after the point: a double has up to 17 significant ones, a float up to 9.
pub(super) const DIGITS_MAX: u8 = 15;
const DIGITS_MAX_FLOAT: u8 = 5;
/// Beyond this a double has no whole numbers of its own: 2^53.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Powers of ten, which are doubles exactly.
const POWERS: [f64; 1 + DIGITS_MAX as usize] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Decimals with so many digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecimalPlaces {
    kind: FloatKind,
    digits: u8,
}

impl DecimalPlaces {
    /// `None`: there are none with so many digits.
    pub(super) fn new(kind: FloatKind, digits: u8) -> Option<DecimalPlaces> {
        (digits <= DIGITS_MAX).then_some(DecimalPlaces { kind, digits })
    }

    /// The least digits of which all these numbers are decimals, if there are so few.
    pub(super) fn of_all(kind: FloatKind, numbers: &[i64]) -> Option<DecimalPlaces> {
        let digits_max = if kind == FloatKind::Doubles { DIGITS_MAX } else { DIGITS_MAX_FLOAT };
        let mut decimals = DecimalPlaces { kind, digits: 0 };
        for &number in numbers {
            while decimals.whole(number).is_none() {
                if decimals.digits == digits_max {
                    return None;
                }
                decimals.digits += 1;
            }
        }
        Some(decimals)
    }

    pub(super) fn kind(self) -> FloatKind {
        self.kind
    }

    pub(super) fn digits(self) -> u8 {
        self.digits
    }

    fn power(self) -> f64 {
        POWERS.get(usize::from(self.digits)).copied().unwrap_or(1.0)
    }

    /// The whole number that stands for these bits, if one does.
    pub(super) fn whole(self, bits: i64) -> Option<i64> {
        let number = match self.kind {
            FloatKind::Doubles => f64::from_bits(bits as u64),
            FloatKind::Floats => f64::from(f32::from_bits(bits as u32)),
        };
        let whole = (number * self.power()).round();
        let fits = whole.abs() <= WHOLE_MAX && self.bits(whole as i64) == bits;
        fits.then_some(whole as i64)
    }

    /// The bits that a whole number stands for: its quotient, rounded as IEEE 754 says, is the same everywhere.
    pub(super) fn bits(self, whole: i64) -> i64 {
        let number = whole as f64 / self.power();
        match self.kind {
            FloatKind::Doubles => number.to_bits() as i64,
            FloatKind::Floats => i64::from((number as f32).to_bits() as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(numbers: &[f64]) -> Vec<i64> {
        numbers.iter().map(|number| number.to_bits() as i64).collect()
    }

    #[test]
    fn decimals_are_told_by_their_digits_and_other_numbers_are_none() {
        for (numbers, digits) in [
            (&[1.0, -7.0, 0.0][..], Some(0)),
            (&[52.52, 13.404954], Some(6)),
            (&[-0.1, 1234567.25], Some(2)),
            (&[0.1 + 0.2], None),
            (&[1.0 / 3.0], None),
            (&[-0.0], None),
            (&[1e17], None),
            (&[f64::NAN], None),
            (&[f64::INFINITY], None),
        ] {
            let found = DecimalPlaces::of_all(FloatKind::Doubles, &bits(numbers));
            assert_eq!(found.map(DecimalPlaces::digits), digits, "{numbers:?}");
            for bits in bits(numbers) {
                if let Some(found) = found {
                    assert_eq!(found.bits(found.whole(bits).unwrap()), bits);
                }
            }
        }
        let floats: Vec<i64> =
            [37.5f32, -0.1, 99.9].iter().map(|float| i64::from(float.to_bits() as i32)).collect();
        let found = DecimalPlaces::of_all(FloatKind::Floats, &floats).unwrap();
        assert_eq!(found.digits(), 1);
        assert_eq!(floats.iter().map(|&bits| found.whole(bits).unwrap()).collect::<Vec<_>>(), [375, -1, 999]);
        let third = i64::from((1.0f32 / 3.0).to_bits() as i32);
        assert!(DecimalPlaces::of_all(FloatKind::Floats, &[third]).is_none());
        assert!(DecimalPlaces::new(FloatKind::Doubles, DIGITS_MAX + 1).is_none());
    }
}
