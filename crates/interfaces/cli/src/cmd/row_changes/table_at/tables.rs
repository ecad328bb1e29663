//! Which tables `table-at` is asked for, and where they go.

use std::path::{Path, PathBuf};

use binlogz_row_changes::{LoggedStatements, PastError, PastSession};

use crate::cmd::row_changes::choose::table;
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::output::{Destination, OutputTarget};

/// Stands for all tables of a database.
const ALL: &str = "*";

/// The tables of the command line: names, and databases of which all are meant.
#[derive(Debug, Clone)]
pub(super) struct AskedTables {
    names: Vec<(String, String)>,
    /// Tables to leave out where all of a database are meant.
    ignored: Vec<(String, String)>,
}

/// Where new tables go.
#[derive(Debug, Clone)]
pub(super) enum IntoPlace {
    /// One table, under this name.
    Table(String, String),
    /// All, in this database, under their own names.
    Database(String),
}

impl IntoPlace {
    pub(super) fn parse(text: &str) -> Result<IntoPlace, String> {
        let bare = text.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or(text);
        match text.contains('.') {
            true => table(text).map(|(database, name)| IntoPlace::Table(database, name)),
            false if bare.is_empty() => Err("expected DB.TABLE, as shop.orders, or DB".to_owned()),
            false => Ok(IntoPlace::Database(bare.to_owned())),
        }
    }

    /// The new name of a table.
    pub(super) fn of(&self, name: &str) -> (String, String) {
        match self {
            IntoPlace::Table(database, table) => (database.clone(), table.clone()),
            IntoPlace::Database(database) => (database.clone(), name.to_owned()),
        }
    }
}

impl AskedTables {
    /// The first argument is a table. So are those after it, up to the first that is a file or doesn't look like one; the others are
    /// files.
    pub(super) fn split(
        first: &(String, String),
        rest: &mut Vec<LogPath>,
        ignored: &[(String, String)],
    ) -> Result<AskedTables> {
        let mut names = vec![first.clone()];
        let found: Vec<_> = rest.iter().map_while(table_in).collect();
        rest.drain(..found.len());
        for name in found {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let of_no_database =
            |(database, _): &&(String, String)| !names.iter().any(|(of, name)| of == database && name == ALL);
        match ignored.iter().find(of_no_database) {
            Some((database, name)) => Err(CommandFailure::Line(format!(
                "--ignore-table {database}.{name}: expected '{database}.{ALL}' among the tables that are asked for"
            ))),
            None => Ok(AskedTables { names, ignored: ignored.to_vec() }),
        }
    }

    /// The only one, if it is one.
    pub(super) fn single(&self) -> Option<(&str, &str)> {
        match &*self.names {
            [(database, name)] if name != ALL => Some((database, name)),
            _ => None,
        }
    }

    /// Whether all tables of a database are asked for.
    pub(super) fn has_databases(&self) -> bool {
        self.names.iter().any(|(_, name)| name == ALL)
    }

    /// The tables as messages name them.
    pub(super) fn shown(&self) -> String {
        let names = self.names.iter().map(|(database, name)| format!("{database}.{name}"));
        names.collect::<Vec<_>>().join(", ")
    }

    /// All tables, by the names that they had at the moment, as far as the statements that are known tell.
    pub(super) fn at_moment(
        &self,
        session: &mut PastSession,
        logged: Option<&LoggedStatements>,
    ) -> Result<Vec<(String, String)>, PastError> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (database, name) in &self.names {
            let names = match name == ALL {
                false => vec![name.clone()],
                true => {
                    let now = session.tables(database)?;
                    let then = match logged {
                        Some(logged) => logged.tables_of(database, now)?,
                        None => now,
                    };
                    if then.is_empty() {
                        let line = format!("{database} had no tables, or this account may not see them");
                        return Err(PastError::Refused(line));
                    }
                    then
                }
            };
            let names = names.into_iter().map(|table| (database.clone(), table));
            let is_asked = |table: &(String, String)| {
                !all.contains(table) && (name != ALL || !self.ignored.contains(table))
            };
            let new: Vec<_> = names.filter(is_asked).collect();
            all.extend(new);
        }
        if all.is_empty() {
            let line = format!("{} had no other tables than those left out by --ignore-table", self.shown());
            return Err(PastError::Refused(line));
        }
        for (place, (database, name)) in all.iter().enumerate() {
            if let Some((other, _)) = all.iter().skip(place + 1).find(|(_, other)| other == name) {
                let line = format!(
                    "{database}.{name} and {other}.{name} have one name: ask for one after the other, as the output names no database"
                );
                return Err(PastError::Refused(line));
            }
        }
        Ok(all)
    }
}

