//! The form of the log for a client that names no file: what it can read, as far as it identifies itself.

use binlogz_relay_log::Form;

/// The form for clients that name no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormPolicy {
    /// One form for all of them.
    Always(Form),
    /// The form that each client can read, as far as it identifies itself: the default.
    Auto,
}

/// The form for a client with these connection attributes. Payloads go only to libmysql, mysqld or mysqlbinlog
/// that identify themselves as 8.0.20 or later. They get the source's own bytes, which cost nothing to make, under
/// the source's own names. We know nothing about other clients, and some of them silently lose every row of a
/// payload.
pub(crate) fn form_for_client(attributes: &[(String, String)]) -> Form {
    let of = |wanted: &str| attribute(attributes, wanted);
    let reads_payloads = of("_client_name") == "libmysql"
        && matches!(of("program_name"), "mysqld" | "mysqlbinlog")
        && version(of("_client_version")).is_some_and(|version| version >= FIRST_WITH_PAYLOADS);
    if reads_payloads { Form::Received } else { Form::Uncompressed }
}

/// Whether a client may be sent payloads that it did not ask for: a client that gets them when it names no file, and
/// binlogz itself.
pub(crate) fn knows_payloads(attributes: &[(String, String)]) -> bool {
    attribute(attributes, "_client_name") == "binlogz" || form_for_client(attributes) != Form::Uncompressed
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_known_to_read_payloads_gets_them() {
        let client = |name: &str, program: &str, version: &str| {
            form_for_client(&[
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
        assert_eq!(form_for_client(&[]), Form::Uncompressed);
        let binlogz = [("_client_name".to_owned(), "binlogz".to_owned())];
        assert!(knows_payloads(&binlogz) && !knows_payloads(&[]));
    }
}
