//! Series names to paths and back (spec graphite §4.7).
//!
//! An untagged name is its path, with slashes for dots. A tagged one (normalised: tags sorted, `name;key=value;…`) lies
//! under `_tagged`, by the SHA-256 of the name. Names that no path fits, or for which the original uses the path of
//! another name, lie under `_hashed` in the same way: their names cannot be read from their paths, the catalog has them.
//! Not here: parsing and normalising names (`wire`), the file system (which rejects paths that leave the tree).
//! Invariants: two names never have the same path; a path has no empty, `.` or `..` part and no control character.

use std::fmt;

use model::limits::KEY_BYTES_MAX;
use sha2::{Digest as _, Sha256};

/// Longest name with its tags in bytes.
pub const NAME_BYTES_MAX: usize = KEY_BYTES_MAX;

/// Longest part of a path in bytes, as on all usual file systems.
pub const PART_BYTES_MAX: usize = 255;

/// Longest path within the tree in bytes. Systems have 4096 for the whole path; the rest is for the tree's own folder.
pub const PATH_BYTES_MAX: usize = 3072;

/// Most parts of a path: each part that a name has alone is a folder on the disk.
pub const PARTS_MAX: usize = 64;

const ENDING: &str = ".wsp";
const TAGGED: &str = "_tagged";
const HASHED: &str = "_hashed";
/// What the original writes for a dot in a readable file name.
const DOT: &str = "_DOT_";

/// How paths of tagged series are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameOptions {
    /// The file of a tagged series has its name, not its hash (`TAG_HASH_FILENAMES = False`).
    pub readable_tagged: bool,
}

/// Why a name has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It is longer than [`NAME_BYTES_MAX`].
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is not UTF-8.
    NotUtf8 {
        /// Place of the first wrong byte.
        at: usize,
    },
    /// It has a control character.
    ControlCharacter {
        /// Its place.
        at: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => f.write_str("the name is empty"),
            NameError::TooLong { bytes } => write!(f, "the name has {bytes} bytes; at most {NAME_BYTES_MAX}"),
            NameError::NotUtf8 { at } => write!(f, "byte {at} of the name is not UTF-8"),
            NameError::ControlCharacter { at } => write!(f, "byte {at} of the name is a control character"),
        }
    }
}

impl std::error::Error for NameError {}

/// Why a path has the hash of the name, not the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hashed {
    /// The series has tags.
    Tagged,
    /// It has an empty part: two dots, or one at the begin or end. The original stores it with another name or hides it.
    EmptyPart,
    /// It has a slash, which the original takes for a dot.
    Slash,
    /// A part is longer than [`PART_BYTES_MAX`], with the ending of the file.
    LongPart,
    /// The path is longer than [`PATH_BYTES_MAX`].
    LongPath,
    /// It has more than [`PARTS_MAX`] parts.
    Deep,
    /// Its first part is that of hashed names.
    Reserved,
}

/// Where a series lies in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The path of its file.
    pub path: String,
    /// Of a tagged series, the other path that the original may have used: readable for hashed, and the other way round.
    /// A reader tries it when `path` does not exist; a writer renames what is there to `path`.
    pub other: Option<String>,
    /// Why the path has the hash.
    pub hashed: Option<Hashed>,
}

impl Located {
    /// Its paths: `path`, then `other`.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.path).chain(&self.other)
    }
}

/// What a path says about the name of its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOfPath {
    /// The name, with its tags if it has some.
    Name(String),
    /// Only the hash of the name.
    Hash(String),
    /// No whisper file of a series, or one that [`path_of`] never returns.
    Foreign,
}

/// The path of a series. `name` is normalised if it has tags.
///
/// # Errors
/// Why it cannot have a file.
pub fn path_of(name: &[u8], options: NameOptions) -> Result<Located, NameError> {
    let name = checked(name)?;
    if name.contains(';') {
        let (hashed, readable) = (hashed_path(TAGGED, name), readable_path(name));
        return Ok(match (options.readable_tagged, readable) {
            (true, Some(readable)) => Located { path: readable, other: Some(hashed), hashed: None },
            (_, other) => Located { path: hashed, other, hashed: Some(Hashed::Tagged) },
        });
    }
    if let Some(why) = unfit(name) {
        return Ok(Located { path: hashed_path(HASHED, name), other: None, hashed: Some(why) });
    }
    let path = format!("{}{ENDING}", name.replace('.', "/"));
    Ok(Located { path, other: None, hashed: None })
}

