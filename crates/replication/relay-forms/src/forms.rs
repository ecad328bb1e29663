//! A log in its forms.

use binlogz_relay_log::{Form, FoundFile, LineageLog, Result};
use binlogz_store::FileNumber;

use crate::conversions::Conversions;
use crate::masked::MaskedForm;

/// A log, with what all its readers share.
#[derive(Debug, Clone, Copy)]
pub struct Forms<'a> {
    /// The log.
    pub kept: &'a LineageLog,
    /// The converters and blocks.
    pub conversions: &'a Conversions,
    /// The policy by which the uncompressed form leaves, if it doesn't leave as it is.
    pub exits: Option<&'a MaskedForm>,
}

impl Conversions {
    /// The forms of a log.
    pub fn of<'a>(&'a self, kept: &'a LineageLog) -> Forms<'a> {
        Forms { kept, conversions: self, exits: None }
    }
}

impl<'a> Forms<'a> {
    /// The forms as they leave by this policy: of them there is the uncompressed one alone.
    #[must_use]
    pub fn leaving(self, exits: Option<&'a MaskedForm>) -> Self {
        Forms { exits, ..self }
    }

    /// The name of the file of this number in a form.
    pub fn name(&self, form: Form, number: FileNumber) -> String {
        match self.exits {
            Some(exits) => exits.name(self.kept, number),
            None => self.kept.names.name(form, number),
        }
    }

    /// The form, and what is there of the file, of this name; `None`: no form has files of such a name.
    ///
    /// # Errors
    ///
    /// The log can't be read.
    pub fn find(&self, name: &str) -> Result<Option<(Form, FileNumber, FoundFile)>> {
        let parsed = match self.exits {
            Some(exits) => exits.number(self.kept, name).map(|number| (Form::Uncompressed, number)),
            None => self.kept.names.parse(name),
        };
        let Some((form, number)) = parsed else { return Ok(None) };
        Ok(Some((form, number, self.kept.find(form, number)?)))
    }
}
