//! The knowledge base: which client reads compressed transactions, which release of the server has which bug.
//!
//! `knowledge.toml` is built in; its header explains each field. A file of the same form can take precedence
//! over it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::facts::BinlogClient;
use crate::report::Reads;
use crate::version::{Version, VersionRange};

/// The file that is built in.
const BUILT_IN: &str = include_str!("../knowledge.toml");
/// `same_as` may lead through this many consumers: more is a cycle.
const SAME_AS_MAX: usize = 8;

/// Why a file of knowledge can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KnowledgeError(String);

/// Known clients and servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knowledge {
    #[serde(default, rename = "consumer")]
    consumers: Vec<KnownConsumer>,
    #[serde(default, rename = "server_bug")]
    server_bugs: Vec<ServerBug>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownConsumer {
    name: String,
    #[serde(default, rename = "match")]
    matches: BTreeMap<String, String>,
    version_of: Option<String>,
    version_is: Option<String>,
    same_as: Option<String>,
    #[serde(default)]
    versions: Vec<Behaviour>,
}

/// The behaviour of a range of versions of a client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Behaviour {
    from: Option<Version>,
    below: Option<Version>,
    pub(crate) reads: Reads,
    pub(crate) since: Option<String>,
    pub(crate) on_compressed: String,
    pub(crate) source: String,
    pub(crate) certainty: String,
    #[serde(default)]
    pub(crate) tried: String,
    #[serde(default)]
    pub(crate) date: String,
}

/// A bug of the feature in a range of releases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerBug {
    pub(crate) id: String,
    pub(crate) title: String,
    affects: Vec<VersionRange>,
    pub(crate) remedy: String,
    pub(crate) source: String,
    pub(crate) certainty: String,
    #[serde(default)]
    pub(crate) date: String,
}

/// A client's identity, once it is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientIdentity<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: Option<String>,
    /// Whether only the account or the address identified it.
    pub(crate) is_by_account: bool,
    /// `None`: nothing is known of this version.
    pub(crate) behaviour: Option<&'a Behaviour>,
}

impl Knowledge {
    /// The built-in knowledge.
    pub fn built_in() -> Self {
        // A test reads it.
        Knowledge::parse(BUILT_IN).unwrap_or_default()
    }

    /// The built-in knowledge, with a file's text before it.
    ///
    /// # Errors
    ///
    /// The text is not a knowledge file; the error names the line.
    pub fn extended_by(text: &str) -> Result<Self, KnowledgeError> {
        let mut all = Knowledge::parse(text)?;
        let built_in = Knowledge::built_in();
        all.consumers.extend(built_in.consumers);
        all.server_bugs.extend(built_in.server_bugs);
        for consumer in &all.consumers {
            all.versions(consumer)?;
        }
        Ok(all)
    }

    fn parse(text: &str) -> Result<Self, KnowledgeError> {
        let error = |error: toml::de::Error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text.get(..span.start).unwrap_or(text).matches('\n').count());
            KnowledgeError(format!("line {line}: {}", error.message()))
        };
        toml::from_str(text).map_err(error)
    }

    /// The versions of a consumer, from its own entry or the one it refers to.
    fn versions<'a>(&'a self, consumer: &'a KnownConsumer) -> Result<&'a [Behaviour], KnowledgeError> {
        let mut found = consumer;
        for _ in 0..SAME_AS_MAX {
            let Some(name) = found.same_as.as_deref().filter(|_| found.versions.is_empty()) else {
                return match found.versions.as_slice() {
                    [] => Err(KnowledgeError(format!("{} has neither versions nor same_as", found.name))),
                    versions => Ok(versions),
                };
            };
            let unknown = || KnowledgeError(format!("{} is same_as {name}, which is not there", found.name));
            let others = |other: &&KnownConsumer| other.name == name && !std::ptr::eq(*other, found);
            found = self.consumers.iter().find(others).ok_or_else(unknown)?;
        }
        Err(KnowledgeError(format!("{} is same_as itself", consumer.name)))
    }

    /// The identity of a client; `None` if nothing fits.
    pub(crate) fn identify(&self, consumer: &BinlogClient) -> Option<ClientIdentity<'_>> {
        let known = self.consumers.iter().find(|known| known.fits(consumer))?;
        let told = known.version_of.as_ref().and_then(|name| consumer.attributes.get(name));
        let version = known.version_is.as_ref().or(told).cloned();
        let number = version.as_deref().and_then(Version::parse);
        let behaviours = self.versions(known).unwrap_or_default();
        let behaviour = behaviours.iter().find(|behaviour| behaviour.applies(number.as_ref()));
        let is_by_account = known.matches.keys().all(|name| matches!(name.as_str(), "user" | "host"));
        Some(ClientIdentity { name: &known.name, version, is_by_account, behaviour })
    }

    /// The bugs that a release of MySQL has.
    pub(crate) fn bugs_of<'a>(&'a self, version: &'a Version) -> impl Iterator<Item = &'a ServerBug> {
        self.server_bugs.iter().filter(|bug| bug.affects.iter().any(|range| range.contains(version)))
    }
}

impl Behaviour {
    fn applies(&self, version: Option<&Version>) -> bool {
        let range = VersionRange { from: self.from.clone(), below: self.below.clone() };
        match version {
            Some(version) => range.contains(version),
            None => range == VersionRange::default(),
        }
    }
}

impl KnownConsumer {
    fn fits(&self, consumer: &BinlogClient) -> bool {
        !self.matches.is_empty()
            && self.matches.iter().all(|(name, pattern)| fits(pattern, consumer.trait_of(name)))
    }
}

