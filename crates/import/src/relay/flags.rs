//! Command line flags of carbon-c-relay (spec graphite §2.1) as checked settings.
//!
//! Not here: parsing the arguments (`crates/staunch`), files that flags name (the daemon opens them). All mistakes are
//! reported at once, each with the original's message and a hint of ours.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use config::diagnostic::Severity;

/// Flags as given. Numbers are still texts, so that a wrong number is reported like other mistakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-f FILE`
    pub config: Option<String>,
    /// `-l FILE`
    pub log: Option<String>,
    /// `-p PORT`
    pub port: Option<String>,
    /// `-w N`
    pub workers: Option<String>,
    /// `-b N`
    pub batch: Option<String>,
    /// `-q N`
    pub queue: Option<String>,
    /// `-L N`
    pub stalls: Option<String>,
    /// `-C FILE`
    pub ca: Option<String>,
    /// `-T MS`
    pub timeout: Option<String>,
    /// `-c CHARS`
    pub allowed: Option<String>,
    /// `-m N`
    pub name_bytes_max: Option<String>,
    /// `-M N`
    pub line_bytes_max: Option<String>,
    /// `-H NAME`
    pub hostname: Option<String>,
    /// `-B N`
    pub backlog: Option<String>,
    /// `-U N`
    pub buffer: Option<String>,
    /// `-P FILE`
    pub pid_file: Option<String>,
    /// `-O N`
    pub optimise: Option<String>,
    /// `-E`
    pub keep_idle: bool,
    /// `-s`
    pub submission: bool,
    /// `-S`
    pub submission_report: bool,
    /// `-D`
    pub daemonise: bool,
    /// How often `-d` was given.
    pub debug: u8,
    /// How often `-t` was given.
    pub test: u8,
}

/// Facts about the machine that are not on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// gethostname()
    pub hostname: String,
    /// Cores that this process may use.
    pub cores: usize,
}

/// Settings, all of them within their limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The configuration file, or a pattern for several.
    pub config: String,
    /// Where to append the log; none for stdout and stderr.
    pub log: Option<PathBuf>,
    /// Port of the default listeners.
    pub port: u16,
    /// Worker threads, at least 1; a hint only.
    pub workers: u32,
    /// Records sent at once; at most `queue`.
    pub batch: u32,
    /// Limit of each server's queue in records.
    pub queue: u32,
    /// Consecutive stalls before records are dropped: 0 to 15.
    pub stalls: u8,
    /// Authorities for TLS; none for the system's.
    pub ca: Option<PathBuf>,
    /// Time for connecting and writing, in milliseconds: 250 to 59,999.
    pub timeout_ms: u32,
    /// Allowed bytes in names besides letters, digits and dots.
    pub allowed: Vec<u8>,
    /// Longest name in bytes; 0 for no limit but the line's.
    pub name_bytes_max: u32,
    /// Longest line with its end, in bytes: at most 32,768.
    pub line_bytes_max: u32,
    /// Name of the host in statistics.
    pub hostname: String,
    /// Length of the accept queue.
    pub backlog: u32,
    /// Size of socket buffers in bytes; none for the system's default.
    pub buffer_bytes: Option<u32>,
    /// Idle timeout of clients in milliseconds; 0 for none.
    pub idle_timeout_ms: u64,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
    /// Number of rules from which the original groups them; none for never. Ours always keeps the order.
    pub optimise: Option<u32>,
    /// Statistics: as records, or only on stdout.
    pub submission: Submission,
    /// Log statistics, and print rings in test mode.
    pub debug: bool,
    /// Log every step.
    pub trace: bool,
    /// What to do instead of relaying.
    pub test: Test,
    /// Run in the background.
    pub daemonise: bool,
}

impl Settings {
    /// Longest line with its end, in bytes: the default, and the most that `-M` takes.
    pub const LINE_BYTES_MAX: u32 = 32_768;
}

