//! The servers to look at, and the file that lists them.

use binlogz_source::ConnectOptions;

use crate::server_args::with_place;

/// A server to look at.
#[derive(Debug)]
pub(super) struct DoctorTarget {
    /// The server's name, as the user gave it.
    pub(super) name: String,
    /// How to reach it, or why its name is none.
    pub(super) options: Result<ConnectOptions, String>,
}

impl DoctorTarget {
    pub(super) fn new(name: String, options: &ConnectOptions) -> Self {
        let options = with_place(options, &name);
        // Should a password stand in it, it is not shown again.
        let name = match (&options, name.rsplit_once('@')) {
            (Err(_), Some((_, place))) => format!("…@{place}"),
            _ => name,
        };
        DoctorTarget { name, options }
    }
}

/// The lines of a file of targets: a SERVER each; empty lines and text after a `#` are skipped.
pub(super) fn read(text: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.contains(char::is_whitespace) {
            return Err(format!("line {number} has several words, expected one server"));
        }
        if names.iter().any(|name| name == line) {
            return Err(format!("line {number} names {line} again"));
        }
        if !line.is_empty() {
            names.push(line.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_servers() {
        let names = read("# the fleet\ndb1:3306 # main\n\n/run/my.sock\n").unwrap();
        assert_eq!(names, ["db1:3306", "/run/my.sock"]);
        assert_eq!(read("db1 db2").unwrap_err(), "line 1 has several words, expected one server");
        assert_eq!(read("db1\ndb1").unwrap_err(), "line 2 names db1 again");
    }

    #[test]
    fn a_password_is_not_shown() {
        for server in ["mysql://root:secret@db1", "root:secret@db1"] {
            let target = DoctorTarget::new(server.into(), &ConnectOptions::new("test"));
            assert_eq!(target.name, "…@db1");
            assert!(!target.options.unwrap_err().contains("secret"));
        }
    }
}
