//! Strings as shapes and runs of digits: `order 0000-00` and the numbers.

use std::collections::HashMap;
use std::ops::Range;

use super::{PLAIN, SHAPES, StringList, TEXT, check_size, pack_plain, unpack_plain};
use crate::codec::Level;
use crate::codec::numbers;
use crate::codec::text::Coder;
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// The most digits that always fit into a signed 64-bit number.
const RUN_MAX: usize = 18;
/// The most distinct shapes of a column.
const SHAPES_MAX: usize = 64;
/// The most runs and parts between runs, in all shapes of a column: long texts would have one for each word.
const PARTS_MAX: usize = 4096;

/// Strings as shapes and runs of digits.
pub(super) struct ShapedStrings {
    shapes: StringList,
    which: Vec<i64>,
    /// The runs by shape and by place in the shape.
    runs: Vec<Vec<Vec<i64>>>,
}

/// A part of a shape.
enum ShapePart {
    Literal(Range<usize>),
    Digits(usize),
}

impl ShapedStrings {
    /// `None` if there are too many shapes or parts, or no digits.
    pub(super) fn of(strings: &StringList) -> Option<ShapedStrings> {
        // A shape pays from eight strings up.
        let shapes_max = (strings.len() / 8).clamp(1, SHAPES_MAX);
        let mut parts_left = PARTS_MAX;
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut shaped = ShapedStrings {
            shapes: StringList::new(),
            which: Vec::with_capacity(strings.len()),
            runs: Vec::new(),
        };
        let mut parts: Vec<Vec<ShapePart>> = Vec::new();
        let mut shape = Vec::new();
        let mut last = 0;
        for string in strings.iter() {
            let digitless = |byte: &u8| if byte.is_ascii_digit() { b'0' } else { *byte };
            let same = !parts.is_empty()
                && shape.len() == string.len()
                && string.iter().zip(&shape).all(|(byte, shaped)| digitless(byte) == *shaped);
            if !same {
                shape.clear();
                shape.extend(string.iter().map(digitless));
            }
            let place = match if same { Some(&last) } else { places.get(&shape) } {
                Some(&place) => place,
                None if places.len() == shapes_max => return None,
                None => {
                    let place = places.len();
                    places.insert(shape.clone(), place);
                    shaped.shapes.push(&shape);
                    let its_parts = parts_of(&shape, parts_left)?;
                    parts_left -= its_parts.len();
                    let runs = its_parts.iter().filter(|part| matches!(part, ShapePart::Digits(_))).count();
                    shaped.runs.push(vec![Vec::new(); runs]);
                    parts.push(its_parts);
                    place
                }
            };
            last = place;
            shaped.which.push(place as i64);
            let mut rest = string;
            let mut runs = shaped.runs.get_mut(place)?.iter_mut();
            for part in parts.get(place)? {
                let (size, digits) = match part {
                    ShapePart::Literal(range) => (range.len(), false),
                    ShapePart::Digits(size) => (*size, true),
                };
                let (front, behind) = rest.split_at_checked(size)?;
                rest = behind;
                if digits {
                    let number = front.iter().fold(0, |number, byte| number * 10 + i64::from(byte - b'0'));
                    runs.next()?.push(number);
                }
            }
        }
        let any = shaped.runs.iter().any(|runs| !runs.is_empty());
        any.then_some(shaped)
    }