/// The name that belongs to a path of the tree.
pub fn name_of(path: &str) -> NameOfPath {
    let Some(stem) = path.strip_suffix(ENDING) else { return NameOfPath::Foreign };
    let (first, rest) = stem.split_once('/').unwrap_or((stem, ""));
    let name = match (first, rest.is_empty()) {
        (TAGGED | HASHED, false) => {
            let file = rest.rsplit('/').next().unwrap_or(rest);
            let is_hash =
                file.len() == 64 && file.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if is_hash && format!("{first}/{}/{}/{file}{ENDING}", &file[..3], &file[3..6]) == path {
                return NameOfPath::Hash(file.to_owned());
            }
            file.replace(DOT, ".")
        }
        _ => stem.replace('/', "."),
    };
    // Only what leads back to this path is its name.
    let is_path = |located: Located| located.path == path || located.other.as_deref() == Some(path);
    match path_of(name.as_bytes(), NameOptions::default()) {
        Ok(located) if is_path(located.clone()) => NameOfPath::Name(name),
        Ok(_) | Err(_) => NameOfPath::Foreign,
    }
}

/// The SHA-256 of a name, in hexadecimal digits, as in the paths of hashed names.
pub fn hash_of(name: &str) -> String {
    Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn checked(name: &[u8]) -> Result<&str, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    let name = std::str::from_utf8(name).map_err(|error| NameError::NotUtf8 { at: error.valid_up_to() })?;
    match name.find(char::is_control) {
        Some(at) => Err(NameError::ControlCharacter { at }),
        None => Ok(name),
    }
}

/// Why the name itself cannot be the path.
fn unfit(name: &str) -> Option<Hashed> {
    if name.contains('/') {
        return Some(Hashed::Slash);
    }
    let (mut parts, mut longest) = (0, 0);
    for part in name.split('.') {
        if part.is_empty() {
            return Some(Hashed::EmptyPart);
        }
        if parts == 0 && matches!(part, TAGGED | HASHED) {
            return Some(Hashed::Reserved);
        }
        parts += 1;
        longest = longest.max(part.len());
    }
    let last = name.len() - name.rfind('.').map_or(0, |dot| dot + 1);
    if longest > PART_BYTES_MAX || last + ENDING.len() > PART_BYTES_MAX {
        Some(Hashed::LongPart)
    } else if parts > PARTS_MAX {
        Some(Hashed::Deep)
    } else if name.len() + ENDING.len() > PATH_BYTES_MAX {
        Some(Hashed::LongPath)
    } else {
        None
    }
}

fn hashed_path(folder: &str, name: &str) -> String {
    let hash = hash_of(name);
    format!("{folder}/{}/{}/{hash}{ENDING}", &hash[..3], &hash[3..6])
}

