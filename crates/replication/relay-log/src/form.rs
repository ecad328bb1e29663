//! The forms in which one stored log is served, and the names its files have in each.
//!
//! ```text
//! received      BASE.NNNNNN     the source's bytes and positions
//! compressed    BASE-z.NNNNNN   the same transactions, every eligible one compressed; file for file
//! uncompressed  BASE-u.NNNNNN   the same transactions, none of them compressed; a file ends with 1 GiB (`cuts`)
//! ```
//!
//! The Nth stored log uses `BASE-zN` and `BASE-uN`: a source's logs share only the source's own name.
//!
//! A form is part of a coordinate: a client that asks for a file by name gets the form that the name says. All three
//! coordinates are functions of the stored bytes, so they never change. The relay decides which form a client gets that names no file.

use binlogz_store::{FileNumber, LogNames};

use crate::error::Result;

/// A form in which a log is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The source's own bytes, names and positions.
    Received,
    /// Every transaction that may be compressed is compressed.
    Compressed,
    /// No compressed transactions, as if the feature did not exist.
    Uncompressed,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 3] = [Form::Received, Form::Compressed, Form::Uncompressed];

    /// The form's name on the command line and in the relay's own files.
    pub fn name(self) -> &'static str {
        match self {
            Form::Received => "received",
            Form::Compressed => "compressed",
            Form::Uncompressed => "uncompressed",
        }
    }

    /// The form of this name.
    pub fn of_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// File names in all forms.
#[derive(Debug)]
pub struct FormNames {
    names: [(Form, LogNames); 3],
}

impl FormNames {
    /// Names for the stored log of this number.
    pub fn new(base: &str, lineage: u64) -> Result<Self> {
        let number = if lineage > 1 { lineage.to_string() } else { String::new() };
        let names = |suffix: &str| LogNames::new(&format!("{base}{suffix}"));
        Ok(FormNames {
            names: [
                (Form::Received, names("")?),
                (Form::Compressed, names(&format!("-z{number}"))?),
                (Form::Uncompressed, names(&format!("-u{number}"))?),
            ],
        })
    }

    /// The name of a file by its number, which differs between forms (`parts`).
    pub fn name(&self, form: Form, number: FileNumber) -> String {
        self.names.iter().find(|(of, _)| *of == form).map(|(_, names)| names.log(number)).unwrap_or_default()
    }

    /// The form and number that a name refers to.
    pub fn parse(&self, name: &str) -> Option<(Form, FileNumber)> {
        self.names.iter().find_map(|(form, names)| Some((*form, names.number(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_form() {
        let names = FormNames::new("binlog", 1).unwrap();
        for form in Form::ALL {
            let name = names.name(form, FileNumber(7));
            assert_eq!(names.parse(&name), Some((form, FileNumber(7))), "{name}");
            assert_eq!(Form::of_name(form.name()), Some(form));
        }
        assert_eq!(names.name(Form::Uncompressed, FileNumber(7)), "binlog-u.000007");
        let second = FormNames::new("binlog", 2).unwrap();
        assert_eq!(second.name(Form::Uncompressed, FileNumber(7)), "binlog-u2.000007");
        assert_eq!(second.parse("binlog-u.000007"), None);
        assert_eq!(second.parse("binlog-z2.000007"), Some((Form::Compressed, FileNumber(7))));
        for name in ["binlog-x.000001", "binlog.index", "", "../binlog.000001"] {
            assert_eq!(names.parse(name), None, "{name}");
        }
    }
}
