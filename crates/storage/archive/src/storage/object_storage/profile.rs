//! Profiles of the AWS command line: reads `~/.aws/config` and `~/.aws/credentials` as settings like those of the
//! environment, which come first. The parser is our own: these files look like INI, but their indented settings and their
//! sections' names (`[profile NAME]`, `[services NAME]`) are AWS's, and AWS's own libraries for them bring a client with
//! them.
//!
//! It knows three kinds of credentials: keys, roles by a web identity's token, and `credential_process`. For signing in
//! (SSO) and roles that another profile assumes, errors name `aws configure export-credentials`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Settings by their names in the environment.
pub(super) type NamedSettings = BTreeMap<String, String>;

/// The profile, and where its files are.
const NAMES_PROFILE: [&str; 2] = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"];
const CONFIG_FILE: &str = "AWS_CONFIG_FILE";
const CREDENTIALS_FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const DEFAULT: &str = "default";
/// More than thousands of profiles take.
const SIZE_MAX: u64 = 4 << 20;

/// Settings in the environment that name credentials.
const NAMES_WHO: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE"];
/// Settings of a profile in place of keys, which only the AWS command line can turn into keys.
const FOREIGN: [&str; 6] = [
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "source_profile",
    "credential_source",
    "login_session",
];
/// Names in a profile and in the environment, for credentials.
const WHO: [(&str, &str); 6] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
    ("web_identity_token_file", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    ("role_arn", "AWS_ROLE_ARN"),
    ("role_session_name", "AWS_ROLE_SESSION_NAME"),
];

/// The settings and the command that a profile adds to the environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CredentialProfile {
    /// Settings that the environment doesn't have.
    pub(super) settings: NamedSettings,
    /// The command that prints credentials, if nothing else has any.
    pub(super) process: Option<String>,
}

/// A file's sections: settings by name, indented ones as `NAME.INDENTED`.
type Sections = BTreeMap<String, NamedSettings>;

impl CredentialProfile {
    /// The profile that the environment names, or the default one.
    ///
    /// # Errors
    ///
    /// A profile that is named and not there, files that can't be read, credentials that need the AWS command line.
    pub(super) fn of(environment: &NamedSettings) -> Result<CredentialProfile> {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let named = NAMES_PROFILE.iter().find_map(|name| set(name));
        let home = set("HOME").map(PathBuf::from).unwrap_or_default();
        let place = |name, file| set(name).map_or_else(|| home.join(".aws").join(file), PathBuf::from);
        let config = place(CONFIG_FILE, "config");
        let credentials = place(CREDENTIALS_FILE, "credentials");
        let sections = read(&config)?;
        let keys = read(&credentials)?;
        let name = named.map_or(DEFAULT, String::as_str);
        let own = sections
            .get(&format!("profile {name}"))
            .or_else(|| sections.get(name).filter(|_| name == DEFAULT))
            .cloned();
        let keys = keys.get(name).cloned();
        if named.is_some() && own.is_none() && keys.is_none() {
            let found = format!("in neither {} nor {}", config.display(), credentials.display());
            return Err(Error::unexpected(
                format!("profile {name}"),
                found,
                format!("[profile {name}] or [{name}]"),
            ));
        }
        let mut all = own.unwrap_or_default();
        all.extend(keys.unwrap_or_default());
        let services = all.get("services").and_then(|services| sections.get(&format!("services {services}")));
        CredentialProfile::from(&all, services.unwrap_or(&NamedSettings::new()), environment, name)
    }

    fn from(
        own: &NamedSettings,
        services: &NamedSettings,
        environment: &NamedSettings,
        name: &str,
    ) -> Result<CredentialProfile> {
        let mut profile = CredentialProfile::default();
        let mut add = |to: &str, value: Option<&String>| {
            if let Some(value) = value.filter(|_| !environment.contains_key(to)) {
                profile.settings.insert(to.to_owned(), value.clone());
            }
        };
        if !environment.contains_key("AWS_DEFAULT_REGION") {
            add("AWS_REGION", own.get("region"));
        }
        // The environment's one for all services comes before a file's.
        if !environment.contains_key("AWS_ENDPOINT_URL") {
            add(
                "AWS_ENDPOINT_URL_S3",
                services.get("s3.endpoint_url").or_else(|| own.get("s3.endpoint_url")),
            );
            add("AWS_ENDPOINT_URL", own.get("endpoint_url"));
        }
        let is_virtual = own.get("s3.addressing_style").map(|style| (style == "virtual").to_string());
        add("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", is_virtual.as_ref());
        if NAMES_WHO.iter().any(|name| environment.contains_key(*name)) {
            return Ok(profile);
        }
        let has = |key: &str| own.contains_key(key);
        if has("aws_access_key_id") || (has("web_identity_token_file") && has("role_arn")) {
            WHO.iter().for_each(|(key, setting)| add(setting, own.get(*key)));
        } else if let Some(process) = own.get("credential_process") {
            profile.process = Some(process.clone());
        } else if let Some(foreign) = FOREIGN.iter().find(|key| has(key)) {
            return Err(Error::unexpected(
                format!("profile {name}"),
                format!("{foreign}, which only the AWS command line can turn into keys"),
                format!("keys, or credential_process = aws configure export-credentials --profile {name}"),
            ));
        }
        Ok(profile)
    }
}

