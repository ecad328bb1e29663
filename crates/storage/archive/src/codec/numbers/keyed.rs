//! Numbers as steps from their own values in the last row with the same key: positions of vehicles, readings of devices, whose rows stand
//! in any order. Floating-point numbers that are decimals become whole numbers first, so that steps are small.
//!
//! ```text
//! key     varint  how many columns back the key is, at least 1
//! form    1       0 the numbers as they are | 1 to 16: doubles that are decimals with 0 to 15 digits after the point
//!                 | 33 to 48: floats that are such
//! steps   bytes   length, then pco's standalone format for signed 64-bit numbers: each number minus that of the last row with the
//!                 same key; of a key's first row, minus that of the row before
//! ```

use std::ops::Range;

use super::decimals::{DIGITS_MAX, DecimalPlaces};
use super::earlier::{EarlierColumns, ROWS_OF_KEY};
use super::previous::PreviousRows;
use super::{FloatKind, LEVEL, LEVEL_SAMPLE, estimate, pco, unpco};
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// The forms: the first one of doubles, and that of floats.
const AS_THEY_ARE: u8 = 0;
const DOUBLES: u8 = 1;
const FLOATS: u8 = 33;

/// A column that may become steps.
pub(super) struct KeyedSteps<'a> {
    /// The numbers, or the whole numbers of the decimals that they are.
    numbers: &'a [i64],
    whole: Option<(DecimalPlaces, Vec<i64>)>,
    key: Option<(usize, &'a PreviousRows)>,
    /// The size of the sample's steps.
    size: usize,
}

