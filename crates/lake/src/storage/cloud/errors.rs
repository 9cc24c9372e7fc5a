//! What the errors of stores mean.

use std::error::Error as _;

use object_store::client::{HttpError, HttpErrorKind};
use tidelake_model::{Again, Error, ErrorKind};

/// What a provider calls things, and what its users can do.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// `bucket` or `container`, and its name.
    pub(super) container: (&'static str, String),
    /// How to allow what is needed.
    pub(super) rights: &'static str,
    /// What to check where the store does not know who asks.
    pub(super) login: &'static str,
}

impl Words {
    /// Whether an error says that the bucket itself is missing.
    pub(super) fn names_container(&self, error: &Error) -> bool {
        let (word, name) = &self.container;
        error.message() == format!("the {word} {name:?} does not exist")
    }
}

/// Codes of stores that say that the bucket or container is not there.
const NO_CONTAINER: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"];

pub(super) fn is_missing_object(error: &object_store::Error) -> bool {
    let has_container =
        || !code(&error.to_string()).is_some_and(|code| NO_CONTAINER.contains(&code.as_str()));
    matches!(error, object_store::Error::NotFound { .. }) && has_container()
}

/// Whether an upload that should be completed or aborted is not there any more.
pub(super) fn is_gone_upload(error: &object_store::Error) -> bool {
    let text = error.to_string();
    // Blocks that were completed or thrown away, and uploads; not every client
    // tells the latter from other errors.
    let is_code = |code: String| matches!(code.as_str(), "NoSuchUpload" | "InvalidBlockList");
    is_missing_object(error) || code(&text).is_some_and(is_code)
}

/// Whether the line broke after a request was sent, so that nobody knows what the
/// store made of it. What was not sent at all, the client has tried again itself.
pub(super) fn is_cut_short(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return matches!(
                error.kind(),
                HttpErrorKind::Interrupted | HttpErrorKind::Decode | HttpErrorKind::Unknown
            );
        }
        cause = error.source();
    }
    false
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    // What follows the first line are a request's number and time.
    let line = content.trim().lines().next().unwrap_or_default();
    Some(line.chars().take(200).collect())
}

fn code(text: &str) -> Option<String> {
    element(text, "Code")
}

fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The reason of a service that gives out tokens, such as `invalid_client`.
fn refused_login(text: &str) -> Option<String> {
    const REASONS: [&str; 5] = [
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "invalid_request",
        "invalid_scope",
    ];
    let reason = REASONS.iter().find(|reason| text.contains(&format!("\"{reason}\"")))?;
    // Microsoft numbers what went wrong.
    let number = text.split_once("AADSTS").map(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        format!(" (AADSTS{digits})")
    });
    Some(format!("{reason}{}", number.unwrap_or_default()))
}

/// Says what an error of the store means. Its own text is not handed on: an
/// answer to a request with a wrong signature repeats the request's headers, and
/// with them a session token.
pub(super) fn explain(error: &object_store::Error, place: &str, words: &Words) -> Error {
    use object_store::Error as Store;

    let text = error.to_string();
    if let Some(reason) = refused_login(&text) {
        let message = format!("{place}: the login was refused: {reason}");
        return Error::new(ErrorKind::Denied, message).with_hint(words.login);
    }
    let code = code(&text);
    let message = element(&text, "Message").filter(|message| !repeats_a_request(message));
    let detail = match (&code, message, status(&text)) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (Some(code), None, _) => code.clone(),
        (None, _, Some(status)) => format!("the store answered with status {status}"),
        (None, _, None) => innermost(error),
    };
    let (kind, hint) = match (code.as_deref().unwrap_or_default(), error) {
        (code, _) if NO_CONTAINER.contains(&code) => {
            let (word, name) = &words.container;
            let message = format!("the {word} {name:?} does not exist");
            return Error::new(ErrorKind::NotFound, message)
                .with_hint(format!("create the {word}, or correct its name in the credential"));
        }
        ("RequestTimeTooSkewed", _) => (ErrorKind::Denied, "set this machine's clock"),
        ("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraint", _) => {
            (ErrorKind::Configuration, "set the bucket's own region in the credential")
        }
        ("InvalidBucketName" | "InvalidResourceName", _) => {
            (ErrorKind::Configuration, "correct the name in the credential's directory")
        }
        ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired", _) => {
            (ErrorKind::Denied, "get fresh keys and set them in the credential")
        }
        (
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "AuthenticationFailed"
            | "InvalidAuthenticationInfo"
            | "NoAuthenticationInformation",
            _,
        )
        | (_, Store::Unauthenticated { .. }) => (ErrorKind::Denied, words.login),
        // One emulator calls both cases so.
        ("AuthorizationFailure", _) if text.contains("failed to authenticate") => {
            (ErrorKind::Denied, words.login)
        }
        ("AccountIsDisabled" | "UserProjectAccountProblem", _) => {
            (ErrorKind::Denied, "have the account enabled again by who owns it")
        }
        (_, Store::PermissionDenied { .. }) => (ErrorKind::Denied, words.rights),
        (_, Store::NotFound { .. }) => (ErrorKind::NotFound, ""),
        (_, Store::AlreadyExists { .. }) => (ErrorKind::AlreadyExists, ""),
        (_, Store::Precondition { .. } | Store::NotModified { .. }) => (ErrorKind::Conflict, ""),
        (_, Store::NotImplemented { .. } | Store::NotSupported { .. }) => {
            (ErrorKind::Unsupported, "")
        }
        _ => match status(&text) {
            Some(501) => (ErrorKind::Unsupported, ""),
            Some(401 | 403) => (ErrorKind::Denied, words.rights),
            Some(429 | 503) => (
                ErrorKind::Unavailable,
                "the store wants fewer requests: lower --n-jobs, or run again later",
            ),
            Some(status) if status < 500 && status != 408 => (ErrorKind::Internal, ""),
            None if text.contains("redirect without LOCATION") => {
                (ErrorKind::Configuration, "set the bucket's own region in the credential")
            }
            _ => (ErrorKind::Unavailable, "check the endpoint and the network, then run again"),
        },
    };
    // Whatever can be mended by waiting was waited for below.
    let error = Error::new(kind, format!("{place}: {detail}")).with_again(Again::Never);
    if hint.is_empty() { error } else { error.with_hint(hint) }
}

