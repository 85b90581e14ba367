//! The token of the HTTP API: read from a file, and compared in constant time.

use std::io::Read;
use std::path::Path;

use subtle::ConstantTimeEq;

/// Shortest token: sixteen random characters cannot be guessed over a network.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Longest token.
pub const TOKEN_BYTES_MAX: usize = 512;

/// Why a file contains no usable token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system's error.
    #[error("it cannot be read: {0}")]
    Unread(std::io::Error),
    /// Only white space.
    #[error("the file is empty")]
    Empty,
    /// Too easy to guess.
    #[error("the token is too short: {min} to {max} characters are needed", min = TOKEN_BYTES_MIN, max = TOKEN_BYTES_MAX)]
    Short,
    /// Longer than a header may be.
    #[error("the token is too long: {min} to {max} characters are needed", min = TOKEN_BYTES_MIN, max = TOKEN_BYTES_MAX)]
    Long,
    /// Several lines, spaces, or bytes that are not text.
    #[error("the token is not one line of printable characters")]
    Unprintable,
}

impl TokenError {
    /// Advice.
    pub fn hint(&self) -> &'static str {
        match self {
            TokenError::Unread(_) => {
                "check the path, which is seen from where the daemon is started, and that the daemon's user may read it; \
                 to make one: openssl rand -hex 32"
            }
            _ => "write one line of random characters into it: openssl rand -hex 32",
        }
    }
}

/// The token that requests must have.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<[u8]>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token in a file: its only line, without white space around it.
    ///
    /// # Errors
    /// Why there is none. The message contains nothing of the file.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(TokenError::Unread)?;
        // A line ending, and one byte that is too many.
        let most = (TOKEN_BYTES_MAX + 3) as u64;
        file.take(most).read_to_end(&mut text).map_err(TokenError::Unread)?;
        let token = text.trim_ascii();
        match token.len() {
            0 => return Err(TokenError::Empty),
            1..TOKEN_BYTES_MIN => return Err(TokenError::Short),
            TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX => {}
            _ => return Err(TokenError::Long),
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::Unprintable);
        }
        Ok(Token(token.into()))
    }

    /// True for the same token. Takes the same time for all texts of one length.
    pub fn is(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }

    /// Its text, for our own requests.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0).expect("it is printable ASCII")
    }
}

/// True when other users may read a file.
#[cfg(unix)]
pub fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o077 != 0)
}

/// True when other users may read a file, as far as the mode shows it on this system.
#[cfg(not(unix))]
pub fn is_open_to_others(_path: &Path) -> bool {
    false
}

#[test]
fn tokens_are_one_line_of_a_sensible_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    let table: &[(String, Result<&str, &str>)] = &[
        ("0123456789abcdef\n".into(), Ok("0123456789abcdef")),
        ("0123456789abcde\n".into(), Err("too short: 16 to 512 characters")),
        ("x".repeat(TOKEN_BYTES_MAX) + "\r\n", Ok("")),
        ("x".repeat(TOKEN_BYTES_MAX + 1), Err("too long")),
        ("x".repeat(9000), Err("too long")),
        ("0123456789abcdef\nmore".into(), Err("one line")),
        (String::new(), Err("empty")),
        (" \n".into(), Err("empty")),
    ];
    for (text, want) in table {
        std::fs::write(&path, text).expect("it can be written");
        match (Token::read(&path), want) {
            (Ok(token), Ok(want)) => {
                assert!(token.is(text.trim().as_bytes()) && token.text().starts_with(want));
                assert!(!token.is(b"") && !token.is(&text.as_bytes()[1..]) && !token.is(b"0123456789abcdeg"));
                assert!(!format!("{token:?}").contains("0123"));
            }
            (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{why}"),
            (found, want) => panic!("{found:?} instead of {want:?}"),
        }
    }
    let missing = Token::read(&folder.path().join("none")).expect_err("it is not there");
    assert!(missing.hint().starts_with("check the path"), "{missing}");
}