/// The table that an argument names, if it isn't a file. `binlog.000042` is one that is missing.
fn table_in(argument: &LogPath) -> Option<(String, String)> {
    match argument {
        LogPath::File(path) if path.symlink_metadata().is_err() => {
            let is_log = |name: &str| name.bytes().all(|letter| letter.is_ascii_digit());
            table(path.to_str()?).ok().filter(|(database, name)| !database.contains('/') && !is_log(name))
        }
        LogPath::File(_) | LogPath::Stdin => None,
    }
}

/// Where the text of several tables goes.
pub(super) enum PastTarget {
    /// One text.
    Text(OutputTarget),
    /// A file for each table, in this folder, and the suffix of their names.
    Folder(PathBuf, &'static str),
}

impl PastTarget {
    /// Several tables of this format, if there is one, go to a folder.
    pub(super) fn of(
        output: Option<&Destination>,
        files: &[LogPath],
        (separate, force): (Option<&'static str>, bool),
    ) -> Result<PastTarget> {
        match (output, separate) {
            (Some(Destination::Path(folder)), Some(format)) => match folder.is_dir() {
                true => Ok(PastTarget::Folder(folder.clone(), format)),
                false => Err(no_folder(folder)),
            },
            (_, Some(format)) => Err(CommandFailure::Line(format!(
                "--format {format} of several tables needs --output FOLDER, which gets a file for each"
            ))),
            (None | Some(Destination::Stdout), None) => Ok(PastTarget::Text(OutputTarget::Stdout)),
            (Some(destination), None) => Ok(PastTarget::Text(destination.target(files, force)?)),
        }
    }

    /// The one text, or where the text of each of these tables goes.
    pub(super) fn of_tables(
        &self,
        names: &[(String, String)],
        logs: &[LogPath],
        force: bool,
    ) -> Result<Vec<OutputTarget>> {
        match self {
            PastTarget::Text(text) => Ok(vec![text.clone()]),
            PastTarget::Folder(folder, suffix) => {
                let file = |(_, name): &(String, String)| file_in((folder, suffix), name, (logs, force));
                names.iter().map(file).collect()
            }
        }
    }
}

/// The file of a table.
fn file_in(
    (folder, suffix): (&Path, &str),
    name: &str,
    (logs, force): (&[LogPath], bool),
) -> Result<OutputTarget> {
    // A name may be any text, a file's can't.
    if name.contains('/') || name.starts_with('.') {
        return Err(CommandFailure::of(&name, "is no name of a file: ask for this table alone"));
    }
    Destination::Path(folder.join(format!("{name}.{suffix}"))).target(logs, force)
}

fn no_folder(path: &Path) -> CommandFailure {
    let name = path.display();
    CommandFailure::of(&name, format_args!("there is no such folder; mkdir {name} makes it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_before_files() {
        let path = |text: &str| LogPath::File(text.into());
        let mut rest =
            vec![path("shop.b"), path("shop.*"), path("shop.a"), path("Cargo.toml"), path("shop.c")];
        let asked = AskedTables::split(&("shop".into(), "a".into()), &mut rest, &[]).unwrap();
        assert_eq!((asked.shown(), rest.len()), ("shop.a, shop.b, shop.*".to_owned(), 2));
        assert_eq!(asked.single(), None);
        for log in ["./binlog.000001", "binlog.000001"] {
            let mut rest = vec![path(log), path("shop.b")];
            let asked = AskedTables::split(&("shop".into(), "a".into()), &mut rest, &[]).unwrap();
            assert_eq!((asked.single(), rest.len()), (Some(("shop", "a")), 2));
        }
    }

    #[test]
    fn tables_are_left_out_of_whole_databases_only() {
        let ignored = [("shop".to_owned(), "b".to_owned())];
        let split = |name: &str| AskedTables::split(&("shop".into(), name.into()), &mut Vec::new(), &ignored);
        split("*").unwrap();
        assert!(format!("{:?}", split("a").unwrap_err()).contains("expected 'shop.*' among the tables"));
    }

    #[test]
    fn new_tables_go_to_a_name_or_to_a_database() {
        let names = |database: &str, table: &str| (database.to_owned(), table.to_owned());
        assert_eq!(IntoPlace::parse("past").unwrap().of("orders"), names("past", "orders"));
        assert_eq!(IntoPlace::parse("past.old").unwrap().of("orders"), names("past", "old"));
        assert!(IntoPlace::parse("").is_err() && IntoPlace::parse("past.").is_err());
    }
}
