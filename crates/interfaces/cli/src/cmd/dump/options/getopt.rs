//! MySQL's rules of writing options, whatever the options are:
//!
//! ```text
//! --name  --name=value  --name value  -n  -nvalue  -n value  -abc      "_" and "-" are alike, no abbreviations
//! --skip-name  --disable-name  --enable-name  --maximum-name=value  --loose-name (unknown ones are passed over)
//! --                                                                  what follows is no option
//! ```
//!
//! Options from files have the same form, but never take their value from the next argument. (Facts of
//! mysqlbinlog 9.7.4, found by running it.)

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::definition::{OptionDefinition, OptionKind};
use super::definitions::OPTIONS;
use super::number;
use super::{DumpSettings, ERROR, WARNING};

/// Exit codes of bad usage, as MySQL's programs have them.
mod code {
    pub(super) const UNKNOWN_OPTION: u8 = 2;
    pub(super) const NO_ARGUMENT_ALLOWED: u8 = 4;
    pub(super) const ARGUMENT_REQUIRED: u8 = 5;
    pub(super) const UNKNOWN_VARIABLE: u8 = 7;
    pub(super) const BAD_NUMBER: u8 = 9;
    pub(super) const DISABLED: u8 = 12;
}

/// Prefixes of names. One may precede another.
const PREFIXES: [(&str, Prefix); 5] = [
    ("skip", Prefix::Off),
    ("disable", Prefix::Off),
    ("enable", Prefix::On),
    ("maximum", Prefix::Maximum),
    ("loose", Prefix::Loose),
];

/// Names that other commands have for options that mysqlbinlog calls otherwise.
const ALIASES: [(&str, &str); 3] =
    [("until-datetime", "stop-datetime"), ("gtids", "include-gtids"), (OUTPUT, "result-file")];
/// With this name `-` is standard output, as in other commands.
const OUTPUT: &str = "output";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Off,
    On,
    Maximum,
    Loose,
}

/// Why parsing ends before the last argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseStop {
    Help,
    Version,
    /// Bad usage, which was reported; the exit code.
    Code(u8),
}

/// Reads options one after the other.
pub(super) struct Getopt<'a> {
    /// How the program was called.
    program: &'a str,
    /// The program's name without directory.
    short_program: &'a str,
    pub(super) options: DumpSettings,
    /// Lines for stderr.
    pub(super) told: String,
    password_warned: bool,
}

impl<'a> Getopt<'a> {
    pub(super) fn new(program: &'a str) -> Self {
        let short_program = program.rsplit('/').next().unwrap_or(program);
        Getopt {
            program,
            short_program,
            options: DumpSettings::default(),
            told: String::new(),
            password_warned: false,
        }
    }

    /// Takes options of option files, each as `--name` or `--name=value`.
    pub(super) fn take_file_options(&mut self, options: &[OsString]) -> Result<(), ParseStop> {
        self.take(options, false)
    }

    /// Takes the arguments.
    pub(super) fn take_arguments(&mut self, arguments: &[OsString]) -> Result<(), ParseStop> {
        self.take(arguments, true)
    }

    /// Adds a line as MySQL's programs have it: program, level, text.
    pub(super) fn tell(&mut self, level: &str, text: &str) {
        self.told.push_str(&format!("{}: {level} {text}\n", self.short_program));
    }

    fn refuse<T>(&mut self, code: u8, text: &str) -> Result<T, ParseStop> {
        self.tell(ERROR, text);
        Err(ParseStop::Code(code))
    }

