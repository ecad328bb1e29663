//! The file that names relays, archives and servers. Unknown keys are errors, with their line; the words are those of `relay.toml`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use binlogz_archive::storage::{in_object_storage, refuse_addresses};
use binlogz_figures::{at_line, duration};
use binlogz_source::option_files::OptionFiles;
use serde::Deserialize;

use crate::error::{FleetError, Result};

/// More than thousands of targets take.
const SIZE_MAX: u64 = 4 << 20;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    relay: Vec<Relay>,
    archive: Vec<Archive>,
    server: Vec<Server>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Relay {
    name: Option<String>,
    http: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    name: Option<String>,
    to: PathBuf,
    max_age: Option<String>,
    max_check_age: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: Option<String>,
    server: String,
    defaults_file: Option<PathBuf>,
    defaults_group_suffix: Option<String>,
    login_path: Option<String>,
}

/// A relay, archives below a place, or a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetTarget {
    pub(crate) name: String,
    pub(crate) place: TargetAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetAddress {
    /// The relay's HOST:PORT.
    Relay(String),
    Archives {
        to: PathBuf,
        limits: ArchiveLimits,
    },
    Server(FleetServer),
}

/// Ages above which an archive is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ArchiveLimits {
    /// Older than this, an archive's last restorable moment is.
    pub(crate) max_age: Option<Duration>,
    /// Older than this, its last check is.
    pub(crate) max_check_age: Option<Duration>,
}

/// A server, and how to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FleetServer {
    pub(crate) place: String,
    pub(crate) files: OptionFiles,
}

impl FleetTarget {
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.place, TargetAddress::Server(_))
    }
}

/// Reads a file of targets.
///
/// # Errors
///
/// A file that can't be read, names something unknown or the same name twice, or no target.
pub fn read(path: &Path) -> Result<Vec<FleetTarget>> {
    let failed = |source: std::io::Error| FleetError::File { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > SIZE_MAX {
        return Err(FleetError::TooLarge { path: path.to_owned() });
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).map_err(|why| FleetError::Content { path: path.to_owned(), why })
}

/// Paths in it are relative to this folder.
fn parse(text: &str, folder: &Path) -> Result<Vec<FleetTarget>, String> {
    let File { relay, archive, server } = toml::from_str(text)
        .map_err(|error: toml::de::Error| at_line(text, error.span(), error.message()))?;
    let mut targets = Vec::new();
    for Relay { name, http } in relay {
        targets.push(FleetTarget {
            name: name.unwrap_or_else(|| http.clone()),
            place: TargetAddress::Relay(http),
        });
    }
    for Archive { name, to, max_age, max_check_age } in archive {
        let name = name.unwrap_or_else(|| to.display().to_string());
        refuse_addresses(&to.to_string_lossy()).map_err(|error| format!("archive {name}: to: {error}"))?;
        let to = if in_object_storage(&to).is_some() { to } else { folder.join(to) };
        let age = |key: &str, text: Option<String>| {
            let age = text.as_deref().map(duration).transpose();
            age.map_err(|error| format!("archive {name}: {key}: {error}"))
        };
        let limits = ArchiveLimits {
            max_age: age("max_age", max_age)?,
            max_check_age: age("max_check_age", max_check_age)?,
        };
        targets.push(FleetTarget { name, place: TargetAddress::Archives { to, limits } });
    }
    for Server { name, server: place, defaults_file, defaults_group_suffix, login_path } in server {
        let name =
            name.unwrap_or_else(|| place.rsplit_once('@').map_or(place.clone(), |(_, place)| place.into()));
        if defaults_file.is_some() && login_path.is_some() {
            return Err(format!("server {name}: has defaults_file and login_path, expected one of them"));
        }
        let files = option_files(folder, defaults_file, defaults_group_suffix, login_path);
        targets.push(FleetTarget { name, place: TargetAddress::Server(FleetServer { place, files }) });
    }
    if targets.is_empty() {
        return Err(
            "names no target, expected tables [[relay]] with http, [[archive]] with to, or [[server]] with server"
                .to_owned(),
        );
    }
    let mut names: Vec<_> = targets.iter().map(|target| &target.name).collect();
    names.sort();
    match names.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
        Some(name) => Err(format!("has the name {name} twice")),
        None => Ok(targets),
    }
}

/// Option files relative to the folder of the file of targets.
fn option_files(
    folder: &Path,
    defaults_file: Option<PathBuf>,
    group_suffix: Option<String>,
    login_path: Option<String>,
) -> OptionFiles {
    OptionFiles {
        defaults_file: defaults_file.map(|path| folder.join(path)),
        group_suffix,
        login_path,
        ..OptionFiles::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_relays_and_archives() {
        let text = "[[relay]]\nhttp = 'relay1:3308'\n[[archive]]\nname = 'eu'\nto = 's3://backup/eu'\nmax_age = '2h'\nmax_check_age = '30d'\n\
                    [[archive]]\nto = 'arc'\n[[server]]\nserver = 'mysql://m@db1'\ndefaults_file = 'm.cnf'\n";
        let targets = parse(text, Path::new("/etc")).unwrap();
        let archives = |to: &str, limits| TargetAddress::Archives { to: to.into(), limits };
        let limits = ArchiveLimits {
            max_age: Some(Duration::from_secs(7200)),
            max_check_age: Some(Duration::from_secs(30 * 86_400)),
        };
        let expected = [
            ("relay1:3308", TargetAddress::Relay("relay1:3308".into())),
            ("eu", archives("s3://backup/eu", limits)),
            ("arc", archives("/etc/arc", ArchiveLimits::default())),
            (
                "db1",
                TargetAddress::Server(FleetServer {
                    place: "mysql://m@db1".into(),
                    files: option_files(Path::new("/etc"), Some("m.cnf".into()), None, None),
                }),
            ),
        ];
        assert_eq!(targets, expected.map(|(name, place)| FleetTarget { name: name.into(), place }));
        for (text, said) in [
            ("", "names no target"),
            ("[[relay]]\nhtpp = 'a:1'\n", "line 2: unknown field `htpp`"),
            ("[[relay]]\nhttp = 'a:1'\n[[archive]]\nname = 'a:1'\nto = 'b'\n", "has the name a:1 twice"),
            (
                "[[server]]\nserver = 'b'\ndefaults_file = 'c'\nlogin_path = 'd'\n",
                "server b: has defaults_file and login_path",
            ),
            ("[[archive]]\nto = 's3:/b/x'\n", "archive s3:/b/x: to: place is s3:/b/x, expected s3://b/x"),
            (
                "[[archive]]\nto = 'b'\nmax_check_age = '7'\n",
                "archive b: max_check_age: \"7\", expected a time",
            ),
            ("[[archive]]\nto = 'b'\nmax_age = '7'\n", "archive b: max_age: \"7\", expected a time"),
        ] {
            let error = parse(text, Path::new("")).unwrap_err();
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
    }
}