/// `-s` and `-S`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Submission {
    /// Send statistics as records.
    #[default]
    No,
    /// `-s`: no statistics.
    Quiet,
    /// `-S`: print a line a second instead.
    Report,
}

/// `-t` and `-tt`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Test {
    /// Relay.
    #[default]
    No,
    /// Print the configuration, and the rules that each name on stdin matches.
    Names,
    /// Only read the configuration.
    Parse,
}

/// A wrong flag, or one that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagMistake {
    /// Its letter.
    pub flag: char,
    /// Errors end the program.
    pub severity: Severity,
    /// The original's message, or ours where it has none.
    pub message: String,
    /// How to correct it.
    pub hint: String,
}

const LINE_BYTES_MAX: u32 = Settings::LINE_BYTES_MAX;
/// Shorter timeouts would fail on every short network delay.
const TIMEOUT_MS_MIN: u32 = 250;
const TIMEOUT_MS: u32 = 600;
const TIMEOUT_MS_MAX: u32 = 59_999;
const IDLE_TIMEOUT_MS: u64 = 600_000;
/// A larger number is surely a mistake.
const WORKERS_MAX: u32 = 1024;
/// Largest value of the original's numbers.
const NUMBER_MAX: u32 = i32::MAX as u32;

/// Flags with a number, their limits, and the original's message.
const NUMBERS: [(char, RangeInclusive<u32>, &str); 10] = [
    ('p', 1..=65_535, "port needs to be a number >0"),
    ('w', 1..=WORKERS_MAX, "workers needs to be a number >0"),
    ('b', 1..=NUMBER_MAX, "batch size needs to be a number >0"),
    ('q', 1..=NUMBER_MAX, "queue size needs to be a number >0"),
    ('L', 0..=15, "maximum stalls needs to be a number between 0 and 15"),
    ('T', 1..=TIMEOUT_MS_MAX, "server IO timeout needs to be a number >0"),
    ('m', 0..=NUMBER_MAX, "max metric length needs to be a number >=0"),
    ('M', 1..=LINE_BYTES_MAX, "max length needs to be a number >0"),
    ('B', 1..=NUMBER_MAX, "backlog needs to be a number >0"),
    ('U', 1..=NUMBER_MAX, "bufsize needs to be a number >0"),
];

/// The settings, when no flag is wrong, and the mistakes.
pub fn settings(flags: &Flags, machine: &Machine) -> (Option<Settings>, Vec<FlagMistake>) {
    let mut check = Check { mistakes: Vec::new() };
    let submission = match (flags.submission_report, flags.submission) {
        (true, _) => Submission::Report,
        (false, true) => Submission::Quiet,
        (false, false) => Submission::No,
    };
    let cores =
        if submission == Submission::No { machine.cores.clamp(1, WORKERS_MAX as usize) as u32 } else { 2 };
    let (batch, queue) = check.batch_and_queue(flags);
    let (name_bytes_max, line_bytes_max) = check.lengths(flags);
    let settings = Settings {
        config: check.config(flags),
        log: flags.log.as_ref().map(PathBuf::from),
        port: check.number('p', &flags.port, 2003) as u16,
        workers: check.number('w', &flags.workers, cores),
        batch,
        queue,
        stalls: check.number('L', &flags.stalls, 4) as u8,
        ca: flags.ca.as_ref().map(PathBuf::from),
        timeout_ms: check.timeout(flags),
        allowed: flags.allowed.as_deref().unwrap_or("-_:#").as_bytes().to_vec(),
        name_bytes_max,
        line_bytes_max,
        hostname: flags.hostname.clone().unwrap_or_else(|| machine.hostname.clone()),
        backlog: check.number('B', &flags.backlog, 32),
        buffer_bytes: flags.buffer.as_ref().map(|_| check.number('U', &flags.buffer, 1)),
        idle_timeout_ms: if flags.keep_idle { 0 } else { IDLE_TIMEOUT_MS },
        pid_file: flags.pid_file.as_ref().map(PathBuf::from),
        optimise: check.optimise(flags),
        submission,
        debug: flags.debug == 1 || flags.debug > 2,
        trace: flags.debug > 1,
        test: match flags.test {
            0 => Test::No,
            1 => Test::Names,
            _ => Test::Parse,
        },
        daemonise: flags.daemonise,
    };
    check.daemonise(flags);
    let failed = check.mistakes.iter().any(|mistake| mistake.severity == Severity::Error);
    (Some(settings).filter(|_| !failed), check.mistakes)
}