/// The readable path of a tagged name, if its file name can exist and has one meaning only.
fn readable_path(name: &str) -> Option<String> {
    let file = format!("{}{ENDING}", name.replace('.', DOT));
    if file.len() > PART_BYTES_MAX || name.contains('/') || name.contains(DOT) {
        return None;
    }
    let hash = hash_of(name);
    Some(format!("{TAGGED}/{}/{}/{file}", &hash[..3], &hash[3..6]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(name: &str) -> (String, Option<Hashed>) {
        let located = path_of(name.as_bytes(), NameOptions::default()).expect("a name with a file");
        (located.path, located.hashed)
    }

    #[test]
    fn paths_are_those_of_the_original() {
        let table = [
            ("a", "a.wsp"),
            ("servers.web1.cpu.user", "servers/web1/cpu/user.wsp"),
            ("a.b-c_d:e(é)", "a/b-c_d:e(é).wsp"),
            // Spec graphite §4.7.
            ("a;b=c", "_tagged/81e/2f5/81e2f530462430f177b8713d2a3507d3b0cd2df5ec039aef399b7c3242a56dc3.wsp"),
            (
                "disk.used;datacenter=dc1;rack=a1;server=web01",
                "_tagged/e9a/90f/e9a90f9ab08ad206ecfb30c241e0285a7c36479ca423d74260b2614cb98c1eec.wsp",
            ),
            (
                "some.metric;tag1=value2;tag2=value.2",
                "_tagged/eff/aae/effaae5b55950b150a7493d2f5430772ca2460bf7cccb4d9e523643df54c010f.wsp",
            ),
        ];
        for (name, want) in table {
            assert_eq!(path(name).0, want, "{name:?}");
        }
    }

    #[test]
    fn tagged_files_can_have_readable_names() {
        let options = NameOptions { readable_tagged: true };
        let located = path_of(b"some.metric;tag=value.2", options).expect("a name");
        let hash = hash_of("some.metric;tag=value.2");
        let folder = format!("_tagged/{}/{}", &hash[..3], &hash[3..6]);
        let readable = format!("{folder}/some_DOT_metric;tag=value_DOT_2.wsp");
        assert_eq!(located.path, readable);
        assert_eq!(located.other, Some(format!("{folder}/{hash}.wsp")));
        assert_eq!(name_of(&readable), NameOfPath::Name("some.metric;tag=value.2".into()));
        let hashed = path_of(b"some.metric;tag=value.2", NameOptions::default()).expect("a name");
        assert_eq!((hashed.path, hashed.other), (format!("{folder}/{hash}.wsp"), Some(readable)));
        // Without a readable name that leads back.
        for name in ["a;b=c/d".to_owned(), "a_DOT_b;c=d".to_owned(), format!("a;b={}", "c".repeat(250))] {
            let located = path_of(name.as_bytes(), options).expect("a name");
            assert_eq!((located.hashed, located.other), (Some(Hashed::Tagged), None), "{name}");
        }
    }

    #[test]
    fn hostile_names_are_rejected_or_hashed_with_a_reason() {
        let rejected = [
            (Vec::new(), NameError::Empty),
            (b"a\0b".to_vec(), NameError::ControlCharacter { at: 1 }),
            (b"a.b\n".to_vec(), NameError::ControlCharacter { at: 3 }),
            (b"a\x7f".to_vec(), NameError::ControlCharacter { at: 1 }),
            ("a\u{85}".into(), NameError::ControlCharacter { at: 1 }),
            (b"ab\xff".to_vec(), NameError::NotUtf8 { at: 2 }),
            (vec![b'a'; NAME_BYTES_MAX + 1], NameError::TooLong { bytes: NAME_BYTES_MAX + 1 }),
        ];
        for (name, want) in rejected {
            assert_eq!(path_of(&name, NameOptions::default()), Err(want));
        }
        let deep = |parts: usize| vec!["a"; parts].join(".");
        let long = "a".repeat(PART_BYTES_MAX - ENDING.len());
        let fifty = vec!["a".repeat(60); 50].join(".");
        let hashed = [
            ("..".to_owned(), Some(Hashed::EmptyPart)),
            ("../../etc/passwd".to_owned(), Some(Hashed::Slash)),
            ("a..b".to_owned(), Some(Hashed::EmptyPart)),
            (".a".to_owned(), Some(Hashed::EmptyPart)),
            ("a.".to_owned(), Some(Hashed::EmptyPart)),
            ("/etc/passwd".to_owned(), Some(Hashed::Slash)),
            ("a/b".to_owned(), Some(Hashed::Slash)),
            ("_tagged.a".to_owned(), Some(Hashed::Reserved)),
            ("_hashed.a".to_owned(), Some(Hashed::Reserved)),
            ("a._hashed".to_owned(), None),
            (long.clone(), None),
            (format!("{long}a"), Some(Hashed::LongPart)),
            (format!("{long}aaaa.b"), None),
            (format!("{long}aaaaa.b"), Some(Hashed::LongPart)),
            (deep(PARTS_MAX), None),
            (deep(PARTS_MAX + 1), Some(Hashed::Deep)),
            (format!("{fifty}.{}", "b".repeat(PATH_BYTES_MAX - 4 - fifty.len() - 1)), None),
            (format!("{fifty}.{}", "b".repeat(PATH_BYTES_MAX - 4 - fifty.len())), Some(Hashed::LongPath)),
            ("a".repeat(NAME_BYTES_MAX), Some(Hashed::LongPart)),
        ];
        for (name, want) in hashed {
            let (path, why) = path(&name);
            assert_eq!(why, want, "{name:?}");
            let back = match why {
                Some(_) => NameOfPath::Hash(hash_of(&name)),
                None => NameOfPath::Name(name),
            };
            assert_eq!(name_of(&path), back);
        }
    }

    #[test]
    fn foreign_paths_have_no_name() {
        let hash = hash_of("a;b=c");
        let elsewhere = format!("_tagged/000/000/{hash}.wsp");
        for path in [
            "", "a", ".wsp", "a/.wsp", "a.b.wsp", "a//b.wsp", "/a.wsp", "../a.wsp", "a/b.tmp", "a\n.wsp",
            &elsewhere,
        ] {
            assert_eq!(name_of(path), NameOfPath::Foreign, "{path:?}");
        }
        assert_eq!(name_of("_tagged/000/000/a;b=c.wsp"), NameOfPath::Foreign, "the hash is another one");
    }

    proptest! {
        #[test]
        fn different_names_have_different_paths(left in "[ab./;=_]{0,6}", right in "[ab./;=_]{0,6}") {
            let path = |name: &str| path_of(name.as_bytes(), NameOptions::default()).ok().map(|found| found.path);
            if left != right && !left.is_empty() {
                prop_assert_ne!(path(&left), path(&right));
            }
        }

        #[test]
        fn any_path_is_read_without_a_panic(path in "(_tagged/|_hashed/)?.{0,80}(\\.wsp)?") {
            if let NameOfPath::Name(name) = name_of(&path) {
                let located = path_of(name.as_bytes(), NameOptions::default()).expect("a name with a file");
                prop_assert!(located.path == path || located.other.is_some_and(|other| other == path));
            }
        }
    }
}
