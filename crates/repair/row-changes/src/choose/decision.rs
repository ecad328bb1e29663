//! Decides a condition over a row, by its images: as they were logged, or with the columns that were found for them.
//!
//! `None` is SQL's unknown. What an image lacks is an error only where the decision depends on it.

use std::borrow::Cow;
use std::cmp::Ordering;

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{ColumnKind, Row, RowImage};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, ValueWithSpan};

use super::collations::{is_hex_of_another_text, is_of_ascii, meet_by_rule};
use super::condition::{Condition, ConditionError};
use super::literals::{ConditionImage, is_hex, is_number, literal, literal_text, side_of};
use super::numbers::{is_not_zero, is_numeric, may_be_clock, may_be_year, shown_double, year_of};
use super::proof::{Doubt, bounded, compared, liked};
use super::scalar::{Scalar, TextRule, is_like};
use crate::table::{TableColumn, WrittenTable};

impl Condition {
    /// Whether a row meets it, in one of its images.
    pub(crate) fn is_met(&self, table: &WrittenTable, row: &Row<'_, '_>) -> Result<bool, ConditionError> {
        let mut is_met = false;
        let mut lacking = None;
        // What the image after an update lacks, the update left alone; of the one before it the other tells nothing.
        for (image, other) in [(row.after, row.before), (row.before, None)] {
            let Some(image) = image else { continue };
            match (RowDecision { table, row, image, other }).is_true(&self.0) {
                Ok(is) => is_met |= is == Some(true),
                Err(error @ ConditionError::NotLogged { .. }) => lacking = lacking.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match lacking {
            Some(error) if !is_met => Err(error),
            _ => Ok(is_met),
        }
    }
}

/// A row whose columns are looked up in one image, and in the other where that tells what the image lacks.
struct RowDecision<'r, 'a> {
    table: &'r WrittenTable,
    row: &'r Row<'r, 'a>,
    image: RowImage<'r, 'a>,
    other: Option<RowImage<'r, 'a>>,
}

impl<'a> RowDecision<'_, 'a> {
    /// The value of a condition; `None`: unknown.
    fn is_true(&self, expr: &Expr) -> Result<Option<bool>, ConditionError> {
        Ok(match expr {
            Expr::Nested(expr) => self.is_true(expr)?,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.is_true(expr)?.map(|is| !is),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => self.joined(left, right, false)?,
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => self.joined(left, right, true)?,
            Expr::BinaryOp { left, op: BinaryOperator::Xor, right } => {
                self.is_true(left)?.zip(self.is_true(right)?).map(|(one, two)| one != two)
            }
            Expr::BinaryOp { left, op, right } => self.compare(left, op, right)?,
            Expr::IsNull(expr) => Some(self.scalar(expr)? == Scalar::Null),
            Expr::IsNotNull(expr) => Some(self.scalar(expr)? != Scalar::Null),
            Expr::IsTrue(expr) => Some(self.is_true(expr)? == Some(true)),
            Expr::IsFalse(expr) => Some(self.is_true(expr)? == Some(false)),
            Expr::IsNotTrue(expr) => Some(self.is_true(expr)? != Some(true)),
            Expr::IsNotFalse(expr) => Some(self.is_true(expr)? != Some(false)),
            Expr::InList { expr, list, negated } => self.is_in(expr, list)?.map(|is| is != *negated),
            Expr::Between { expr, negated, low, high } => {
                self.is_between(expr, low, high)?.map(|is| is != *negated)
            }
            Expr::Like { negated, expr, pattern, escape_char, .. } => {
                self.is_like(expr, pattern, escape_char.as_ref())?.map(|is| is != *negated)
            }
            other => self.is_not_zero(other)?,
        })
    }

    /// Whether a value is in a list.
    fn is_in(&self, expr: &Expr, list: &[Expr]) -> Result<Option<bool>, ConditionError> {
        let value = self.scalar(expr)?;
        self.prove_list(expr, list)?;
        let mut has_null = false;
        // Of a longer list no number is made a year.
        let is_single = list.len() == 1;
        for item in list {
            let item_value = match is_single {
                true => self.beside(expr, item)?,
                false if is_hex(item) => self.beside_hex(expr, self.scalar(item)?)?,
                false => self.scalar(item)?,
            };
            self.prove((expr, &value), (item, &item_value), false)?;
            match value.compare(&item_value) {
                Some(order) if order.is_eq() => return Ok(Some(true)),
                Some(_) => {}
                None => has_null = true,
            }
        }
        Ok((!has_null).then_some(false))
    }

    /// Whether a value lies between two bounds.
    fn is_between(&self, expr: &Expr, low: &Expr, high: &Expr) -> Result<Option<bool>, ConditionError> {
        let value = self.scalar(expr)?;
        let bounds = (self.beside(expr, low)?, self.beside(expr, high)?);
        let exprs = [expr, low, high];
        if self.have_collations(&exprs) {
            return Err(doubtful(expr, Doubt::Collations));
        }
        let is_plain = !exprs.into_iter().any(is_hex);
        // A NULL has its column's type, by which the others are compared.
        let kinds = exprs.map(|expr| self.kind(expr));
        let are_null = [&value, &bounds.0, &bounds.1].map(|value| *value == Scalar::Null);
        let has_null = |is: fn(ColumnKind) -> bool| {
            are_null.into_iter().zip(kinds).any(|(is_null, kind)| is_null && kind.is_some_and(is))
        };
        let nulls = (has_null(is_numeric), has_null(|kind| !is_numeric(kind)));
        // With a column for a bound the server doesn't compare a YEAR as a number.
        if kinds.contains(&Some(ColumnKind::Year)) && ![low, high].into_iter().all(is_number) {
            return Err(doubtful(expr, Doubt::Year));
        }
        let (value, bounds) =
            bounded(value, bounds, nulls, is_plain).map_err(|doubt| doubtful(low, doubt))?;
        self.prove((expr, &value), (low, &bounds.0), true)?;
        self.prove((expr, &value), (high, &bounds.1), true)?;
        let is_above_low = value.compare(&bounds.0).map(|order| order.is_ge());
        let is_below_high = value.compare(&bounds.1).map(|order| order.is_le());
        Ok(match (is_above_low, is_below_high) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    /// Whether a value's text is like a pattern.
    fn is_like(
        &self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Result<Option<bool>, ConditionError> {
        let shown = self.shown(expr)?;
        let pattern_value = self.scalar(pattern)?;
        let escape_letter = match escape {
            Some(letter) => literal_text(letter).and_then(|text| text.chars().next()),
            None => Some('\\'),
        };
        liked(&shown, &pattern_value, escape_letter).map_err(|doubt| doubtful(expr, doubt))?;
        let both = shown.text().zip(pattern_value.text());
        Ok(both.map(|((text, rule), (pattern, _))| is_like(&text, &pattern, escape_letter, rule)))
    }

    /// Whether a value alone is true: it is unless it is 0.
    fn is_not_zero(&self, expr: &Expr) -> Result<Option<bool>, ConditionError> {
        match &self.scalar(expr)? {
            Scalar::Clock(clock) => is_not_zero(clock).map(Some).map_err(|doubt| doubtful(expr, doubt)),
            Scalar::Moment(seconds, micros) => Ok(Some((*seconds, *micros) != (0, 0))),
            value => Ok(value.compare(&Scalar::Number(Cow::Borrowed("0"))).map(|order| order.is_ne())),
        }
    }

    /// AND, which one false side decides, or OR, which one true side decides: even where the log lacks what the other needs.
    fn joined(&self, left: &Expr, right: &Expr, deciding: bool) -> Result<Option<bool>, ConditionError> {
        let lacks = |side: &Result<Option<bool>, ConditionError>| {
            matches!(side, Err(ConditionError::NotLogged { .. }))
        };
        match (self.is_true(left), self.is_true(right)) {
            (Ok(Some(is)), right) if is == deciding && lacks(&right) => Ok(Some(deciding)),
            (left, Ok(Some(is))) if is == deciding && lacks(&left) => Ok(Some(deciding)),
            (left, right) => Ok(match (left?, right?) {
                (Some(is), _) | (_, Some(is)) if is == deciding => Some(deciding),
                (Some(_), Some(_)) => Some(!deciding),
                _ => None,
            }),
        }
    }

    fn compare(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Option<bool>, ConditionError> {
        let left_expr = left;
        let right_expr = right;
        let (left, right) = (self.beside(right, left)?, self.beside(left, right)?);
        let is_order = matches!(
            op,
            BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq
        );
        self.prove((left_expr, &left), (right_expr, &right), is_order)?;
        if *op == BinaryOperator::Spaceship {
            let are_null = left == Scalar::Null && right == Scalar::Null;
            return Ok(Some(are_null || left.compare(&right).is_some_and(|order| order.is_eq())));
        }
        let holds = match op {
            BinaryOperator::Eq => Ordering::is_eq,
            BinaryOperator::NotEq => Ordering::is_ne,
            BinaryOperator::Lt => Ordering::is_lt,
            BinaryOperator::LtEq => Ordering::is_le,
            BinaryOperator::Gt => Ordering::is_gt,
            BinaryOperator::GtEq => Ordering::is_ge,
            other => return Err(ConditionError::Unknown(format!("the operator {other}"))),
        };
        Ok(left.compare(&right).map(holds))
    }

    /// Refuses a comparison that a server may make otherwise.
    fn prove(
        &self,
        (one, value): (&Expr, &Scalar<'_>),
        (two, other): (&Expr, &Scalar<'_>),
        is_order: bool,
    ) -> Result<(), ConditionError> {
        let kinds = [one, two].map(|expr| self.kind(expr));
        let are_known = *value != Scalar::Null && *other != Scalar::Null;
        let doubt = match kinds {
            [Some(_), Some(_)] if !self.are_comparable(one, two) => Some(Doubt::Collations),
            _ if !are_known => None,
            _ if is_hex(one) && is_hex_of_another_text(value, other) => Some(Doubt::Hex),
            _ if is_hex(two) && is_hex_of_another_text(other, value) => Some(Doubt::Hex),
            [Some(ColumnKind::Json { .. }), _] | [_, Some(ColumnKind::Json { .. })] => Some(Doubt::Json),
            [Some(ColumnKind::Year), None] if may_be_year(two, other) => Some(Doubt::Year),
            [None, Some(ColumnKind::Year)] if may_be_year(one, value) => Some(Doubt::Year),
            [Some(ColumnKind::Year), Some(_)] if matches!(other, Scalar::Clock(_)) => Some(Doubt::Clock),
            [Some(_), Some(ColumnKind::Year)] if matches!(value, Scalar::Clock(_)) => Some(Doubt::Clock),
            [Some(_), None] if may_be_clock(other, value) => Some(Doubt::Clock),
            [None, Some(_)] if may_be_clock(value, other) => Some(Doubt::Clock),
            _ if is_hex(one) != is_hex(two) && ![value, other].into_iter().all(Scalar::is_text) => {
                Some(Doubt::Hex)
            }
            _ if matches!((value, other), (Scalar::Member(..), Scalar::Member(..)))
                && self.place(one) != self.place(two) =>
            {
                Some(Doubt::Members)
            }
            _ => compared(value, other, is_order).err(),
        };
        doubt.map_or(Ok(()), |doubt| Err(doubtful(one, doubt)))
    }

    /// Refuses lists that servers compare by rules of their own: a BIT beside anything but numbers byte by byte, and negative
    /// numbers beside those above all signed ones as if both were of one kind.
    fn prove_list(&self, expr: &Expr, list: &[Expr]) -> Result<(), ConditionError> {
        let mut has_bit = false;
        let mut has_others = false;
        let mut has_negative = false;
        let mut has_large = false;
        for one in list.iter().chain([expr]) {
            has_bit |= matches!(self.kind(one), Some(ColumnKind::Bit { .. }));
            match self.scalar(one)? {
                Scalar::Number(text) => {
                    has_negative |= text.starts_with('-');
                    has_large |= text.parse::<f64>().is_ok_and(|number| number >= 2_f64.powi(63));
                }
                Scalar::Null | Scalar::Double(_) => {}
                _ => has_others = true,
            }
        }
        if has_bit && has_others || has_negative && has_large {
            return Err(doubtful(expr, Doubt::List));
        }
        let exprs: Vec<&Expr> = list.iter().chain([expr]).collect();
        if list.len() > 1 && self.have_collations(&exprs) {
            return Err(doubtful(expr, Doubt::Collations));
        }
        // Whether a number is taken for a year depends on the others.
        if is_number(expr) && list.iter().any(|one| self.is_year(one))
            || self.is_year(expr) && list.iter().any(is_number) && !list.iter().all(is_number)
        {
            return Err(doubtful(expr, Doubt::Year));
        }
        Ok(())
    }

    fn is_year(&self, expr: &Expr) -> bool {
        matches!(self.kind(expr), Some(ColumnKind::Year))
    }

    /// The collation of a column.
    fn collation(&self, expr: &Expr) -> Option<u64> {
        self.table.schema.columns().get(self.place(expr)?)?.collation
    }

    /// Whether columns of several collations are among these: the server compares all of them by one.
    fn have_collations(&self, exprs: &[&Expr]) -> bool {
        let mut collations = exprs.iter().filter_map(|expr| self.collation(expr));
        let first = collations.next();
        collations.any(|collation| Some(collation) != first)
    }

    /// Whether two columns are compared by the rule that counts more here.
    fn are_comparable(&self, one: &Expr, two: &Expr) -> bool {
        let both = self.collation(one).zip(self.collation(two));
        both.is_none_or(|(one, two)| one == two || meet_by_rule(one, two))
    }

    /// The value of one side of a comparison: a number beside a YEAR is the year that the column would store.
    fn beside<'s>(&'s self, other: &Expr, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        let value = self.scalar(expr)?;
        match self.kind(other) {
            Some(ColumnKind::Year) if is_number(expr) => {
                year_of(value).ok_or_else(|| doubtful(expr, Doubt::Year))
            }
            Some(_) if is_hex(expr) => self.beside_hex(other, value),
            _ => Ok(value),
        }
    }

    /// A hexadecimal literal beside a column: its bytes are letters to the column's collation.
    fn beside_hex<'s>(&'s self, other: &Expr, literal: Scalar<'s>) -> Result<Scalar<'s>, ConditionError> {
        let text = match &literal {
            Scalar::Bytes(bytes) if bytes.is_ascii() => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        };
        let is_text = self.collation(other).and_then(Charset::of_collation).is_some_and(is_of_ascii)
            && !matches!(self.kind(other), Some(ColumnKind::Enum { .. } | ColumnKind::Set { .. }));
        Ok(match text.filter(|_| is_text) {
            Some(text) => Scalar::Text { text: text.into(), rule: TextRule::Letters },
            None => literal,
        })
    }

    /// The value as LIKE sees it: of a number its text.
    fn shown<'s>(&'s self, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        let value = self.scalar(expr)?;
        let Scalar::Double(number) = value else { return Ok(value) };
        let is_float = matches!(self.kind(expr), Some(ColumnKind::Float));
        match shown_double(number, is_float) {
            Some(text) => Ok(Scalar::Text { text: text.into(), rule: TextRule::Letters }),
            None => Err(doubtful(expr, Doubt::Shown)),
        }
    }

    /// The type of a column; `None`: it is none.
    fn kind(&self, expr: &Expr) -> Option<ColumnKind> {
        self.table.schema.columns().get(self.place(expr)?).map(|column| column.kind)
    }

    /// The index of the column that an expression is; `None`: it is none.
    fn place(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Nested(expr) => self.place(expr),
            Expr::Identifier(name) => self.index(&name.value).ok(),
            Expr::CompoundIdentifier(parts) => self.index(side_of(parts)?.1).ok(),
            _ => None,
        }
    }

    fn scalar<'s>(&'s self, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        Ok(match expr {
            Expr::Nested(expr) => self.scalar(expr)?,
            Expr::Identifier(name) => self.column(&name.value, None)?,
            Expr::CompoundIdentifier(parts) => match side_of(parts) {
                Some((side, column)) => self.column(column, Some(side))?,
                None => Scalar::Null,
            },
            Expr::Value(value) => literal(&value.value).unwrap_or(Scalar::Null),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.scalar(expr)? {
                Scalar::Number(text) => Scalar::Number(match text.strip_prefix('-') {
                    Some(digits) => digits.to_owned().into(),
                    None => format!("-{text}").into(),
                }),
                Scalar::Double(number) => Scalar::Double(-number),
                _ => Scalar::Null,
            },
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.scalar(expr)?,
            condition => match self.is_true(condition)? {
                Some(is) => Scalar::Number(Cow::Borrowed(if is { "1" } else { "0" })),
                None => Scalar::Null,
            },
        })
    }

    /// The place of a column.
    fn index(&self, name: &str) -> Result<usize, ConditionError> {
        let columns = &self.table.columns;
        let lower = name.to_lowercase();
        let named = columns.iter().position(|column| {
            column.name.as_deref().is_some_and(|own| String::from_utf8_lossy(own).to_lowercase() == lower)
        });
        named.or_else(|| by_number(name).filter(|index| *index < columns.len())).ok_or_else(|| {
            let table = self.table.shown();
            match self.table.has_names || name.starts_with('@') {
                true => ConditionError::NoColumn { table, column: name.to_owned() },
                false => ConditionError::NoNames { table },
            }
        })
    }

    fn column(&self, name: &str, side: Option<ConditionImage>) -> Result<Scalar<'a>, ConditionError> {
        let index = self.index(name)?;
        let cell = match side {
            None => self.image.cell(index).or_else(|| self.other.and_then(|other| other.cell(index))),
            Some(ConditionImage::Before) => self.row.before.and_then(|before| before.cell(index)),
            // An update left alone what its image lacks.
            Some(ConditionImage::After) => self.row.after.and_then(|after| {
                after.cell(index).or_else(|| self.row.before.and_then(|before| before.cell(index)))
            }),
        };
        let has_image = match side {
            None => true,
            Some(ConditionImage::Before) => self.row.before.is_some(),
            Some(ConditionImage::After) => self.row.after.is_some(),
        };
        match cell {
            Some(cell) => Scalar::of(&cell, self.table.columns.get(index)).ok_or_else(|| {
                self.not_logged(index, "its value can't be told, as of a JSON document that changed in part")
            }),
            None if has_image => Err(self.not_logged(
                index,
                "the image lacks it (binlog_row_image=FULL writes all columns), so it can't be told",
            )),
            None => Ok(Scalar::Null),
        }
    }

    fn not_logged(&self, index: usize, why: &'static str) -> ConditionError {
        ConditionError::NotLogged {
            table: self.table.shown(),
            column: self.table.columns.get(index).map(TableColumn::shown).unwrap_or_default(),
            why,
        }
    }
}

/// The place of a column that is called by its number, as `@3`.
fn by_number(name: &str) -> Option<usize> {
    name.strip_prefix('@')?.parse::<usize>().ok()?.checked_sub(1)
}

fn doubtful(expr: &Expr, doubt: Doubt) -> ConditionError {
    ConditionError::Doubtful { expression: expr.to_string(), doubt }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use binlogz_binlog::EventType;
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, RowsEvent, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use binlogz_binlog::row::{CellContent, RowDecoder, TableSchema};

    use super::*;

    /// Whether an update of a row of three INT columns meets a condition; a column without a number isn't logged.
    fn is_met(text: &str, before: [Option<u8>; 3], after: [Option<u8>; 3]) -> Result<bool, ConditionError> {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"s",
            table: b"t",
            column_types: &[3; 3],
            column_metadata: &[],
            null_bitmap: Bitmap(&[0]),
            optional_metadata: OptionalMetadata(b""),
        };
        let schema = Arc::new(TableSchema::new(&map, ServerFamily::Mysql).unwrap());
        let mut images = Vec::new();
        let [columns, columns_after] = [before, after].map(|cells| {
            let values = cells.map(|cell| cell.map(|number| [number, 0, 0, 0]));
            let cells = values.each_ref().map(|value| value.as_ref().map(|bytes| CellContent::Value(bytes)));
            schema.put_image(&cells, false, &mut images).unwrap()
        });
        let event = RowsEvent {
            event_type: EventType::UPDATE_ROWS,
            table_id: TableId(1),
            flags: RowsFlags(0),
            extra_data: b"",
            width: 3,
            columns: Bitmap(&columns),
            columns_after: Some(Bitmap(&columns_after)),
            rows: &images,
        };
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, &event).unwrap();
        let row = rows.next_row().unwrap().unwrap();
        Condition::parse(text)?.is_met(&WrittenTable::new(&schema, None), &row)
    }

    #[test]
    fn a_column_that_an_image_lacks_is_taken_for_no_other_and_counts_only_where_it_decides() {
        let before = [Some(1), None, None];
        let after = [None, Some(5), None];
        for (text, expected) in [
            ("@1 = 1", Some(true)),
            ("@1 = 2", Some(false)),
            // Of the value before nothing is known, so it may be 4.
            ("@2 = 5", Some(true)),
            ("@2 = 4", None),
            ("@3 IS NULL", None),
            ("@1 = 1 AND @3 = 9", None),
            ("@1 = 2 AND @3 = 9", Some(false)),
            ("@3 = 9 AND @1 = 2", Some(false)),
            ("@1 = 1 OR @3 = 9", Some(true)),
            ("@3 = 9 OR @1 = 1", Some(true)),
            ("@1 = 2 OR @3 = 9", None),
            ("NOT (@1 = 1 OR @3 = 9)", Some(false)),
            ("@1 = 1 XOR @3 = 9", None),
        ] {
            match (is_met(text, before, after), expected) {
                (Ok(is), Some(expected)) if is == expected => {}
                (Err(ConditionError::NotLogged { .. }), None) => {}
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }
}