struct Check {
    mistakes: Vec<FlagMistake>,
}

impl Check {
    fn report(
        &mut self,
        flag: char,
        severity: Severity,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let (message, hint) = (message.into(), hint.into());
        self.mistakes.push(FlagMistake { flag, severity, message, hint });
    }

    fn config(&mut self, flags: &Flags) -> String {
        match &flags.config {
            Some(config) if !config.is_empty() => return config.clone(),
            _ => {}
        }
        self.report('f', Severity::Error, "no configuration file is given", "-f FILE");
        String::new()
    }

    /// A number of [`NUMBERS`]; the default when it is not given, or wrong.
    fn number(&mut self, flag: char, text: &Option<String>, default: u32) -> u32 {
        let Some(text) = text else { return default };
        let row = NUMBERS.iter().find(|(known, ..)| *known == flag);
        let (_, limits, upstream) = row.expect("each flag with a number has a row");
        let digits = text.trim_start_matches(' ');
        let number: Option<u32> = digits.parse().ok();
        if let Some(number) = number.filter(|number| limits.contains(number)) {
            return number;
        }
        // The original has other messages for numbers that are too large.
        let upstream = match (flag, text.parse::<u32>()) {
            ('M', Ok(length)) if length > LINE_BYTES_MAX => "max length cannot be >32768",
            ('T', Ok(timeout_ms)) if timeout_ms > TIMEOUT_MS_MAX => {
                "server IO timeout needs to be less than one minute"
            }
            _ => *upstream,
        };
        let hint =
            format!("-{flag} takes a whole number from {} to {}, not `{text}`", limits.start(), limits.end());
        self.report(flag, Severity::Error, upstream, hint);
        default
    }

    fn batch_and_queue(&mut self, flags: &Flags) -> (u32, u32) {
        let batch = self.number('b', &flags.batch, 2500);
        let queue = self.number('q', &flags.queue, 25_000);
        if batch > queue && self.mistakes.is_empty() {
            let hint =
                format!("-b {batch} is more than -q {queue}: make the queue larger, or the batch smaller");
            self.report('b', Severity::Error, "batchsize must be smaller than queuesize", hint);
        }
        (batch, queue)
    }

    fn lengths(&mut self, flags: &Flags) -> (u32, u32) {
        let line = self.number('M', &flags.line_bytes_max, LINE_BYTES_MAX);
        let name = self.number('m', &flags.name_bytes_max, 0);
        if name >= line {
            let hint = format!("-m {name} is not below -M {line}: a line is longer than its name");
            self.report(
                'm',
                Severity::Error,
                "max metric length must be smaller than max input length",
                hint,
            );
        }
        (name, line)
    }

    fn timeout(&mut self, flags: &Flags) -> u32 {
        let timeout_ms = self.number('T', &flags.timeout, TIMEOUT_MS);
        if timeout_ms < TIMEOUT_MS_MIN {
            let message = format!("-T {timeout_ms} is too short, {TIMEOUT_MS} ms are taken");
            self.report(
                'T',
                Severity::Warning,
                message,
                format!("-T takes {TIMEOUT_MS_MIN} to 59999 milliseconds"),
            );
            return TIMEOUT_MS;
        }
        timeout_ms
    }

