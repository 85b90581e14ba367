//! Events in memory and in a file of JSON lines, the newest at its end.
//!
//! The file is read when it is longer than what is known of it, so a process that takes over sees the events of the one before. Limits:
//! events ([`EventLog::new`]), the size of each ([`Event::check`]) and of all ([`ALL_BYTES_MAX`]). A file with twice as many lines as events is written
//! anew.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Longest texts of an event, in bytes.
const WHAT_BYTES_MAX: usize = 4096;
const DATA_BYTES_MAX: usize = 64 << 10;

/// Most tags of an event, and the longest one.
const TAGS_MAX: usize = 100;
const TAG_BYTES_MAX: usize = 255;

/// Most bytes of all events in memory. The oldest make room, as above the limit in number.
const ALL_BYTES_MAX: usize = 64 << 20;

/// Bytes of an event beside its texts, and of a tag beside its text.
const EVENT_BYTES: usize = size_of::<((i64, u64), Event)>();
const TAG_BYTES: usize = size_of::<String>();

/// Longest line of the file: an event of the largest size, with every byte escaped.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Something that happened: a release, an alert.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Event {
    /// Unix seconds.
    pub(super) when: i64,
    pub(super) what: String,
    pub(super) data: String,
    pub(super) tags: Vec<String>,
    pub(super) id: u64,
}

impl Event {
    /// Whether it is within the limits.
    ///
    /// # Errors
    /// Which limit it exceeds.
    pub(super) fn check(&self) -> Result<(), String> {
        let too_long = |what: &str, max: usize| Err(format!("`{what}` has more than {max} bytes"));
        if self.what.len() > WHAT_BYTES_MAX {
            return too_long("what", WHAT_BYTES_MAX);
        }
        if self.data.len() > DATA_BYTES_MAX {
            return too_long("data", DATA_BYTES_MAX);
        }
        if self.tags.len() > TAGS_MAX {
            return Err(format!("the event has more than {TAGS_MAX} tags"));
        }
        if self.tags.iter().any(|tag| tag.len() > TAG_BYTES_MAX) {
            return too_long("tags", TAG_BYTES_MAX);
        }
        if !(0..=4_102_444_800).contains(&self.when) {
            return Err("`when` is Unix seconds, until the year 2100".to_owned());
        }
        Ok(())
    }

    /// Whether it has all of these tags; with `any`, one of them.
    pub(super) fn has(&self, tags: &[String], any: bool) -> bool {
        let mut known = tags.iter().map(|tag| self.tags.contains(tag));
        tags.is_empty() || if any { known.any(|has| has) } else { known.all(|has| has) }
    }

    /// Memory that it takes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| tag.len() + TAG_BYTES).sum();
        EVENT_BYTES + self.what.len() + self.data.len() + tags
    }

    /// Its order among others.
    fn key(&self) -> (i64, u64) {
        (self.when, self.id)
    }
}

/// See the module's header.
#[derive(Debug)]
pub(super) struct EventLog {
    path: PathBuf,
    events_max: usize,
    events: BTreeMap<(i64, u64), Event>,
    /// Memory that the events take.
    bytes: usize,
    bytes_max: usize,
    /// How much of the file is known, and its lines.
    read_bytes: u64,
    lines: usize,
    next_id: u64,
}

impl EventLog {
    /// Of a file, which need not exist.
    pub(super) fn new(path: PathBuf, events_max: usize) -> EventLog {
        EventLog {
            path,
            events_max,
            events: BTreeMap::new(),
            bytes: 0,
            bytes_max: ALL_BYTES_MAX,
            read_bytes: 0,
            lines: 0,
            next_id: 1,
        }
    }

    /// Most events from now on.
    pub(super) fn limit(&mut self, events_max: usize) {
        self.events_max = events_max;
        self.make_room();
    }

