//! The forms in which one stored log is served, and the names its files have in each.
//!
//! ```text
//! received      BASE.NNNNNN     the stored bytes, which are the source's
//! uncompressed  BASE-u.NNNNNN   the same transactions, none of them compressed; file for file
//! ```
//!
//! A form is part of a coordinate: whoever asks for a file by name gets the form that the name says. Both
//! coordinates are functions of the stored bytes, so that they never change.

use binlogz_store::{FileNumber, LogNames};

use crate::error::Result;

/// What a client is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The source's own bytes, names and positions.
    Received,
    /// No compressed transactions, as if the feature did not exist.
    Uncompressed,
}

/// Names in both forms.
#[derive(Debug)]
pub(crate) struct FormNames {
    received: LogNames,
    uncompressed: LogNames,
}

impl FormNames {
    pub(crate) fn new(base: &str) -> Result<Self> {
        Ok(FormNames { received: LogNames::new(base)?, uncompressed: LogNames::new(&format!("{base}-u"))? })
    }

    pub(crate) fn name(&self, form: Form, number: FileNumber) -> String {
        match form {
            Form::Received => self.received.log(number),
            Form::Uncompressed => self.uncompressed.log(number),
        }
    }

    /// What a name asks for.
    pub(crate) fn parse(&self, name: &str) -> Option<(Form, FileNumber)> {
        let received = self.received.number(name).map(|number| (Form::Received, number));
        received.or_else(|| self.uncompressed.number(name).map(|number| (Form::Uncompressed, number)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_form() {
        let names = FormNames::new("binlog").unwrap();
        for form in [Form::Received, Form::Uncompressed] {
            let name = names.name(form, FileNumber(7));
            assert_eq!(names.parse(&name), Some((form, FileNumber(7))), "{name}");
        }
        assert_eq!(names.name(Form::Uncompressed, FileNumber(7)), "binlog-u.000007");
        for name in ["binlog-z.000001", "binlog.index", "", "../binlog.000001"] {
            assert_eq!(names.parse(name), None, "{name}");
        }
    }
}
