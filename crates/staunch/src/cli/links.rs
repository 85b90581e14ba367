//! Links with the names of the programs that Staunch replaces: `carbon-cache.py start` is `staunch carbon cache start`.
//!
//! Path of a command line: [`not_here`] (names that Staunch has no command for) -> [`as_original`] (the words of the command line of
//! Staunch) -> [`parsed`]. Help and errors show the usage of the link, not that of `staunch`.
//! Not here: the commands.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser};

use super::args::Args;
use super::whisper;

/// Program names of the originals, and the words of our command line for them.
const ORIGINALS: [(&str, &[&str]); 3] =
    [("statsd", &["statsd"]), ("carbon-c-relay", &["relay"]), ("relay", &["relay"])];

/// Scripts of carbon and whisper that are not in Staunch, and what to use instead.
const NOT_HERE: [(&str, &str); 7] = [
    (
        "whisper-auto-resize",
        "use `staunch whisper resize FOLDER 10s:6h 1m:7d`, or `online_migration = true` of a store",
    ),
    ("whisper-auto-update", "use `staunch whisper update FILE`, which reads lines of TIME:VALUE from stdin"),
    (
        "update-storage-times",
        "use `staunch whisper resize FOLDER 10s:6h 1m:7d`, or `online_migration = true` of a store",
    ),
    (
        "find-corrupt-whisper-files",
        "use `staunch whisper info FOLDER`, which names each file that it cannot read",
    ),
    (
        "validate-storage-schemas",
        "use `staunch import carbon carbon.conf --section cache`, which names the mistakes of storage-schemas.conf",
    ),
    ("rrd2whisper", "use the script of the whisper library: Staunch reads the files that it writes"),
    (
        "carbon-client",
        "send lines to a daemon with `nc`, or show where names go with `staunch check FILE --keys -`",
    ),
];

/// The message for a program name that Staunch has no command for.
pub(super) fn not_here(program: &OsString) -> Option<String> {
    let path = Path::new(program);
    let stem = path.file_stem()?.to_str()?;
    let (_, instead) = NOT_HERE.iter().find(|(name, _)| *name == stem)?;
    Some(format!("{} is not in Staunch: {instead}", path.file_name()?.display()))
}

/// Started with an original's name, the program uses its command line: `statsd CONFIG`, `carbon-c-relay -f CONFIG`,
/// `carbon-cache.py start`.
pub(super) fn as_original(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let words = args.first().and_then(words_of).unwrap_or_default();
    args.splice(1.min(args.len())..1.min(args.len()), words.iter().map(OsString::from));
    args
}

/// The words for a program of that name.
fn words_of(program: &OsString) -> Option<Vec<&'static str>> {
    let name = Path::new(program).file_stem()?.to_str()?;
    if let Some((_, words)) = ORIGINALS.iter().find(|(original, _)| name == *original) {
        return Some(words.to_vec());
    }
    if let Some((_, word)) = name
        .strip_prefix("whisper-")
        .and_then(|script| whisper::SCRIPTS.iter().find(|(known, _)| *known == script))
    {
        return Some(vec!["whisper", *word]);
    }
    #[cfg(unix)]
    if let Some((_, word)) = crate::carbon::PROGRAMS.iter().find(|(original, _)| name == *original) {
        return Some(vec!["carbon", *word]);
    }
    None
}

