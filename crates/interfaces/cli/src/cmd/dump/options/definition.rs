//! The definition of an option of `dump`: its name, its value, and the field of [`DumpSettings`] that it sets.

use std::ffi::OsStr;
use std::ops::RangeInclusive;

use super::DumpSettings;
use super::number::UnsignedLimits;

/// An option.
#[derive(Debug)]
pub(super) struct OptionDefinition {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    pub(super) kind: OptionKind,
    pub(super) help: &'static str,
    /// The placeholder for the value in the help.
    pub(super) value_name: &'static str,
    /// The option's name in errors about its value: mysqlbinlog writes one with underscores.
    pub(super) told_as: &'static str,
    /// The option to use instead, if this one is deprecated; empty if there is none.
    pub(super) deprecated: Option<&'static str>,
    /// Other options that it implies.
    pub(super) then: Option<fn(&mut DumpSettings)>,
}

type Field<T> = fn(&mut DumpSettings) -> &mut T;
type SetText = fn(&mut DumpSettings, &'static str, &OsStr) -> Result<(), String>;

/// Which value an option takes, and the field that holds it.
#[derive(Debug, Clone)]
pub(super) enum OptionKind {
    /// Nothing, or on or off.
    Switch(Field<bool>),
    /// Nothing; counts how often it is given.
    Count(Field<u32>),
    /// A number.
    Unsigned(Field<u64>, UnsignedLimits),
    /// A number that may be negative.
    Signed(Field<i64>, RangeInclusive<i64>),
    /// A text.
    Text(SetText),
    /// A password, or nothing: then it is asked for.
    Password,
    /// Refused: mysqlbinlog has it in debug builds only.
    Disabled,
    Help,
    Version,
}

impl OptionDefinition {
    pub(super) const fn new(name: &'static str, kind: OptionKind, help: &'static str) -> Self {
        let value_name = "NAME";
        OptionDefinition {
            name,
            short: None,
            kind,
            help,
            value_name,
            told_as: name,
            deprecated: None,
            then: None,
        }
    }

    pub(super) const fn switch(name: &'static str, field: Field<bool>, help: &'static str) -> Self {
        OptionDefinition::new(name, OptionKind::Switch(field), help)
    }

    pub(super) const fn unsigned(
        name: &'static str,
        field: Field<u64>,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Self {
        OptionDefinition::new(name, OptionKind::Unsigned(field, UnsignedLimits { range, block: 1 }), help)
            .value("N")
    }

    pub(super) const fn signed(
        name: &'static str,
        field: Field<i64>,
        range: RangeInclusive<i64>,
        help: &'static str,
    ) -> Self {
        OptionDefinition::new(name, OptionKind::Signed(field, range), help).value("N")
    }

    pub(super) const fn text(
        name: &'static str,
        value_name: &'static str,
        set: SetText,
        help: &'static str,
    ) -> Self {
        OptionDefinition::new(name, OptionKind::Text(set), help).value(value_name)
    }

    /// An option of the connection.
    pub(super) const fn connection(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        OptionDefinition::text(name, value_name, set_connection, help)
    }

    /// An option that is accepted, as mysqlbinlog accepts it, and has no effect.
    pub(super) const fn ignored(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        OptionDefinition::text(name, value_name, |_, _, _| Ok(()), help)
    }

    pub(super) const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    pub(super) const fn value(mut self, name: &'static str) -> Self {
        self.value_name = name;
        self
    }

    pub(super) const fn deprecated(mut self, instead: &'static str) -> Self {
        self.deprecated = Some(instead);
        self
    }

    pub(super) const fn then(mut self, then: fn(&mut DumpSettings)) -> Self {
        self.then = Some(then);
        self
    }

    pub(super) const fn told_as(mut self, name: &'static str) -> Self {
        self.told_as = name;
        self
    }
}

fn set_connection(options: &mut DumpSettings, name: &'static str, value: &OsStr) -> Result<(), String> {
    options.connection.push((name, Some(value.to_owned())));
    Ok(())
}
