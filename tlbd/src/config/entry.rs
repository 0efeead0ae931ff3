//! One value for one key, from a flag, a variable or a line of the file: how it is read, and
//! whether it may stand.
//!
//! Nothing in a file is trusted: its size is bounded here, its depth by the TOML parser.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use toml::{Spanned, Table, Value};

use super::error::{Error, Place, nearest, shown};
use super::{Config, range};

/// A larger file is not a configuration.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where a value comes from.
#[derive(Clone, Debug)]
enum Origin {
    /// `--sample-hz`.
    Flag(String),
    /// `TLBD_SAMPLE_HZ`.
    Variable(String),
    /// The place of its key.
    File(Place),
}

/// A key with a value, both not yet checked.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Value,
    origin: Origin,
}

impl Entry {
    /// What the flag of a key, or else its variable, gives.
    pub(super) fn given(
        argument: &Arg,
        defaults: &Table,
        matches: &ArgMatches,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let key = argument.get_id().as_str();
        let (raw, origin) = if matches.value_source(key) == Some(ValueSource::CommandLine) {
            let parts: Vec<_> = matches
                .get_raw(key)?
                .map(|part| part.to_string_lossy())
                .collect();
            (
                parts.join(","),
                Origin::Flag(format!("--{}", argument.get_long()?)),
            )
        } else {
            let name = argument.get_env()?.to_str()?;
            (
                variable(name)?.to_string_lossy().into_owned(),
                Origin::Variable(name.into()),
            )
        };
        Some(Self {
            key: key.into(),
            value: typed(defaults.get(key)?, raw),
            origin,
        })
    }

    /// Whether the key exists, the value has its type and range, and the collectors exist.
    pub(super) fn check(&self, defaults: &Table, known_collectors: &[&str]) -> Result<(), Error> {
        let Some(default) = defaults.get(&self.key) else {
            return Err(Error::UnknownKey {
                given: self.place() + &shown(&self.key),
                mend: nearest(
                    &self.key,
                    &defaults.keys().map(String::as_str).collect::<Vec<_>>(),
                ),
            });
        };
        let alone = Table::from_iter([(self.key.clone(), self.value.clone())]);
        match alone.try_into::<Config>() {
            Ok(config) if self.in_range() => self.check_collectors(&config, known_collectors),
            Ok(_) => Err(self.wrong_value(default, "")),
            Err(error) => Err(self.wrong_value(default, error.message())),
        }
    }

    /// Whether a number is in its key's range; NaN is in none.
    fn in_range(&self) -> bool {
        let number = match self.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return true,
        };
        range(&self.key).is_none_or(|(low, high)| (low..=high).contains(&number))
    }

    fn check_collectors(&self, config: &Config, known: &[&str]) -> Result<(), Error> {
        match config
            .disable
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => Err(Error::UnknownCollector {
                given: self.place() + &self.assignment(&self.value),
                name: shown(name),
                mend: nearest(name, known),
            }),
        }
    }

    fn wrong_value(&self, default: &Value, message: &str) -> Error {
        let kind = match default {
            Value::Boolean(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Array(_) => "a list of names in quotes",
            _ => "text in quotes",
        };
        // For numbers the range says more than the parser does.
        let told =
            !message.is_empty() && self.value.same_type(default) && range(&self.key).is_none();
        Error::Value {
            given: self.place() + &self.assignment(&self.value),
            expected: match range(&self.key) {
                Some((low, high)) => format!("{kind} from {low} to {high}"),
                None => kind.into(),
            },
            example: self.assignment(default),
            detail: if told {
                format!(" ({})", shown(message))
            } else {
                String::new()
            },
        }
    }

    /// How an error begins: with the place, where flag and variable do not say it themselves.
    fn place(&self) -> String {
        match &self.origin {
            Origin::File(place) => format!("{place}: "),
            Origin::Flag(_) | Origin::Variable(_) => String::new(),
        }
    }

    /// The key with a value, as one would write it where it stands.
    fn assignment(&self, value: &Value) -> String {
        match &self.origin {
            Origin::File(_) => format!("{} = {}", self.key, shown(&value.to_string())),
            Origin::Flag(name) | Origin::Variable(name) => {
                format!("{name}={}", shown(&plain(value)))
            }
        }
    }
}

/// The text of a file; none where it does not exist and need not.
pub(super) fn read(path: &Path, required: bool) -> Result<String, Error> {
    let failed = |source| Error::Read {
        path: path.into(),
        source,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {
            return Ok(String::new());
        }
        opened => opened.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    let length = file
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if length as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        Error::NotText {
            place: Place::new(path, &text, valid),
        }
    })
}

/// The keys of a file in the order of its lines.
pub(super) fn parse(path: &Path, text: &str) -> Result<impl Iterator<Item = Entry>, Error> {
    let table: BTreeMap<Spanned<String>, Value> =
        toml::from_str(text).map_err(|error| Error::Syntax {
            place: Place::new(path, text, error.span().map_or(0, |span| span.start)),
            message: shown(error.message()),
        })?;
    let mut lines: Vec<_> = table.into_iter().collect();
    lines.sort_by_key(|(key, _)| key.span().start);
    // Places are found one by one, because a hostile file has many keys and its first is wrong.
    Ok(lines.into_iter().map(|(key, value)| {
        let place = Place::new(path, text, key.span().start);
        Entry {
            key: key.into_inner(),
            value,
            origin: Origin::File(place),
        }
    }))
}

/// The text of a flag or variable as a value of the default's type; as text where it is none.
fn typed(default: &Value, raw: String) -> Value {
    let text = raw.trim();
    let value = match default {
        Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
        Value::Integer(_) => text.parse().ok().map(Value::Integer),
        Value::Float(_) => text.parse().ok().map(Value::Float),
        Value::Array(_) => {
            let names = text
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            Some(Value::Array(names.map(Value::from).collect()))
        }
        _ => None,
    };
    value.unwrap_or(Value::String(raw))
}

/// A value as a flag or variable has it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Without the `.0` that a file needs to tell a float from an integer.
        Value::Float(number) => number.to_string(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