    fn optimise(&mut self, flags: &Flags) -> Option<u32> {
        let Some(text) = &flags.optimise else { return Some(50) };
        match text.parse::<i32>() {
            Ok(threshold) => u32::try_from(threshold).ok(),
            Err(_) => {
                let hint = format!("-O takes a whole number, -1 for never, not `{text}`");
                self.report('O', Severity::Error, "optimiser threshold needs to be a number", hint);
                None
            }
        }
    }

    fn daemonise(&mut self, flags: &Flags) {
        if flags.daemonise && flags.log.is_none() {
            let message = "You must specify logfile if you want daemonisation!";
            self.report('D', Severity::Error, message, "-D -l FILE; under systemd leave -D out");
        }
        if flags.daemonise && flags.test > 0 {
            let message = "You cannot use test mode if you want daemonisation!";
            self.report('D', Severity::Error, message, "leave out -D or -t");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(char, &str)]) -> (Option<Settings>, Vec<FlagMistake>) {
        let mut flags = Flags { config: Some("relay.conf".into()), ..Flags::default() };
        for (flag, text) in given {
            let value = Some((*text).to_owned());
            match flag {
                'f' => flags.config = value.filter(|text| !text.is_empty()),
                'l' => flags.log = value,
                'p' => flags.port = value,
                'w' => flags.workers = value,
                'b' => flags.batch = value,
                'q' => flags.queue = value,
                'L' => flags.stalls = value,
                'C' => flags.ca = value,
                'T' => flags.timeout = value,
                'c' => flags.allowed = value,
                'm' => flags.name_bytes_max = value,
                'M' => flags.line_bytes_max = value,
                'H' => flags.hostname = value,
                'B' => flags.backlog = value,
                'U' => flags.buffer = value,
                'P' => flags.pid_file = value,
                'O' => flags.optimise = value,
                'E' => flags.keep_idle = true,
                's' => flags.submission = true,
                'S' => flags.submission_report = true,
                'D' => flags.daemonise = true,
                'd' => flags.debug += 1,
                't' => flags.test += 1,
                _ => panic!("no flag -{flag}"),
            }
        }
        settings(&flags, &Machine { hostname: "web1.example".into(), cores: 4 })
    }

    #[test]
    fn flags_not_given_have_the_originals_defaults() {
        let (settings, mistakes) = of(&[]);
        let want = Settings {
            config: "relay.conf".into(),
            log: None,
            port: 2003,
            workers: 4,
            batch: 2500,
            queue: 25_000,
            stalls: 4,
            ca: None,
            timeout_ms: 600,
            allowed: b"-_:#".to_vec(),
            name_bytes_max: 0,
            line_bytes_max: 32_768,
            hostname: "web1.example".into(),
            backlog: 32,
            buffer_bytes: None,
            idle_timeout_ms: 600_000,
            pid_file: None,
            optimise: Some(50),
            submission: Submission::No,
            debug: false,
            trace: false,
            test: Test::No,
            daemonise: false,
        };
        assert_eq!((settings, mistakes), (Some(want), Vec::new()));
    }