    fn take(&mut self, arguments: &[OsString], on_command_line: bool) -> Result<(), ParseStop> {
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let bytes = argument.as_bytes();
            if let Some(long) = bytes.strip_prefix(b"--") {
                if long.is_empty() {
                    self.options.logs.extend(rest.by_ref().map(Into::into));
                } else {
                    self.long(long, &mut rest, on_command_line)?;
                }
            } else if let Some(letters) = bytes.strip_prefix(b"-").filter(|letters| !letters.is_empty()) {
                self.letters(letters, &mut rest)?;
            } else {
                self.options.logs.push(argument.into());
            }
        }
        Ok(())
    }

    fn long(
        &mut self,
        argument: &[u8],
        rest: &mut std::slice::Iter<'_, OsString>,
        on_command_line: bool,
    ) -> Result<(), ParseStop> {
        let (name, mut value) = match argument.iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let (name, value) = argument.split_at(at);
                (name, value.strip_prefix(b"=").map(OsStr::from_bytes))
            }
            None => (argument, None),
        };
        let name = String::from_utf8_lossy(name).replace('_', "-");
        let FoundOption { definition, loose, maximum, switched } = find(&name);
        let Some(definition) = definition else {
            return self.unknown(argument, value.is_some() || maximum, loose);
        };
        if let Some(on) = switched {
            // Off and 0 is on again.
            let zero = value == Some(OsStr::new("0"));
            value = Some(OsStr::new(if on != zero { "1" } else { "0" }));
        }
        let program = self.program;
        let own_name = definition.name;
        match definition.kind {
            OptionKind::Disabled => {
                let shown = String::from_utf8_lossy(argument);
                // Without the prefix that was taken off.
                let shown = shown.get(shown.find(own_name).unwrap_or(0)..).unwrap_or(&shown).to_owned();
                self.refuse(
                    code::DISABLED,
                    &format!("{program}: Option '{shown}' was used, but is disabled."),
                )
            }
            OptionKind::Switch(_) | OptionKind::Count(_) | OptionKind::Help | OptionKind::Version => {
                if let OptionKind::Switch(field) = definition.kind {
                    return self.switch(definition, field, value);
                }
                if value.is_some() {
                    let text = format!("{program}: option '--{own_name}' cannot take an argument.");
                    return self.refuse(code::NO_ARGUMENT_ALLOWED, &text);
                }
                self.plain(definition)
            }
            OptionKind::Password => {
                let value = if switched == Some(false) { Some(OsStr::new("")) } else { value };
                self.password(definition, value, on_command_line)
            }
            _ => {
                let next = || rest.next().filter(|_| on_command_line).map(OsString::as_os_str);
                let Some(value) = value.or_else(next) else {
                    let shown = String::from_utf8_lossy(argument);
                    let text = format!("{program}: option '--{shown}' requires an argument.");
                    return self.refuse(code::ARGUMENT_REQUIRED, &text);
                };
                if name == OUTPUT && value == "-" {
                    self.options.result_file = None;
                    return Ok(());
                }
                self.value(definition, value)
            }
        }
    }

    /// An option that there isn't, or one that sets a variable.
    fn unknown(&mut self, argument: &[u8], is_variable: bool, is_loose: bool) -> Result<(), ParseStop> {
        let shown = String::from_utf8_lossy(argument);
        let (code, text) = match is_variable {
            true => (code::UNKNOWN_VARIABLE, format!("unknown variable '{shown}'.")),
            false => (code::UNKNOWN_OPTION, format!("unknown option '--{shown}'.")),
        };
        if is_loose {
            self.tell(WARNING, &text);
            return Ok(());
        }
        self.refuse(code, &text)
    }

    fn letters(
        &mut self,
        letters: &[u8],
        rest: &mut std::slice::Iter<'_, OsString>,
    ) -> Result<(), ParseStop> {
        let program = self.program;
        for (index, &letter) in letters.iter().enumerate() {
            let found = OPTIONS.iter().find(|definition| definition.short == Some(letter as char));
            let shown = letter.escape_ascii();
            let Some(definition) = found else {
                let text = format!("{program}: unknown option '-{shown}'.");
                return self.refuse(code::UNKNOWN_OPTION, &text);
            };
            let attached =
                letters.get(index + 1..).filter(|attached| !attached.is_empty()).map(OsStr::from_bytes);
            match definition.kind {
                OptionKind::Disabled => {
                    let text = format!("{program}: Option '-{shown}' was used, but is disabled.");
                    return self.refuse(code::DISABLED, &text);
                }
                OptionKind::Switch(field) => self.switch(definition, field, None)?,
                OptionKind::Count(_) | OptionKind::Help | OptionKind::Version => self.plain(definition)?,
                OptionKind::Password => return self.password(definition, attached, true),
                _ => {
                    let Some(value) = attached.or_else(|| rest.next().map(OsString::as_os_str)) else {
                        let text = format!("{program}: option '-{shown}' requires an argument.");
                        return self.refuse(code::ARGUMENT_REQUIRED, &text);
                    };
                    return self.value(definition, value);
                }
            }
        }
        Ok(())
    }

    fn switch(
        &mut self,
        definition: &'static OptionDefinition,
        field: fn(&mut DumpSettings) -> &mut bool,
        value: Option<&OsStr>,
    ) -> Result<(), ParseStop> {
        let text = value.map(|value| value.to_string_lossy().to_ascii_lowercase());
        match text.as_deref() {
            None | Some("1" | "true" | "on") => *field(&mut self.options) = true,
            Some("0" | "false" | "off") => *field(&mut self.options) = false,
            Some(_) => {
                let shown = value.unwrap_or_default().to_string_lossy().into_owned();
                let program = self.program;
                let name = definition.name;
                let text = format!("{program}: ignoring option '--{name}' due to invalid value '{shown}'.");
                self.tell(WARNING, &text);
            }
        }
        self.then(definition);
        Ok(())
    }

    fn plain(&mut self, definition: &'static OptionDefinition) -> Result<(), ParseStop> {
        match definition.kind {
            OptionKind::Help => Err(ParseStop::Help),
            OptionKind::Version => Err(ParseStop::Version),
            OptionKind::Count(field) => {
                let count = field(&mut self.options);
                *count = count.saturating_add(1);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn password(
        &mut self,
        definition: &'static OptionDefinition,
        value: Option<&OsStr>,
        on_command_line: bool,
    ) -> Result<(), ParseStop> {
        if value.is_some() && on_command_line && !self.password_warned {
            self.password_warned = true;
            self.tell(WARNING, "Using a password on the command line interface can be insecure.");
        }
        self.options.connection.push((definition.name, value.map(OsStr::to_owned)));
        Ok(())
    }

    fn value(&mut self, definition: &'static OptionDefinition, value: &OsStr) -> Result<(), ParseStop> {
        let text = value.to_string_lossy();
        let name = definition.told_as;
        let is_number = matches!(definition.kind, OptionKind::Unsigned(..) | OptionKind::Signed(..));
        if is_number && text.is_empty() {
            let text = format!("{}: Empty value for '{name}' specified.", self.program);
            return self.refuse(code::ARGUMENT_REQUIRED, &text);
        }
        let mut told = Vec::new();
        let set = match &definition.kind {
            OptionKind::Unsigned(field, limits) => number::unsigned(name, &text, limits, &mut told)
                .map(|number| *field(&mut self.options) = number),
            OptionKind::Signed(field, range) => {
                number::signed(name, &text, range, &mut told).map(|number| *field(&mut self.options) = number)
            }
            OptionKind::Text(set) => {
                if let Err(problem) = set(&mut self.options, definition.name, value) {
                    self.told.push_str(&problem);
                    self.told.push('\n');
                    return Err(ParseStop::Code(1));
                }
                self.options.given.retain(|(name, _)| *name != definition.name);
                self.options.given.push((definition.name, value.to_owned()));
                Ok(())
            }
            _ => Ok(()),
        };
        for (level, text) in told {
            self.tell(level, &text);
        }
        if set.is_err() {
            let text = format!("{}: Error while setting value '{text}' to '{name}'.", self.program);
            return self.refuse(code::BAD_NUMBER, &text);
        }
        self.then(definition);
        Ok(())
    }

    /// Applies an option's effects beyond its own field.
    fn then(&mut self, definition: &'static OptionDefinition) {
        if let Some(instead) = definition.deprecated {
            let hint = if instead.is_empty() { "\n".into() } else { format!(". Use {instead} instead.\n") };
            let name = definition.name;
            self.told.push_str(&format!(
                "WARNING: --{name} is deprecated and will be removed in a future version{hint}\n"
            ));
        }
        if let Some(then) = definition.then {
            then(&mut self.options);
        }
    }
}

struct FoundOption {
    definition: Option<&'static OptionDefinition>,
    loose: bool,
    maximum: bool,
    switched: Option<bool>,
}

/// The option of a name, prefixes taken off.
fn find(name: &str) -> FoundOption {
    let mut found = FoundOption { definition: by_name(name), loose: false, maximum: false, switched: None };
    let mut rest = name;
    while found.definition.is_none() {
        let stripped = PREFIXES
            .iter()
            .find_map(|(prefix, meaning)| Some((rest.strip_prefix(prefix)?.strip_prefix('-')?, *meaning)));
        let Some((stripped, prefix)) = stripped else { break };
        found.definition = by_name(stripped);
        rest = stripped;
        // Of several prefixes the last one counts; any makes an unknown option harmless if it is `loose`.
        found.loose |= prefix == Prefix::Loose;
        if found.definition.is_some() {
            match prefix {
                Prefix::Off => found.switched = Some(false),
                Prefix::On => found.switched = Some(true),
                Prefix::Maximum => found.maximum = true,
                Prefix::Loose => {}
            }
        }
    }
    found
}

fn by_name(name: &str) -> Option<&'static OptionDefinition> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
    OPTIONS.iter().find(|definition| definition.name == name)
}
