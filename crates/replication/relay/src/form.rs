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
//! coordinates are functions of the stored bytes, so they never change. If a client names no file, [`FormPolicy`]
//! decides.

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

/// The form for clients that name no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormPolicy {
    /// One form for all of them.
    Always(Form),
    /// The form that each client can read, as far as it identifies itself: the default.
    Auto,
}

impl Form {
    pub(crate) const ALL: [Form; 3] = [Form::Received, Form::Compressed, Form::Uncompressed];

    /// The form's name on the command line and in the relay's own files.
    pub fn name(self) -> &'static str {
        match self {
            Form::Received => "received",
            Form::Compressed => "compressed",
            Form::Uncompressed => "uncompressed",
        }
    }

    /// The form of this name.
    pub(crate) fn of_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The form for a client with these connection attributes. Payloads go only to libmysql, mysqld or mysqlbinlog
    /// that identify themselves as 8.0.20 or later. They get the source's own bytes, which cost nothing to make, under
    /// the source's own names. We know nothing about other clients, and some of them silently lose every row of a
    /// payload.
    pub(crate) fn for_client(attributes: &[(String, String)]) -> Form {
        let of = |wanted: &str| attribute(attributes, wanted);
        let reads_payloads = of("_client_name") == "libmysql"
            && matches!(of("program_name"), "mysqld" | "mysqlbinlog")
            && version(of("_client_version")).is_some_and(|version| version >= FIRST_WITH_PAYLOADS);
        if reads_payloads { Form::Received } else { Form::Uncompressed }
    }
}

/// Whether a client may be sent payloads that it did not ask for: a client that gets them when it names no file, and
/// binlogz itself.
pub(crate) fn knows_payloads(attributes: &[(String, String)]) -> bool {
    attribute(attributes, "_client_name") == "binlogz" || Form::for_client(attributes) != Form::Uncompressed
}

/// The version of MySQL's own client library in a replica or mysqlbinlog, if it says so: since 5.6, which does not name its program.
pub(crate) fn libmysql_version(attributes: &[(String, String)]) -> Option<[u32; 3]> {
    let is_own = attribute(attributes, "_client_name") == "libmysql";
    version(attribute(attributes, "_client_version")).filter(|_| is_own)
}

fn attribute<'a>(attributes: &'a [(String, String)], wanted: &str) -> &'a str {
    attributes.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
}

const FIRST_WITH_PAYLOADS: [u32; 3] = [8, 0, 20];

/// The numbers at the beginning of a version such as `8.0.36-28`.
fn version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.splitn(3, '.');
    let mut next = || {
        let part = parts.next()?;
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        part.get(..digits)?.parse().ok()
    };
    Some([next()?, next()?, next()?])
}

/// File names in all forms.
#[derive(Debug)]
pub(crate) struct FormNames {
    names: [(Form, LogNames); 3],
}

impl FormNames {
    /// Names for the stored log of this number.
    pub(crate) fn new(base: &str, lineage: u64) -> Result<Self> {
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
    pub(crate) fn name(&self, form: Form, number: FileNumber) -> String {
        self.names.iter().find(|(of, _)| *of == form).map(|(_, names)| names.log(number)).unwrap_or_default()
    }

    /// The form and number that a name refers to.
    pub(crate) fn parse(&self, name: &str) -> Option<(Form, FileNumber)> {
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

    #[test]
    fn only_who_is_known_to_read_payloads_gets_them() {
        let client = |name: &str, program: &str, version: &str| {
            Form::for_client(&[
                ("_os".into(), "Linux".into()),
                ("_client_name".into(), name.into()),
                ("program_name".into(), program.into()),
                ("_client_version".into(), version.into()),
            ])
        };
        assert_eq!(client("libmysql", "mysqld", "9.7.4"), Form::Received);
        assert_eq!(client("libmysql", "mysqlbinlog", "8.0.20"), Form::Received);
        for (name, program, version) in [
            ("libmysql", "mysqld", "8.0.19"),
            ("libmysql", "mysqld", "8.0"),
            ("libmysql", "mysqld", ""),
            ("libmysql", "mysql", "9.7.4"),
            ("libmariadb", "mysqld", "10.11.6"),
            ("MySQL Connector/J", "mysqld", "9.1.0"),
        ] {
            assert_eq!(client(name, program, version), Form::Uncompressed, "{name} {program} {version}");
        }
        assert_eq!(Form::for_client(&[]), Form::Uncompressed);
        let binlogz = [("_client_name".to_owned(), "binlogz".to_owned())];
        assert!(knows_payloads(&binlogz) && !knows_payloads(&[]));
    }
}
