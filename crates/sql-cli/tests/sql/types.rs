//! What each MySQL type becomes, at its limits, as zero dates and NULL; what a table is over DDL.

use crate::common::SHAPES;

#[test]
fn every_type_has_its_column_and_its_values() {
    let out = SHAPES.same(include_str!("types.sql"));
    let expected = include_str!("types.csv");
    assert!(out == expected, "{out}");
}
