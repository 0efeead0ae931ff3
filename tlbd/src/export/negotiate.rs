//! Which exposition format a client asks for, by its Accept header.
//!
//! Follows RFC 9110, section 12.5.1: for each format the most specific media range decides, and
//! the format with the higher quality wins. Nobody is refused: who accepts neither format, or
//! sends nonsense, gets what every scraper reads.

/// A format in which metrics are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics text 1.0.0.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    Prometheus,
}

impl Format {
    /// The format to answer with; several Accept headers are joined by commas, none is empty.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let (mut openmetrics, mut prometheus) = (Claim::default(), Claim::default());
        for range in split(accept, ',').filter_map(Range::parse) {
            openmetrics.consider(&range, "application", "openmetrics-text", &["1.0.0"]);
            prometheus.consider(&range, "text", "plain", &["0.0.4", "1.0.0"]);
        }
        let asked_by_name = openmetrics.specificity > 1;
        if openmetrics.quality > prometheus.quality
            || (asked_by_name && openmetrics.quality > 0.0 && openmetrics.ties(prometheus))
        {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The Content-Type of an answer in this format.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What the most specific range so far says about a format.
#[derive(Clone, Copy, Default)]
struct Claim {
    specificity: u8,
    quality: f32,
}

impl Claim {
    fn consider(&mut self, range: &Range<'_>, kind: &str, subtype: &str, versions: &[&str]) {
        let specificity = match range.version {
            _ if range.kind == "*" && range.subtype == "*" => 0,
            _ if !range.kind.eq_ignore_ascii_case(kind) => return,
            _ if range.subtype == "*" => 1,
            _ if !range.subtype.eq_ignore_ascii_case(subtype) => return,
            None => 2,
            Some(version) if versions.contains(&version) => 3,
            Some(_) => return,
        };
        let better = range.quality > self.quality;
        if specificity > self.specificity || (specificity == self.specificity && better) {
            *self = Self {
                specificity,
                quality: range.quality,
            };
        }
    }

    fn ties(self, other: Self) -> bool {
        self.quality >= other.quality
    }
}

/// One element of the header.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    version: Option<&'a str>,
    quality: f32,
}

impl<'a> Range<'a> {
    /// Reads an element; `None` if it is not a media range with a sound quality.
    fn parse(element: &'a str) -> Option<Self> {
        let mut parts = split(element, ';');
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut range = Self {
            kind: kind.trim(),
            subtype: subtype.trim(),
            version: None,
            quality: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                name if name.eq_ignore_ascii_case("q") => range.quality = quality(value)?,
                name if name.eq_ignore_ascii_case("version") => range.version = Some(value),
                _ => {}
            }
        }
        Some(range)
    }
}

fn quality(text: &str) -> Option<f32> {
    text.parse()
        .ok()
        .filter(|quality| (0.0..=1.0).contains(quality))
}

/// The parts between separators that are outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        let was_escaped = std::mem::take(&mut escaped);
        match character {
            '"' if !was_escaped => quoted = !quoted,
            '\\' if quoted && !was_escaped => escaped = true,
            _ => {}
        }
        character == separator && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Prometheus servers send by default: 2.34 to 2.48, 2.49 to 2.55, 3.
    const SERVERS: [&str; 3] = [
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
         q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
         version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
         application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
         escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    ];
    /// With native histograms on, protobuf comes first; it is not on offer.
    const PROTOBUF: &str = "application/vnd.google.protobuf;\
        proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
        application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
        application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

    #[test]
    fn prometheus_servers_get_openmetrics() {
        for accept in SERVERS.into_iter().chain([PROTOBUF]) {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
    }

    #[test]
    fn who_asks_for_nothing_in_particular_gets_the_old_text() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for accept in [
            "",
            "*/*",
            "text/plain;version=0.0.4",
            "text/plain",
            "text/*",
            browser,
        ] {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn openmetrics_by_name_or_type_is_given() {
        for accept in [
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "Application/OpenMetrics-Text;Version=\"1.0.0\"",
            "application/openmetrics-text, text/plain",
            "text/plain, application/openmetrics-text",
            "application/*",
        ] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
    }

    #[test]
    fn the_higher_quality_wins() {
        for (accept, format) in [
            (
                "application/openmetrics-text;q=0.3,text/plain;q=0.4",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.4,text/plain;q=0.3",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0.4,*/*;q=0.9",
                Format::Prometheus,
            ),
            ("application/openmetrics-text;q=0,*/*", Format::Prometheus),
            ("text/plain;q=0,*/*;q=0.1", Format::OpenMetrics),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    #[test]
    fn a_version_that_is_not_on_offer_does_not_count() {
        // What Prometheus up to 2.33 sends.
        let accept = "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,\
            */*;q=0.1";
        assert_eq!(Format::accepted(accept), Format::Prometheus);
    }

    #[test]
    fn who_refuses_everything_or_sends_nonsense_gets_the_old_text() {
        for accept in [
            "application/openmetrics-text;q=0,text/plain;q=0",
            "application/openmetrics-text;q=NaN",
            "application/openmetrics-text;q=7",
            "application/openmetrics-text;q=-1",
            "image/png",
            ",;,;=\"",
            "///",
        ] {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn separators_in_quotes_separate_nothing() {
        let accept = r#"image/png;x="a,application/openmetrics-text,\",",text/plain;q=0.1"#;
        assert_eq!(Format::accepted(accept), Format::Prometheus);
    }

    proptest! {
        #[test]
        fn any_header_gets_a_format(
            accept in r#"([a-z*/;,="\\ 0-9.-]|q=|version=|openmetrics-text|\PC){0,60}"#
        ) {
            let _ = Format::accepted(&accept);
        }

        #[test]
        fn of_two_named_formats_the_higher_quality_wins(a in 0..=1000_u32, b in 0..=1000_u32) {
            let (a, b) = (f64::from(a) / 1000.0, f64::from(b) / 1000.0);
            let accept = format!("text/plain;q={b},application/openmetrics-text;q={a}");
            let openmetrics = a >= b && a > 0.0;
            let expected = if openmetrics { Format::OpenMetrics } else { Format::Prometheus };
            prop_assert_eq!(Format::accepted(&accept), expected);
        }
    }
}