/// A pattern has at most one `*`, for anything.
fn fits(pattern: &str, value: Option<&str>) -> bool {
    match (pattern, value) {
        ("!", value) => value.is_none(),
        (_, None) => false,
        (pattern, Some(value)) => match pattern.split_once('*') {
            Some((head, tail)) => {
                value.len() >= head.len() + tail.len() && value.starts_with(head) && value.ends_with(tail)
            }
            None => pattern == value,
        },
    }
}

#[cfg(test)]
mod tests {
    use binlogz_payload::ServerGeneration;

    use super::*;

    fn consumer(attributes: &[(&str, &str)]) -> BinlogClient {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        BinlogClient {
            user: Some("repl".into()),
            attributes: attributes.collect(),
            ..BinlogClient::default()
        }
    }

    fn told(knowledge: &Knowledge, attributes: &[(&str, &str)]) -> (String, Option<Reads>) {
        let consumer = consumer(attributes);
        let identity = knowledge.identify(&consumer).expect("something fits");
        (identity.name.to_owned(), identity.behaviour.map(|behaviour| behaviour.reads))
    }

    #[test]
    fn the_built_in_file_is_sound() {
        let knowledge = Knowledge::parse(BUILT_IN).expect("it parses");
        for consumer in &knowledge.consumers {
            let versions = knowledge.versions(consumer).expect("it has versions");
            for version in versions {
                let certainties = ["measured", "read in source", "documented", "reported", "inferred"];
                assert!(certainties.contains(&version.certainty.as_str()), "{}", consumer.name);
                assert!(!version.source.is_empty() && !version.on_compressed.is_empty(), "{}", consumer.name);
                assert!(is_date(&version.date), "{} has no date", consumer.name);
                assert_eq!(version.certainty == "measured", !version.tried.is_empty(), "{}", consumer.name);
            }
        }
        assert!(!knowledge.server_bugs.is_empty());
        for bug in &knowledge.server_bugs {
            assert!(is_date(&bug.date), "bug {} has no date", bug.id);
        }
    }

    /// As in 2026-11-23.
    fn is_date(text: &str) -> bool {
        let parts: Vec<_> = text.split('-').collect();
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        lengths == [4, 2, 2] && parts.iter().all(|part| part.parse::<u16>().is_ok())
    }

    #[test]
    fn attributes_tell_who_reads() {
        let knowledge = Knowledge::built_in();
        let replica = |version| {
            let attributes =
                [("_client_name", "libmysql"), ("program_name", "mysqld"), ("_client_version", version)];
            told(&knowledge, &attributes).1
        };
        assert_eq!(replica("8.0.20"), Some(Reads::Yes));
        assert_eq!(replica("26.10.1"), Some(Reads::Yes));
        assert_eq!(replica("5.7.44-log"), Some(Reads::No));
        assert_eq!(replica("?"), Some(Reads::Unknown));
        let go = |version| told(&knowledge, &[("_client_name", "go-mysql"), ("_client_version", version)]).1;
        assert_eq!(
            (go("v1.7.0"), go("v1.13.0"), go("(devel)")),
            (Some(Reads::No), Some(Reads::Unknown), Some(Reads::Unknown))
        );
        assert_eq!(
            told(&knowledge, &[]),
            ("client without connection attributes".into(), Some(Reads::Unknown))
        );
        assert_eq!(knowledge.identify(&consumer(&[("_client_name", "a new one")])), None);
    }

    #[test]
    fn a_file_of_ones_own_comes_first() {
        let text = "[[consumer]]\nname = 'orders'\nmatch = { user = 're*l' }\nsame_as = 'Debezium'\nversion_is = '2.7.3'";
        let knowledge = Knowledge::extended_by(text).expect("knowledge");
        let found = consumer(&[]);
        let identity = knowledge.identify(&found).expect("it fits");
        assert_eq!((identity.name, identity.version.as_deref()), ("orders", Some("2.7.3")));
        assert_eq!(identity.behaviour.map(|behaviour| behaviour.reads), Some(Reads::Yes));
        for (text, said) in [
            ("[[consumer]]\nname = 'a'\nsame_as = 'nobody'", "a is same_as nobody, which is not there"),
            (
                "[[consumer]]\nname = 'a'\nsame_as = 'b'\n[[consumer]]\nname = 'b'\nsame_as = 'a'",
                "a is same_as itself",
            ),
            ("[[consumer]]\nname = 'a'", "a has neither versions nor same_as"),
            ("[[consumer]]\nnaem = 'a'", "line 2: unknown field `naem`"),
        ] {
            let error = Knowledge::extended_by(text).expect_err(said).to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn bugs_have_their_releases() {
        let knowledge = Knowledge::built_in();
        let bugs = |text| {
            let version = Version::parse(text).expect("a version");
            knowledge.bugs_of(&version).map(|bug| bug.id.clone()).collect::<Vec<_>>()
        };
        assert!(bugs("8.0.34").contains(&"34833913".to_owned()));
        assert!(!bugs("8.0.35").contains(&"34833913".to_owned()));
        assert_eq!(bugs("9.7.4"), Vec::<String>::new());
        // advise and the plan go by the generation: both must say the same.
        for version in ["8.0.20", "8.0.33", "8.0.34", "8.0.35", "8.0.46", "8.1.0", "8.2.0", "8.4.0", "9.7.4"]
        {
            let has_bug = bugs(version).contains(&"34833913".to_owned());
            let generation = ServerGeneration::of_version(version);
            assert_eq!(generation.only_level().is_some(), has_bug, "{version}");
        }
    }
}