/// Whether a text may hold the address of a request, and with it a signature.
fn repeats_a_request(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["://", "sig=", "signature=", "authorization:"].iter().any(|part| text.contains(part))
}

/// The last cause, which is the system's or the protocol's own word.
fn innermost(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    if repeats_a_request(&text) {
        return "the request failed".to_owned();
    }
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words { container: ("bucket", "b".to_owned()), rights: "rights", login: "login" }
    }

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn what_the_store_says_becomes_what_the_user_can_do() {
        for (text, kind, hint) in [
            (
                "status code: 503 Service Unavailable: <Code>SlowDown</Code>",
                ErrorKind::Unavailable,
                "fewer requests",
            ),
            ("status code: 429 Too Many Requests: ", ErrorKind::Unavailable, "fewer requests"),
            ("status code: 500 Internal", ErrorKind::Unavailable, "run again"),
            ("status code: 400: <Code>ExpiredToken</Code>", ErrorKind::Denied, "fresh keys"),
            ("status code: 404: <Code>NoSuchBucket</Code>", ErrorKind::NotFound, "create the"),
            ("status code: 404: <Code>ContainerNotFound</Code>", ErrorKind::NotFound, "create the"),
            ("status code: 403: <Code>AuthenticationFailed</Code>", ErrorKind::Denied, "login"),
            ("status code: 403: <Code>AuthorizationFailure</Code>", ErrorKind::Denied, "rights"),
            ("status code: 400: <Code>EntityTooSmall</Code>", ErrorKind::Internal, ""),
            ("Received redirect without LOCATION, this", ErrorKind::Configuration, "region"),
            ("operation timed out", ErrorKind::Unavailable, "run again"),
        ] {
            let error = explain(&generic(text), "s3://b/k", &words());
            assert_eq!(error.kind(), kind, "{text}");
            assert!(error.hint().unwrap_or_default().contains(hint), "{text}: {error:?}");
        }
    }

    #[test]
    fn an_answer_that_repeats_the_request_is_not_repeated() {
        let text = "status code: 403: <Error><Code>SignatureDoesNotMatch</Code><Message>no</Message>\
                    <CanonicalRequest>x-amz-security-token:TOPSECRET</CanonicalRequest></Error>";
        let error = object_store::Error::PermissionDenied { path: "k".into(), source: text.into() };
        let error = explain(&error, "s3://b/k", &words());
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(!format!("{error:?} {}", error.chain()).contains("TOPSECRET"));
        assert!(error.message().contains("SignatureDoesNotMatch: no"));
    }

    #[test]
    fn an_address_in_a_cause_is_not_repeated() {
        let error = generic("builder error for url (https://a/b?sig=TOPSECRET)");
        let error = explain(&error, "abs://b/k", &words());
        assert!(!format!("{error:?} {}", error.chain()).contains("TOPSECRET"), "{error:?}");
        let text = "status code: 403: <Code>AuthenticationFailed</Code>\
                    <Message>no: /a?sp=r&amp;sig=TOPSECRET</Message>";
        let error = explain(&generic(text), "abs://b/k", &words());
        assert_eq!(error.message(), "abs://b/k: AuthenticationFailed");
    }

    #[test]
    fn a_refused_login_names_its_reason_alone() {
        let text = "status code: 401 Unauthorized: {\"error\":\"invalid_client\",\
                    \"error_description\":\"AADSTS7000215: Invalid client secret TOPSECRET.\"}";
        let error = explain(&generic(text), "abs://b/k", &words());
        assert_eq!(error.kind(), ErrorKind::Denied);
        let message = "abs://b/k: the login was refused: invalid_client (AADSTS7000215)";
        assert_eq!(error.message(), message);
    }

    #[test]
    fn blocks_that_are_gone_are_no_failure_of_the_store() {
        let gone = |text: &str| is_gone_upload(&generic(text));
        assert!(gone("status code: 400: <Code>InvalidBlockList</Code>"));
        assert!(gone("status code: 404: <Code>NoSuchUpload</Code>"));
        assert!(!gone("status code: 500: <Code>InternalError</Code>"));
    }
}
