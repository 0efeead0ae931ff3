//! A view as text for Prometheus: OpenMetrics 1.0, and the older text format made from it.
//!
//! A family that has no series in the view is left out, its description too. prometheus-client
//! writes the lines and escapes the label values; it adds units and suffixes to names itself, so
//! a [`Metric`]'s name is taken apart for it. The older format differs only in the comment lines,
//! so it is a copy with those rewritten.

use std::{borrow::Cow, fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
        text,
    },
    metrics::MetricType,
    registry::{Registry, Unit},
};

use crate::{
    export::metric::{Kind, Metric, Series, Value},
    model::view::View,
};

/// The metrics of every collector, in the order in which they are written.
pub type Metrics = &'static [&'static [&'static Metric]];

/// Room for the series of one cgroup, in bytes: about 20 lines of 100. Only a hint, that saves
/// growing by copying.
const CGROUP_ROOM: usize = 2 << 10;

/// The view in OpenMetrics text 1.0.
///
/// Integers are exact and measures are read back as the same number. A measure that is not finite
/// is no measurement and is left out.
///
/// # Errors
/// A metric's reader gave a series more or fewer labels than the metric declares.
pub fn openmetrics(view: &Arc<View>, metrics: Metrics) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposition {
        view: Arc::clone(view),
        metrics,
    }));
    let mut out = String::with_capacity(view.cgroups.len() * CGROUP_ROOM);
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// The same in Prometheus text format 0.0.4, made from [`openmetrics`]'s output.
///
/// Counters and infos are described under the full name of their samples, an info is a gauge, and
/// there is neither `UNIT` nor `EOF`.
#[must_use]
pub fn prometheus(openmetrics: &str) -> String {
    let mut out = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.split_inclusive('\n') {
        let Some(comment) = line.strip_prefix("# ") else {
            out.push_str(line);
            continue;
        };
        if let Some(text) = comment.strip_prefix("HELP ") {
            help = Some(text);
        } else if let Some(kind) = comment.strip_prefix("TYPE ") {
            describe(&mut out, help.take(), kind.trim_end());
        }
    }
    out
}

#[derive(Debug)]
struct Exposition {
    view: Arc<View>,
    metrics: Metrics,
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.metrics.iter().copied().flatten())
            .try_for_each(|metric| family(&self.view, metric, &mut encoder))
    }
}

/// Writes a family: its description before its first series, nothing if it has none.
fn family(view: &View, metric: &Metric, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (stem, unit) = name_parts(metric);
    let help = escaped(metric.help);
    let (mut closed, mut open) = (Some(encoder), None);
    let mut written = Ok(());
    let mut sink = |labels: &[&str], value: Value| {
        if written.is_err() || !finite(value) {
            return;
        }
        if let Some(encoder) = closed.take() {
            match encoder.encode_descriptor(stem, &help, unit.as_ref(), kind(metric)) {
                Ok(family) => open = Some(family),
                Err(error) => written = Err(error),
            }
        }
        if let Some(family) = &mut open {
            written = series(family, metric, labels, value);
        }
    };
    (metric.read)(view, &mut Series::new(&mut sink));
    written
}

fn series(
    family: &mut MetricEncoder<'_>,
    metric: &Metric,
    values: &[&str],
    value: Value,
) -> fmt::Result {
    if values.len() != metric.labels.len() {
        return Err(fmt::Error);
    }
    let labels = Labels {
        names: metric.labels,
        values,
    };
    if metric.kind == Kind::Info {
        return family.encode_info(&labels);
    }
    if values.is_empty() {
        return sample(family, metric.kind, value);
    }
    sample(&mut family.encode_family(&labels)?, metric.kind, value)
}

fn sample(series: &mut MetricEncoder<'_>, kind: Kind, value: Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Counter, Value::Integer(count)) => {
            series.encode_counter::<NoLabelSet, u64, f64>(&count, None)
        }
        (Kind::Counter, Value::Real(measure)) => {
            series.encode_counter::<NoLabelSet, f64, f64>(&measure, None)
        }
        (_, Value::Integer(count)) => series.encode_gauge(&count),
        (_, Value::Real(measure)) => series.encode_gauge(&measure),
    }
}

/// A series' labels.
struct Labels<'a> {
    names: &'a [&'a str],
    values: &'a [&'a str],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        (self.names.iter().copied().zip(self.values.iter().copied()))
            .try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

/// The name without what prometheus-client adds, and the unit that it adds. An info has no unit,
/// whatever its name ends in (OpenMetrics 1.0, "Info").
fn name_parts(metric: &Metric) -> (&'static str, Option<Unit>) {
    let stem = metric.stem();
    let unit = metric.unit().filter(|_| metric.kind != Kind::Info);
    let short = unit.and_then(|unit| stem.strip_suffix(unit)?.strip_suffix('_'));
    match (short, unit) {
        (Some(short), Some(unit)) => (short, Some(Unit::Other(unit.to_owned()))),
        _ => (stem, None),
    }
}

fn kind(metric: &Metric) -> MetricType {
    match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Info => MetricType::Info,
    }
}

fn finite(value: Value) -> bool {
    match value {
        Value::Integer(_) => true,
        Value::Real(measure) => measure.is_finite(),
    }
}

/// Help text as OpenMetrics wants it; prometheus-client 0.25 writes it as it is.
fn escaped(help: &str) -> Cow<'_, str> {
    if !help.contains(['\\', '\n', '"']) {
        return Cow::Borrowed(help);
    }
    Cow::Owned(
        help.replace('\\', "\\\\")
            .replace('\n', "\\n")
            .replace('"', "\\\""),
    )
}

/// Writes the `HELP` and `TYPE` lines of a family; `help` and `kind` are `NAME REST`.
fn describe(out: &mut String, help: Option<&str>, kind: &str) {
    let Some((name, kind)) = kind.split_once(' ') else {
        return;
    };
    let (suffix, kind) = match kind {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "unknown" => ("", "untyped"),
        other => ("", other),
    };
    if let Some((_, text)) = help.and_then(|help| help.split_once(' ')) {
        out.extend(["# HELP ", name, suffix, " "]);
        push_unquoted(out, text);
    }
    out.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
}

/// Appends help text: in the older format a quote is not escaped, all else is as in OpenMetrics.
fn push_unquoted(out: &mut String, text: &str) {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some('"')) => {}
            ('\\', Some(next)) => {
                out.extend(['\\', next]);
                characters.next();
            }
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests;