    #[test]
    fn flags_set_their_settings() {
        let good = |given: &[(char, &str)]| {
            let (settings, mistakes) = of(given);
            settings.unwrap_or_else(|| panic!("{given:?}: {mistakes:?}"))
        };
        assert_eq!(good(&[('p', "1")]).port, 1);
        assert_eq!(good(&[('p', "65535")]).port, 65_535);
        assert_eq!((good(&[('s', "")]).workers, good(&[('S', "")]).workers), (2, 2));
        assert_eq!(good(&[('s', ""), ('w', "7")]).workers, 7);
        assert_eq!(good(&[('S', ""), ('s', "")]).submission, Submission::Report);
        assert_eq!(good(&[('b', "100"), ('q', "100")]).queue, 100);
        assert_eq!((good(&[('L', "0")]).stalls, good(&[('L', "15")]).stalls), (0, 15));
        assert_eq!((good(&[('T', "250")]).timeout_ms, good(&[('T', "59999")]).timeout_ms), (250, 59_999));
        assert_eq!(good(&[('c', "")]).allowed, b"");
        assert_eq!(good(&[('m', "99"), ('M', "100")]).name_bytes_max, 99);
        assert_eq!(good(&[('H', "a.b")]).hostname, "a.b");
        assert_eq!((good(&[('B', "1")]).backlog, good(&[('U', "4096")]).buffer_bytes), (1, Some(4096)));
        assert_eq!(good(&[('E', "")]).idle_timeout_ms, 0);
        assert_eq!((good(&[('O', "-5")]).optimise, good(&[('O', "0")]).optimise), (None, Some(0)));
        for (times, debug, trace) in [(1, true, false), (2, false, true), (3, true, true), (4, true, true)] {
            let settings = good(&vec![('d', ""); times]);
            assert_eq!((settings.debug, settings.trace), (debug, trace), "{times}");
        }
        for (times, test) in [(0, Test::No), (1, Test::Names), (2, Test::Parse), (3, Test::Parse)] {
            assert_eq!(good(&vec![('t', ""); times]).test, test);
        }
        assert!(good(&[('D', ""), ('l', "log"), ('P', "pid")]).daemonise);
        let (settings, mistakes) = of(&[('T', "249")]);
        assert_eq!((settings.unwrap().timeout_ms, mistakes[0].severity), (600, Severity::Warning));
    }

    #[test]
    fn wrong_flags_are_reported_with_the_originals_messages() {
        let table: &[(&[(char, &str)], &str)] = &[
            (&[('f', "")], "no configuration file is given"),
            (&[('p', "0")], "port needs to be a number >0"),
            (&[('p', "x")], "port needs to be a number >0"),
            (&[('p', "70000")], "port needs to be a number >0"),
            (&[('w', "0")], "workers needs to be a number >0"),
            (&[('w', "-1")], "workers needs to be a number >0"),
            (&[('b', "0")], "batch size needs to be a number >0"),
            (&[('b', "30000")], "batchsize must be smaller than queuesize"),
            (&[('q', "100")], "batchsize must be smaller than queuesize"),
            (&[('q', "2147483648")], "queue size needs to be a number >0"),
            (&[('L', "16")], "maximum stalls needs to be a number between 0 and 15"),
            (&[('L', "-1")], "maximum stalls needs to be a number between 0 and 15"),
            (&[('T', "0")], "server IO timeout needs to be a number >0"),
            (&[('T', "60000")], "server IO timeout needs to be less than one minute"),
            (&[('m', "-1")], "max metric length needs to be a number >=0"),
            (&[('m', "100"), ('M', "100")], "max metric length must be smaller than max input length"),
            (&[('M', "0")], "max length needs to be a number >0"),
            (&[('M', "32769")], "max length cannot be >32768"),
            (&[('B', "0")], "backlog needs to be a number >0"),
            (&[('U', "-1")], "bufsize needs to be a number >0"),
            (&[('O', "x")], "optimiser threshold needs to be a number"),
            (&[('D', "")], "You must specify logfile if you want daemonisation!"),
            (&[('D', ""), ('l', "x"), ('t', "")], "You cannot use test mode if you want daemonisation!"),
        ];
        for (given, want) in table {
            let (settings, mistakes) = of(given);
            let messages: Vec<&str> = mistakes.iter().map(|mistake| &*mistake.message).collect();
            assert_eq!((settings, messages), (None, vec![*want]), "{given:?}");
        }
        let (_, mistakes) = of(&[('p', "0"), ('w', "0"), ('B', "x"), ('D', "")]);
        assert_eq!(mistakes.iter().map(|mistake| mistake.flag).collect::<String>(), "pwBD");
    }
}