/// The sections of a file; none if it isn't there.
fn read(path: &Path) -> Result<Sections> {
    let doing = || Error::io(format!("read {}", path.display()));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > SIZE_MAX => {
            let what = format!("size of {}", path.display());
            return Err(Error::unexpected(what, metadata.len(), format_args!("at most {SIZE_MAX}")));
        }
        _ => {}
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(sections(&text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Sections::new())
        }
        Err(error) => Err(doing()(error)),
    }
}

fn sections(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut section = String::new();
    let mut above = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|line| line.split(']').next()) {
            section = name.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "");
            sections.entry(section.clone()).or_default();
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else { continue };
        // A comment follows a space.
        let value =
            value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default().trim();
        let key = key.trim().to_ascii_lowercase();
        let key = match line.starts_with([' ', '\t']) {
            true => format!("{above}.{key}"),
            false => {
                above.clone_from(&key);
                key
            }
        };
        sections.entry(section.clone()).or_default().insert(key, value.to_owned());
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# comment\n[default]\nregion = eu-west-1\n\n[profile backup]\nregion=eu-central-1 # comment\nservices = own\n\
                          s3 =\n  addressing_style = virtual\n  max_concurrent_requests = 20\noutput = json\n\
                          [services own]\ndynamodb =\n  endpoint_url = http://d:1\ns3 =\n  endpoint_url = http://s3:2\n\
                          [profile signed-in]\nsso_session = corp\n[profile process]\ncredential_process = /bin/keys --of \"a b\"\n\
                          endpoint_url = http://all:3\n[profile role]\nrole_arn = arn:x\nsource_profile = default\n\
                          [profile pod]\nrole_arn = arn:y\nweb_identity_token_file = /token\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = D\naws_secret_access_key = d/=\n[backup]\naws_access_key_id=B\n\
                               aws_secret_access_key=b==\naws_session_token=t\n";

    fn environment(dir: &tempfile::TempDir, settings: &[(&str, &str)]) -> NamedSettings {
        let aws = dir.path().join(".aws");
        std::fs::create_dir_all(&aws).unwrap();
        std::fs::write(aws.join("config"), CONFIG).unwrap();
        std::fs::write(aws.join("credentials"), CREDENTIALS).unwrap();
        let home = ("HOME", dir.path().to_str().unwrap());
        [home]
            .iter()
            .chain(settings)
            .map(|(name, value)| (String::from(*name), String::from(*value)))
            .collect()
    }

    /// The settings of a profile, or the error, as words.
    fn said(settings: &[(&str, &str)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        match CredentialProfile::of(&environment(&dir, settings)) {
            Ok(CredentialProfile { settings, process }) => {
                let settings = settings.iter().map(|(name, value)| format!("{}={value}", &name[4..]));
                settings
                    .chain(process.map(|process| format!("process {process}")))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_profile_adds_what_the_environment_lacks() {
        assert_eq!(said(&[]), "ACCESS_KEY_ID=D REGION=eu-west-1 SECRET_ACCESS_KEY=d/=");
        let backup = ("AWS_PROFILE", "backup");
        let keys = "ACCESS_KEY_ID=B";
        let rest = "SECRET_ACCESS_KEY=b== SESSION_TOKEN=t VIRTUAL_HOSTED_STYLE_REQUEST=true";
        assert_eq!(said(&[backup]), format!("{keys} ENDPOINT_URL_S3=http://s3:2 REGION=eu-central-1 {rest}"));
        // The environment comes first, its keys together.
        let own = [backup, ("AWS_ACCESS_KEY_ID", "E"), ("AWS_REGION", "r"), ("AWS_ENDPOINT_URL", "http://e")];
        assert_eq!(said(&own), "VIRTUAL_HOSTED_STYLE_REQUEST=true");
        assert_eq!(said(&[("AWS_DEFAULT_PROFILE", "pod")]), "ROLE_ARN=arn:y WEB_IDENTITY_TOKEN_FILE=/token");
        let process = [("AWS_PROFILE", "process")];
        assert_eq!(said(&process), "ENDPOINT_URL=http://all:3 process /bin/keys --of \"a b\"");
        let elsewhere = [("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"), ("AWS_CONFIG_FILE", "/nowhere")];
        assert_eq!(said(&elsewhere), "");
    }

    #[test]
    fn what_needs_the_command_line_is_said() {
        let signed_in = said(&[("AWS_PROFILE", "signed-in")]);
        assert!(
            signed_in.starts_with("profile signed-in is sso_session, which only the AWS command line ")
                && signed_in
                    .ends_with("credential_process = aws configure export-credentials --profile signed-in"),
            "{signed_in}"
        );
        assert!(said(&[("AWS_PROFILE", "role")]).contains("source_profile"));
        // Keys in the environment need none of it.
        assert_eq!(said(&[("AWS_PROFILE", "signed-in"), ("AWS_ACCESS_KEY_ID", "E")]), "");
        let none = said(&[("AWS_PROFILE", "none")]);
        assert!(
            none.starts_with("profile none is in neither ") && none.ends_with("[profile none] or [none]"),
            "{none}"
        );
    }
}