/// Parses the words of [`as_original`].
///
/// # Errors
/// Help, or what is wrong. For a link they show its own usage.
pub(super) fn parsed(words: &[OsString]) -> Result<Args, clap::Error> {
    let link = words.first().and_then(words_of).unwrap_or_default();
    let usage = match (&link[..], words.first()) {
        (["carbon", ..], Some(program)) => {
            let name = Path::new(program).file_name().unwrap_or_default().display();
            format!("{name} [OPTIONS] start|stop|status")
        }
        (["whisper", script], _) => {
            return Args::try_parse_from(words)
                .map_err(|error| error_of_script(words, script).unwrap_or(error));
        }
        _ => return Args::try_parse_from(words),
    };
    // The program follows from the name of the link.
    let hidden = |arg: Arg| if arg.get_id() == "program" { arg.hide(true) } else { arg };
    let carbon = |carbon: Command| carbon.override_usage(usage).mut_args(hidden);
    let command = Args::command().mut_subcommand("carbon", carbon);
    Args::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// The same error of a command that is only this script: clap puts the names of all commands above it into a usage. The words are the
/// link, `whisper`, the script, and its own. None if the script alone accepts them.
fn error_of_script(words: &[OsString], script: &str) -> Option<clap::Error> {
    let command = Args::command();
    let command = command.find_subcommand("whisper")?.find_subcommand(script)?.clone();
    let own = words.iter().take(1).chain(words.iter().skip(3));
    command.max_term_width(80).try_get_matches_from(own).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        let words = as_original(words.iter().map(OsString::from));
        parsed(&words).expect_err("it is no run").to_string()
    }

    #[cfg(unix)]
    #[test]
    fn usage_of_a_link_to_carbon_names_the_link() {
        for flag in ["-h", "--help"] {
            let text = help(&["/opt/graphite/bin/carbon-cache.py", flag]);
            assert!(text.contains("Usage: carbon-cache.py [OPTIONS] start|stop|status\n"), "{text}");
            assert!(!text.contains("PROGRAM>") && text.contains("<ACTION>"), "{text}");
        }
        let words = as_original(["carbon-relay.py", "status"].map(OsString::from).into_iter());
        assert!(parsed(&words).is_ok());
        let text = help(&["staunch", "carbon", "-h"]);
        assert!(text.contains("Usage: staunch carbon [OPTIONS] <PROGRAM> <ACTION>"), "{text}");
    }

    #[test]
    fn usage_of_a_link_to_a_script_names_the_link() {
        for (words, want) in [
            (&["/usr/bin/whisper-info.py"][..], "Usage: whisper-info.py <PATH> [FIELD]\n"),
            (&["whisper-info.py", "-h"], "Usage: whisper-info.py [OPTIONS] <PATH> [FIELD]\n"),
            (&["whisper-resize", "--help"], "Usage: whisper-resize [OPTIONS] <PATH> <STEP:LENGTH>...\n"),
            (&["whisper-set-xfilesfactor.py"], "Usage: whisper-set-xfilesfactor.py <PATH> <XFILESFACTOR>\n"),
            (&["whisper-fetch.py", "--no-such"], "Usage: whisper-fetch.py"),
            (&["staunch", "whisper", "info"], "Usage: staunch whisper info <PATH> [FIELD]\n"),
        ] {
            let text = help(words);
            assert!(text.contains(want) && !text.contains(".py whisper"), "{words:?}: {text}");
        }
        let words =
            as_original(["whisper-info.py", "a.wsp", "--log-level", "debug"].map(OsString::from).into_iter());
        assert!(parsed(&words).is_ok(), "options of every command");
    }

    #[test]
    fn a_script_that_is_not_in_staunch_names_its_replacement() {
        for (program, want) in [
            ("/usr/bin/rrd2whisper.py", Some("rrd2whisper.py is not in Staunch: ")),
            ("whisper-auto-resize.py", Some("whisper-auto-resize.py is not in Staunch: ")),
            ("find-corrupt-whisper-files", Some("find-corrupt-whisper-files is not in Staunch: ")),
            ("validate-storage-schemas.py", Some("validate-storage-schemas.py is not in Staunch: ")),
            ("./carbon-client.py", Some("carbon-client.py is not in Staunch: ")),
            ("whisper-info.py", None),
            ("staunch", None),
        ] {
            let said = not_here(&OsString::from(program));
            assert_eq!(said.is_some(), want.is_some(), "{program}: {said:?}");
            assert!(said.unwrap_or_default().starts_with(want.unwrap_or_default()), "{program}");
        }
        let known = |(name, _): &(&str, &str)| words_of(&OsString::from(name)).is_some();
        assert!(!NOT_HERE.iter().any(known));
    }

    #[test]
    fn started_with_an_originals_name_it_uses_the_originals_command_line() {
        let args = |words: &[&str]| as_original(words.iter().map(OsString::from));
        assert_eq!(args(&["/usr/bin/statsd", "a.js"]), ["/usr/bin/statsd", "statsd", "a.js"]);
        assert_eq!(args(&["carbon-c-relay", "-tt"]), ["carbon-c-relay", "relay", "-tt"]);
        assert_eq!(args(&["./relay"]), ["./relay", "relay"]);
        #[cfg(unix)]
        assert_eq!(
            args(&["/opt/graphite/bin/carbon-cache.py", "--debug", "start"]),
            ["/opt/graphite/bin/carbon-cache.py", "carbon", "cache", "--debug", "start"]
        );
        #[cfg(unix)]
        assert_eq!(
            args(&["carbon-aggregator-cache"]),
            ["carbon-aggregator-cache", "carbon", "aggregator-cache"]
        );
        assert_eq!(
            args(&["whisper-set-xfilesfactor.py"]),
            ["whisper-set-xfilesfactor.py", "whisper", "set-xff"]
        );
        assert!(args(&[]).is_empty());
        assert_eq!(args(&["/usr/bin/staunch", "run"]), ["/usr/bin/staunch", "run"]);
    }
}
