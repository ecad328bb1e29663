//! The rows of a table that alone are wanted: those with certain values in a column.
//!
//! The server is asked for all rows that are equal to a value as it compares, which may be more than those with the same bytes: `a` and `A`.

use crate::sql::text::push_quoted;

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnValue {
    /// A whole number.
    Number(i128),
    /// A text.
    Text(String),
}

/// The values of a column that rows may have; the others aren't wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnValues {
    /// The name of the column at the moment.
    pub column: String,
    /// The values; at least one.
    pub values: Vec<ColumnValue>,
}

impl ColumnValues {
    /// The condition in SQL that a column of this type and character set has one of the values. `None`: it isn't certain that the server finds
    /// all of them equal that look the same.
    pub(super) fn condition(
        &self,
        column: &str,
        (data_type, charset): (&str, Option<&str>),
    ) -> Option<String> {
        let is_number = matches!(data_type, "tinyint" | "smallint" | "mediumint" | "int" | "bigint");
        let is_text =
            matches!(data_type, "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext")
                && charset.is_some_and(|charset| charset != "binary");
        let mut list = Vec::new();
        for value in &self.values {
            if !list.is_empty() {
                list.extend_from_slice(b", ");
            }
            match value {
                ColumnValue::Number(number) if is_number => {
                    list.extend_from_slice(number.to_string().as_bytes())
                }
                ColumnValue::Text(text) if is_text && !may_be_bytes(text) => {
                    push_quoted(&mut list, text.as_bytes());
                }
                ColumnValue::Number(_) | ColumnValue::Text(_) => return None,
            }
        }
        let list = String::from_utf8(list).ok().filter(|list| !list.is_empty())?;
        Some(format!("{column} IN ({list})"))
    }
}

/// Whether bytes that are no text in their character set may look like this.
fn may_be_bytes(text: &str) -> bool {
    text.starts_with("0x") || text.contains(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_look_the_same_and_are_equal_restrict_a_column() {
        let numbers = ColumnValues {
            column: "id".to_owned(),
            values: vec![ColumnValue::Number(-5), ColumnValue::Number(u64::MAX.into())],
        };
        let texts = |text: &str| ColumnValues {
            column: "name".to_owned(),
            values: vec![ColumnValue::Text(text.to_owned())],
        };
        let utf8 = ("varchar", Some("utf8mb4"));
        assert_eq!(
            numbers.condition("t.`id`", ("bigint", None)).as_deref(),
            Some("t.`id` IN (-5, 18446744073709551615)")
        );
        assert_eq!(texts("it's").condition("t.`name`", utf8).as_deref(), Some("t.`name` IN ('it''s')"));
        assert_eq!(numbers.condition("t.`id`", ("decimal", None)), None);
        assert_eq!(numbers.condition("t.`id`", utf8), None);
        assert_eq!(texts("1").condition("t.`name`", ("int", None)), None);
        assert_eq!(texts("a").condition("t.`name`", ("enum", Some("utf8mb4"))), None);
        assert_eq!(texts("a").condition("t.`name`", ("varchar", Some("binary"))), None);
        assert_eq!(texts("0xff").condition("t.`name`", utf8), None);
    }
}