    /// Reads what the file has that is not known. Lines that are no events are left out.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn refresh(&mut self) -> io::Result<()> {
        let length = match fs::metadata(&self.path) {
            Ok(facts) => facts.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        if length < self.read_bytes {
            // Another process wrote it anew, or somebody removed it.
            (self.read_bytes, self.lines) = (0, 0);
            self.events.clear();
            self.bytes = 0;
        }
        if length == self.read_bytes {
            return Ok(());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            // A line without an end is being written.
            if count == 0 || (line.last() != Some(&b'\n') && (count as u64) < LINE_BYTES_MAX) {
                return Ok(());
            }
            self.read_bytes += count as u64;
            self.lines += 1;
            if let Ok(event) = serde_json::from_slice::<Event>(&line)
                && event.check().is_ok()
            {
                self.insert(event);
            }
        }
    }

    /// Adds an event under a new number.
    ///
    /// # Errors
    /// What the system reports; the event is not kept then.
    pub(super) fn add(&mut self, event: Event) -> io::Result<u64> {
        self.refresh()?;
        let event = Event { id: self.next_id, ..event };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        // What a crash left of a line does not swallow the next one.
        let length = file.metadata()?.len();
        if length > self.read_bytes {
            file.set_len(self.read_bytes)?;
        }
        file.write_all(&line)?;
        file.sync_data()?;
        self.read_bytes += line.len() as u64;
        self.lines += 1;
        let id = event.id;
        self.insert(event);
        // A text takes more bytes in JSON than in memory, so a file of twice the limit in bytes may need no event less.
        let is_long = self.read_bytes > 2 * self.bytes_max as u64 && self.lines > 2 * self.events.len();
        if is_long || self.lines > 2 * self.events_max.max(1000) {
            self.write_anew()?;
        }
        Ok(id)
    }

    fn insert(&mut self, event: Event) {
        self.next_id = self.next_id.max(event.id.saturating_add(1));
        self.bytes += event.memory_bytes();
        if let Some(before) = self.events.insert(event.key(), event) {
            self.bytes -= before.memory_bytes();
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.events.len() > self.events_max || self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.events.pop_first() else { break };
            self.bytes -= oldest.memory_bytes();
        }
    }