    /// How many runs of digits the shapes have.
    pub(super) fn runs(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    pub(super) fn pack(&self, level: Level, out: &mut Vec<u8>) -> Result<()> {
        out.push(SHAPES);
        varint::put(out, self.shapes.len() as u64);
        pack_plain(&self.shapes, level, out)?;
        numbers::pack_alone(&self.which, level, out)?;
        self.runs.iter().flatten().try_for_each(|run| numbers::pack_alone(run, level, out))
    }

    /// Passes over them: only the shapes tell how many runs there are.
    pub(super) fn pass(from: &mut Taker<'_>, bytes_max: usize) -> Result<()> {
        let shapes = Self::unpack_shapes(from, bytes_max)?;
        numbers::pass(from)?;
        for part in shapes.iter().filter_map(|shape| parts_of(shape, usize::MAX)).flatten() {
            if matches!(part, ShapePart::Digits(_)) {
                numbers::pass(from)?;
            }
        }
        Ok(())
    }

    fn unpack_shapes(from: &mut Taker<'_>, bytes_max: usize) -> Result<StringList> {
        let count = from.at_most(SHAPES_MAX as u64, "count of shapes")?;
        match from.byte()? {
            PLAIN => unpack_plain(from, Coder::Zstd, count, bytes_max),
            TEXT => unpack_plain(from, Coder::Ppmd, count, bytes_max),
            other => Err(Error::damaged("shapes", format!("code {other}"), "plain strings")),
        }
    }

    pub(super) fn unpack(from: &mut Taker<'_>, count: usize, bytes_max: usize) -> Result<StringList> {
        let shapes = Self::unpack_shapes(from, bytes_max)?;
        let which = numbers::unpack(from, &[], count)?;
        let mut parts = Vec::with_capacity(shapes.len());
        for shape in shapes.iter() {
            let mut of_shape = Vec::new();
            for part in parts_of(shape, usize::MAX).into_iter().flatten() {
                let runs = match part {
                    ShapePart::Literal(_) => Vec::new(),
                    ShapePart::Digits(_) => numbers::unpack(from, &[], count)?,
                };
                of_shape.push((part, runs.into_iter()));
            }
            parts.push((shape, of_shape));
        }
        let mut strings = StringList::new();
        for place in which {
            let known = usize::try_from(place).ok().and_then(|place| parts.get_mut(place));
            let (shape, parts) = known
                .ok_or_else(|| Error::damaged("shapes", format!("shape {place}"), "one of the shapes"))?;
            check_size(strings.bytes.len() + shape.len(), bytes_max)?;
            for (part, runs) in parts {
                match part {
                    ShapePart::Literal(range) => {
                        strings.bytes.extend_from_slice(shape.get(range.clone()).unwrap_or_default());
                    }
                    ShapePart::Digits(size) => {
                        let run = runs
                            .next()
                            .ok_or_else(|| Error::damaged("shapes", "their end", "another run of digits"))?;
                        put_digits(&mut strings.bytes, run, *size)?;
                    }
                }
            }
            strings.ends.push(strings.bytes.len());
        }
        Ok(strings)
    }
}

/// `None` if there are more than `count_max`.
fn parts_of(shape: &[u8], count_max: usize) -> Option<Vec<ShapePart>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(&byte) = shape.get(at) {
        if parts.len() == count_max {
            return None;
        }
        let rest = shape.get(at..).unwrap_or_default();
        let digits = byte == b'0';
        let size = rest.iter().take_while(|&&byte| (byte == b'0') == digits).count();
        if digits {
            let size = size.min(RUN_MAX);
            parts.push(ShapePart::Digits(size));
            at += size;
        } else {
            parts.push(ShapePart::Literal(at..at + size));
            at += size;
        }
    }
    Some(parts)
}

fn put_digits(out: &mut Vec<u8>, number: i64, size: usize) -> Result<()> {
    let mut rest =
        u64::try_from(number).map_err(|_| Error::damaged("digits", number.to_string(), "at least 0"))?;
    let mut digits = [b'0'; RUN_MAX];
    let mut left = size;
    for pair in digits.as_rchunks_mut::<2>().1.iter_mut().rev() {
        let [high, low] = pair;
        let two = (rest % 100) as u8;
        if left < 2 || rest == 0 {
            break;
        }
        (*high, *low) = (b'0' + two / 10, b'0' + two % 10);
        rest /= 100;
        left -= 2;
    }
    if left > 0 && rest > 0 {
        if let Some(digit) = digits.get_mut(RUN_MAX - size) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
    }
    if rest != 0 {
        return Err(Error::damaged("digits", number.to_string(), "no more digits than their shape has"));
    }
    out.extend_from_slice(digits.get(RUN_MAX - size..).unwrap_or_default());
    Ok(())
}
