//! The settings of the export: the standard environment variables of OpenTelemetry.

use std::time::Duration;

use reqwest::Url;

/// Time limit of an export.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What is exported, and where. The SDK reads the headers, the compression, the intervals and the size of the queue from
/// the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The URL that receives spans; `None`: they are not exported.
    pub(crate) traces: Option<Url>,
    /// The URL that receives metrics; `None`: they are not exported.
    pub(crate) metrics: Option<Url>,
    /// Time limit of an export.
    pub(crate) timeout: Duration,
    /// Whether messages, arguments and results are exported.
    pub(crate) captures_content: bool,
}

impl Settings {
    /// Reads the environment variables that `get` returns. Returns `None` if no endpoint is set, or if the export is
    /// disabled.
    ///
    /// # Errors
    /// If a variable has a value that is not supported, as a message.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let value = |name: &str| get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let is_true = |name: &str| value(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        if is_true("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let (traces, metrics) =
            (signal("TRACES", "v1/traces", &value)?, signal("METRICS", "v1/metrics", &value)?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let timeout = value("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|text| text.parse().ok());
        let content = value("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").unwrap_or_default();
        let captures_content =
            ["true", "span_only", "span_and_event"].iter().any(|on| content.eq_ignore_ascii_case(on));
        Ok(Some(Self {
            traces,
            metrics,
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            captures_content,
        }))
    }
}

/// Returns the URL of a signal; `None`: it is not exported.
fn signal(signal: &str, path: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<Option<Url>, String> {
    // The variable of a signal takes precedence over the one of all signals.
    let setting = |name: &str| {
        let variables = [format!("OTEL_EXPORTER_OTLP_{signal}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        variables.into_iter().find_map(|variable| value(&variable).map(|value| (variable, value)))
    };
    if value(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|exporter| exporter == "none") {
        return Ok(None);
    }
    let Some((variable, mut endpoint)) = setting("ENDPOINT") else { return Ok(None) };
    if !variable.contains(signal) {
        endpoint = format!("{}/{path}", endpoint.trim_end_matches('/'));
    }
    let url =
        Url::parse(&endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| format!("{variable}: expected an HTTP URL such as http://localhost:4318"))?;
    // The exporters ignore an unsupported protocol.
    match setting("PROTOCOL") {
        Some((variable, protocol)) if protocol != "http/protobuf" => {
            Err(format!("{variable}: unsupported protocol `{protocol}`; use `http/protobuf`"))
        }
        _ => Ok(Some(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the settings of variables like `NAME=VALUE`, without the prefix `OTEL_`.
    fn read(variables: &[&str]) -> String {
        let get = |name: &str| {
            let found = variables.iter().filter_map(|text| text.split_once('='));
            found
                .filter(|(known, _)| name.strip_prefix("OTEL_") == Some(known))
                .map(|(_, value)| value.to_owned())
                .next()
        };
        match Settings::read(&get) {
            Ok(None) => String::from("off"),
            Ok(Some(settings)) => {
                let url = |url: Option<Url>| url.map_or_else(|| String::from("-"), String::from);
                let content = if settings.captures_content { " content" } else { "" };
                format!("{} {}{content}", url(settings.traces), url(settings.metrics))
            }
            Err(error) => error,
        }
    }

    #[test]
    fn the_standard_variables_are_read() {
        let base = "EXPORTER_OTLP_ENDPOINT=http://h:4318";
        let capture = "INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
        let both = "http://h:4318/v1/traces http://h:4318/v1/metrics";
        for (variables, expected) in [
            (&[][..], "off"),
            (&["EXPORTER_OTLP_ENDPOINT= "], "off"),
            (&[base], both),
            (&["EXPORTER_OTLP_ENDPOINT=http://h:4318/"], both),
            (
                &["EXPORTER_OTLP_ENDPOINT=https://h/otlp"],
                "https://h/otlp/v1/traces https://h/otlp/v1/metrics",
            ),
            (&[base, "SDK_DISABLED=true"], "off"),
            (&[base, "SDK_DISABLED=false"], both),
            (&[base, "METRICS_EXPORTER=none"], "http://h:4318/v1/traces -"),
            (&[base, "METRICS_EXPORTER=none", "TRACES_EXPORTER=none"], "off"),
            (&["EXPORTER_OTLP_TRACES_ENDPOINT=http://t/x"], "http://t/x -"),
            (&[base, "EXPORTER_OTLP_METRICS_ENDPOINT=http://m/x"], "http://h:4318/v1/traces http://m/x"),
            (&[base, "EXPORTER_OTLP_PROTOCOL=http/protobuf"], both),
            (
                &[base, "EXPORTER_OTLP_PROTOCOL=grpc"],
                "OTEL_EXPORTER_OTLP_PROTOCOL: unsupported protocol `grpc`; use `http/protobuf`",
            ),
            (
                &[
                    base,
                    "EXPORTER_OTLP_PROTOCOL=grpc",
                    "EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
                    "METRICS_EXPORTER=none",
                ],
                "http://h:4318/v1/traces -",
            ),
            (
                &["EXPORTER_OTLP_ENDPOINT=localhost:4317"],
                "OTEL_EXPORTER_OTLP_ENDPOINT: expected an HTTP URL such as http://localhost:4318",
            ),
            (&["EXPORTER_OTLP_PROTOCOL=grpc"], "off"),
        ] {
            assert_eq!(read(variables), expected, "{variables:?}");
        }
        for (value, is_on) in [
            ("true", true),
            ("SPAN_ONLY", true),
            ("span_and_event", true),
            ("EVENT_ONLY", false),
            ("false", false),
            ("NO_CONTENT", false),
        ] {
            assert_eq!(read(&[base, &format!("{capture}={value}")]).ends_with(" content"), is_on, "{value}");
        }
    }
}
