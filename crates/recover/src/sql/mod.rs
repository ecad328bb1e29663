//! Writes SQL: values, and the statements that turn a row from one image into another.

pub(crate) mod json;
pub(crate) mod literal;
pub(crate) mod statement;