impl<'a> KeyedSteps<'a> {
    /// The key and form that make the rows in these places smallest; `None`: there is no key. `kind`: they may be such
    /// floating-point numbers.
    pub(super) fn find(
        numbers: &'a [i64],
        places: &[Range<usize>],
        kind: Option<FloatKind>,
        before: &'a EarlierColumns<'_>,
    ) -> Result<Option<KeyedSteps<'a>>> {
        if before.keys(numbers.len()).next().is_none() {
            return Ok(None);
        }
        let mut found = KeyedSteps { numbers, whole: None, key: None, size: usize::MAX };
        let plain = found.best_key(places, before);
        found.whole = kind.and_then(|kind| whole_numbers(kind, numbers, places));
        let best = match found.whole.is_some().then(|| found.best_key(places, before)).flatten() {
            Some(decimal) if plain.as_ref().is_none_or(|plain| decimal.0 < plain.0) => Some(decimal),
            _ => {
                found.whole = None;
                plain
            }
        };
        let Some((_, key, steps)) = best else { return Ok(None) };
        found.key = Some(key);
        found.size = pco(&steps, LEVEL_SAMPLE)?.len();
        Ok(Some(found))
    }

    fn numbers(&self) -> &[i64] {
        self.whole.as_ref().map_or(self.numbers, |(_, whole)| whole)
    }

    /// The key whose steps are smallest in these places, with an estimate of their size and the steps.
    fn best_key(
        &self,
        places: &[Range<usize>],
        before: &'a EarlierColumns<'_>,
    ) -> Option<(usize, (usize, &'a PreviousRows), Vec<i64>)> {
        let mut best: Option<(usize, (usize, &'a PreviousRows), Vec<i64>)> = None;
        for (back, previous) in before.keys(self.numbers.len()) {
            let rows = places.iter().cloned().flatten();
            let steps: Vec<i64> = rows.map(|row| step(self.numbers(), previous, row)).collect();
            let bits = estimate_steps(&steps);
            if best.as_ref().is_none_or(|(least, ..)| bits < *least) {
                best = Some((bits, (back, previous), steps));
            }
        }
        best
    }

    /// The size of the sample's steps.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// How many columns back the key is.
    pub(super) fn back(&self) -> usize {
        self.key.map_or(0, |(back, _)| back)
    }

    /// Appends the code of the column.
    pub(super) fn pack(&self, out: &mut Vec<u8>) -> Result<()> {
        let Some((back, previous)) = self.key else {
            return Err(Error::damaged("key", "no column", "one that was found"));
        };
        let rows = 0..self.numbers.len();
        let steps: Vec<i64> = rows.map(|row| step(self.numbers(), previous, row)).collect();
        varint::put(out, back as u64);
        out.push(match &self.whole {
            None => AS_THEY_ARE,
            Some((decimals, _)) if decimals.kind() == FloatKind::Doubles => DOUBLES + decimals.digits(),
            Some((decimals, _)) => FLOATS + decimals.digits(),
        });
        varint::put_bytes(out, &pco(&steps, LEVEL)?);
        Ok(())
    }
}

/// The whole numbers of a column that are decimals all.
fn whole_numbers(
    kind: FloatKind,
    numbers: &[i64],
    places: &[Range<usize>],
) -> Option<(DecimalPlaces, Vec<i64>)> {
    let sample = places.iter().flat_map(|place| numbers.get(place.clone()).unwrap_or_default()).copied();
    let decimals = DecimalPlaces::of_all(kind, &sample.collect::<Vec<_>>())?;
    let whole: Option<Vec<i64>> = numbers.iter().map(|&number| decimals.whole(number)).collect();
    Some((decimals, whole?))
}

/// A number minus that of the row from which its row steps.
fn step(numbers: &[i64], previous: &PreviousRows, row: usize) -> i64 {
    let number = numbers.get(row).copied().unwrap_or_default();
    number.wrapping_sub(base(numbers, previous, row))
}

fn base(numbers: &[i64], previous: &PreviousRows, row: usize) -> i64 {
    previous.before(row).and_then(|before| numbers.get(before)).copied().unwrap_or_default()
}

/// A rough size of steps, in bits.
fn estimate_steps(steps: &[i64]) -> usize {
    let alone: u32 = steps.iter().map(|step| u64::BITS - step.unsigned_abs().leading_zeros() + 1).sum();
    (alone as usize).min(estimate(steps))
}

/// Takes a column of `count` numbers.
pub(super) fn unpack(from: &mut Taker<'_>, before: &[&[i64]], count: usize) -> Result<Vec<i64>> {
    let back = from.at_most(before.len() as u64, "key")?;
    let keys = back.checked_sub(1).and_then(|back| before.iter().rev().nth(back)).copied();
    let keys = keys.filter(|keys| keys.len() == count).ok_or_else(|| {
        Error::damaged("key", "no column, or one of another length", "as many numbers as this column has")
    })?;
    let decimals = decimals_of(from.byte()?)?;
    let previous = PreviousRows::of(keys, count / ROWS_OF_KEY).ok_or_else(|| {
        Error::damaged("key", "more different values", "at most one for each four of its rows")
    })?;
    let mut numbers = unpco(from.bytes()?, vec![0i64; count])?;
    for row in 0..count {
        let base = base(&numbers, &previous, row);
        if let Some(number) = numbers.get_mut(row) {
            *number = number.wrapping_add(base);
        }
    }
    if let Some(decimals) = decimals {
        numbers.iter_mut().for_each(|number| *number = decimals.bits(*number));
    }
    Ok(numbers)
}

/// The decimals of a form.
fn decimals_of(form: u8) -> Result<Option<DecimalPlaces>> {
    const DOUBLES_MAX: u8 = DOUBLES + DIGITS_MAX;
    const FLOATS_MAX: u8 = FLOATS + DIGITS_MAX;
    match form {
        AS_THEY_ARE => Ok(None),
        DOUBLES..=DOUBLES_MAX => Ok(DecimalPlaces::new(FloatKind::Doubles, form - DOUBLES)),
        FLOATS..=FLOATS_MAX => Ok(DecimalPlaces::new(FloatKind::Floats, form - FLOATS)),
        other => Err(Error::damaged("column of numbers", format!("form {other}"), "0 to 16 or 33 to 48")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pack, unpack};
    use super::*;
    use crate::codec::Level;

    /// Numbers as random as a small generator makes them.
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    /// Rows of devices in any order, and what each measured: it moves by little.
    fn readings(of: impl Fn(i64) -> i64) -> (Vec<i64>, Vec<i64>) {
        let mut state = 1;
        let mut last: Vec<i64> = (0..50).map(|_| random(&mut state, 90_000_000) as i64).collect();
        let mut devices = Vec::new();
        let mut values = Vec::new();
        for _ in 0..4000 {
            let device = random(&mut state, 50) as usize;
            last[device] += random(&mut state, 200) as i64 - 100;
            devices.push(device as i64);
            values.push(of(last[device]));
        }
        (devices, values)
    }

    /// The size of the column's code, which gives it back.
    fn round(devices: &[i64], values: &[i64]) -> usize {
        let mut packed = Vec::new();
        pack(values, &EarlierColumns::of([devices]), Level::Default, &mut packed).unwrap();
        let back = unpack(&mut Taker::new(&packed), &[devices], values.len()).unwrap();
        assert!(back == values);
        for at in 0..packed.len() {
            let cut = unpack(&mut Taker::new(&packed[..at]), &[devices], values.len());
            assert!(cut.is_err(), "{at}");
            let mut bad = packed.clone();
            bad[at] ^= 0x55;
            let _ = unpack(&mut Taker::new(&bad), &[devices], values.len());
        }
        assert!(unpack(&mut Taker::new(&packed), &[&devices[1..]], values.len()).is_err());
        assert!(unpack(&mut Taker::new(&packed), &[], values.len()).is_err());
        packed.len()
    }

    #[test]
    fn numbers_doubles_and_floats_of_rows_by_key_take_what_their_steps_take() {
        // Steps of 200 values: eight bits each, and what the first rows take.
        let most = 4000 + 50 * 4 + 300;
        let (devices, values) = readings(|value| value);
        assert!(round(&devices, &values) < most);
        let (devices, values) = readings(|value| (value as f64 / 1e6).to_bits() as i64);
        assert!(round(&devices, &values) < most);
        let (devices, values) =
            readings(|value| i64::from((((value % 100_000) as f64 / 100.0) as f32).to_bits() as i32));
        assert!(round(&devices, &values) < most);
        // Doubles of all bits: the steps are those of their bits, 37 of them.
        let (devices, values) = readings(|value| (value as f64 / 1e6).sqrt().to_bits() as i64);
        let size = round(&devices, &values);
        assert!(size < 4000 * 6, "{size}");
    }

    #[test]
    fn what_has_no_key_is_coded_as_before() {
        let (devices, values) = readings(|value| value);
        let same = vec![1; values.len()];
        let own: Vec<i64> = (0..values.len() as i64).map(|row| row * row).collect();
        for keys in [&same, &own, &devices[1..].to_vec()] {
            let mut packed = Vec::new();
            pack(&values, &EarlierColumns::of([keys.as_slice()]), Level::Default, &mut packed).unwrap();
            let mut alone = Vec::new();
            pack(&values, &EarlierColumns::default(), Level::Default, &mut alone).unwrap();
            assert!(packed == alone);
        }
    }

    #[test]
    fn forms_that_are_none_are_refused() {
        for form in [17, 32, 49, 255] {
            assert!(decimals_of(form).is_err(), "{form}");
        }
        assert!(decimals_of(0).unwrap().is_none());
        assert!([1, 16, 33, 48].iter().all(|&form| decimals_of(form).unwrap().is_some()));
    }
}