    fn write_anew(&mut self) -> io::Result<()> {
        let beside = self.path.with_extension("jsonl.new");
        let mut text = Vec::new();
        // In the order of their numbers, so that the highest one is at the end.
        let mut events: Vec<&Event> = self.events.values().collect();
        events.sort_unstable_by_key(|event| event.id);
        for event in events {
            serde_json::to_writer(&mut text, event)?;
            text.push(b'\n');
        }
        let mut file = File::create(&beside)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&beside, &self.path)?;
        (self.read_bytes, self.lines) = (text.len() as u64, self.events.len());
        Ok(())
    }

    /// The events of a time range, in Unix seconds, oldest first.
    pub(super) fn between(&self, from: i64, until: i64) -> impl Iterator<Item = &Event> {
        let range = if from <= until { (from, 0)..=(until, u64::MAX) } else { (0, 1)..=(0, 1) };
        self.events.range(range).map(|(_, event)| event)
    }

    /// The event of a number.
    pub(super) fn get(&self, id: u64) -> Option<&Event> {
        self.events.values().find(|event| event.id == id)
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(when: i64, tags: &[&str]) -> Event {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Event { when, what: "release".into(), tags, ..Event::default() }
    }

    #[test]
    fn events_are_read_again_by_another_process_and_the_oldest_make_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new").join("events.jsonl");
        let mut first = EventLog::new(path.clone(), 3);
        first.refresh().expect("there is no file yet");
        for when in [10, 30, 20] {
            first.add(event(when, &["a"])).expect("it is written");
        }
        let mut second = EventLog::new(path.clone(), 3);
        second.refresh().expect("readable");
        let times = |log: &EventLog| log.between(0, 100).map(|event| event.when).collect::<Vec<_>>();
        assert_eq!(times(&second), [10, 20, 30]);
        assert_eq!(second.add(event(40, &["b"])).ok(), Some(4));
        first.refresh().expect("readable");
        assert_eq!((times(&first), times(&second)), (vec![20, 30, 40], vec![20, 30, 40]));
        assert_eq!(first.between(21, 30).count(), 1);
        assert_eq!((first.between(30, 21).count(), first.get(4).map(|event| event.when)), (0, Some(40)));
    }

    #[test]
    fn half_a_line_and_foreign_lines_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        fs::write(
            &path,
            "{}\nnothing\n{\"when\":5,\"what\":\"x\",\"data\":\"\",\"tags\":[],\"id\":7}\n{\"when\":",
        )
        .expect("w");
        let mut log = EventLog::new(path.clone(), 10);
        log.refresh().expect("readable");
        assert_eq!(log.between(0, 100).count(), 1);
        assert_eq!(log.add(event(6, &[])).ok(), Some(8));
        let mut other = EventLog::new(path, 10);
        other.refresh().expect("readable");
        assert_eq!(other.between(0, 100).count(), 2);
    }

    #[test]
    fn a_long_file_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let lines: String = (1..=2000)
            .map(|id| format!("{{\"when\":{id},\"what\":\"x\",\"data\":\"\",\"tags\":[],\"id\":{id}}}\n"))
            .collect();
        fs::write(&path, lines).expect("w");
        let mut log = EventLog::new(path.clone(), 5);
        assert_eq!(log.add(event(3000, &[])).ok(), Some(2001));
        assert_eq!(fs::read_to_string(&path).expect("readable").lines().count(), 5);
        assert_eq!(log.add(event(3001, &[])).ok(), Some(2002));
        let mut other = EventLog::new(path, 5);
        other.refresh().expect("readable");
        assert_eq!(other.get(2002).map(|event| event.when), Some(3001));
    }

    #[test]
    fn events_have_limits() {
        let long = Event { what: "x".repeat(WHAT_BYTES_MAX + 1), ..event(1, &[]) };
        assert!(long.check().is_err());
        assert!(Event { what: "x".repeat(WHAT_BYTES_MAX), ..event(1, &[]) }.check().is_ok());
        assert!(Event { data: "x".repeat(DATA_BYTES_MAX + 1), ..event(1, &[]) }.check().is_err());
        assert!(event(i64::MAX, &[]).check().is_err() && event(-1, &[]).check().is_err());
        assert!(event(1, &["x"; TAGS_MAX + 1]).check().is_err());
        let one = event(1, &["a", "b"]);
        let tags = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (words, all, any) in
            [(&[][..], true, true), (&["a"], true, true), (&["a", "c"], false, true), (&["c"], false, false)]
        {
            assert_eq!((one.has(&tags(words), false), one.has(&tags(words), true)), (all, any), "{words:?}");
        }
    }

    #[test]
    fn events_have_a_limit_in_bytes_in_memory_and_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let large = |when| Event { data: "x".repeat(DATA_BYTES_MAX), ..event(when, &["a"]) };
        let room = 4 * large(1).memory_bytes();
        let mut log = EventLog { bytes_max: room, ..EventLog::new(path.clone(), 1_000) };
        for when in 1..=40 {
            log.add(large(when)).expect("it is written");
            let bytes: usize = log.events.values().map(Event::memory_bytes).sum();
            assert_eq!(log.bytes, bytes);
            assert!(bytes <= room && log.events.len() == 4.min(when as usize), "{when}: {bytes}");
            let file = fs::metadata(&path).expect("it is there").len();
            assert!(file <= 3 * room as u64, "{when}: {file}");
        }
        let mut other = EventLog { bytes_max: room, ..EventLog::new(path, 1_000) };
        other.refresh().expect("readable");
        let times = |log: &EventLog| log.between(0, 100).map(|event| event.when).collect::<Vec<_>>();
        assert_eq!((times(&log), times(&other)), (vec![37, 38, 39, 40], vec![37, 38, 39, 40]));
    }
}
