//! What a person sees and has chosen: pure, changed by samples and keys.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::sample::{OutputSample, Sample};

/// Which table the arrow keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    /// The sources.
    Sources,
    /// The clusters of relays.
    Clusters,
    /// The outputs.
    #[default]
    Outputs,
}

/// What was chosen with keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Table with the selected row.
    pub(crate) focus: Focus,
    /// Selected row of each table; past the end it is the last.
    pub(crate) source: usize,
    /// As `source`.
    pub(crate) cluster: usize,
    /// As `source`.
    pub(crate) output: usize,
    /// A row was selected, by keys or because its output fails: it stays selected.
    pub(crate) chosen: bool,
    /// The figures stand still.
    pub(crate) paused: bool,
    /// The keys are explained.
    pub(crate) help: bool,
    /// Whether colours may be used. What they say is said in words too.
    pub(crate) colour: bool,
}

/// Everything that a frame shows.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Who is asked.
    pub(crate) api: String,
    /// The last sample with figures.
    pub(crate) sample: Option<Sample>,
    /// The sample that says why there is none newer.
    pub(crate) away: Option<Sample>,
    /// What was chosen.
    pub(crate) view: View,
}

/// Rows that a page key moves by.
const PAGE_ROWS: usize = 10;

impl Shown {
    /// Nothing seen yet.
    pub(crate) fn new(api: &str, view: View) -> Shown {
        Shown { api: api.to_owned(), sample: None, away: None, view }
    }

    /// Takes what was seen. A pause keeps the figures, and still shows that the daemon is away.
    pub(crate) fn take(&mut self, sample: Sample) {
        if !sample.reachable {
            self.away = Some(sample);
            return;
        }
        self.away = None;
        if self.view.paused {
            return;
        }
        // An output that fails is what a person looks for. A selection by keys is kept.
        let failing = sample.outputs.iter().position(OutputSample::fails).filter(|_| !self.view.chosen);
        if let Some(at) = failing {
            (self.view.output, self.view.chosen) = (at, true);
        }
        self.sample = Some(sample);
    }

    /// Takes a key, or None for anything else that needs a new frame. False means the end.
    pub(crate) fn press(&mut self, key: Option<KeyEvent>) -> bool {
        let Some(key) = key else { return true };
        let has_clusters = self.sample.as_ref().is_some_and(|sample| sample.clusters().next().is_some());
        let view = &mut self.view;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return false,
            KeyCode::Char('q') => return false,
            KeyCode::Char('s') => view.focus = Focus::Sources,
            KeyCode::Char('o') => view.focus = Focus::Outputs,
            KeyCode::Char('c') if has_clusters => view.focus = Focus::Clusters,
            KeyCode::Tab => {
                view.focus = match view.focus {
                    Focus::Outputs => Focus::Sources,
                    Focus::Sources if has_clusters => Focus::Clusters,
                    Focus::Sources | Focus::Clusters => Focus::Outputs,
                }
            }
            KeyCode::Char('p' | ' ') => view.paused = !view.paused,
            KeyCode::Char('?' | 'h') => view.help = !view.help,
            KeyCode::Esc => view.help = false,
            code => self.scroll(code),
        }
        true
    }

    fn scroll(&mut self, code: KeyCode) {
        self.view.chosen = true;
        let sample = self.sample.as_ref();
        let (row, rows) = match self.view.focus {
            Focus::Sources => (&mut self.view.source, sample.map_or(0, |sample| sample.sources.len())),
            Focus::Clusters => (&mut self.view.cluster, sample.map_or(0, |sample| sample.clusters().count())),
            Focus::Outputs => (&mut self.view.output, sample.map_or(0, |sample| sample.outputs.len())),
        };
        let last = rows.saturating_sub(1);
        let at = (*row).min(last);
        *row = match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
            KeyCode::PageUp => at.saturating_sub(PAGE_ROWS),
            KeyCode::PageDown => (at + PAGE_ROWS).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => at,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{DiskSample, DiskState, SourceSample};
    use super::*;

    fn shown(sources: usize, outputs: usize) -> Shown {
        let mut shown = Shown::new("x", View::default());
        shown.take(Sample {
            time_ms: 1,
            api: "x".into(),
            reachable: true,
            away_since_ms: None,
            error: None,
            interval_s: None,
            sums: None,
            totals: None,
            sources: vec![SourceSample::default(); sources],
            outputs: vec![OutputSample::default(); outputs],
            relays: Vec::new(),
            edges: Vec::new(),
        });
        shown
    }

    #[test]
    fn keys_move_within_the_table_in_focus() {
        use KeyCode::{Char, Down, End, Home, PageDown, PageUp, Tab, Up};
        let mut shown = shown(2, 25);
        for (code, want) in [
            (Up, (0, 0)),
            (Down, (0, 1)),
            (Char('j'), (0, 2)),
            (PageDown, (0, 12)),
            (PageDown, (0, 22)),
            (PageDown, (0, 24)),
            (Down, (0, 24)),
            (PageUp, (0, 14)),
            (Char('k'), (0, 13)),
            (Char('s'), (0, 13)),
            (Down, (1, 13)),
            (Down, (1, 13)),
            (Char('o'), (1, 13)),
            (Home, (1, 0)),
            (End, (1, 24)),
            (Tab, (1, 24)),
            (Home, (0, 24)),
            (Char('x'), (0, 24)),
        ] {
            assert!(shown.press(Some(code.into())));
            assert_eq!((shown.view.source, shown.view.output), want, "{code:?}");
        }
        // A reload took rows away: the selection is on the last one that is left.
        shown.sample.as_mut().expect("taken above").outputs.truncate(3);
        shown.press(Some(Char('o').into()));
        shown.press(Some(Up.into()));
        assert_eq!(shown.view.output, 1);
    }

    #[test]
    fn the_first_output_that_fails_is_selected_until_a_key_selects() {
        let look = |shown: &mut Shown, failing: &[usize]| {
            let mut sample = shown.sample.clone().expect("taken before");
            for (at, output) in sample.outputs.iter_mut().enumerate() {
                output.state = if failing.contains(&at) { "down" } else { "up" }.into();
            }
            shown.take(sample);
            shown.view.output
        };
        let mut with = shown(1, 5);
        assert_eq!(look(&mut with, &[]), 0);
        assert_eq!(look(&mut with, &[3, 4]), 3);
        // It stays where it is, so that it can be read.
        assert_eq!((look(&mut with, &[1, 3]), look(&mut with, &[1])), (3, 3));
        let mut with = shown(1, 5);
        with.press(Some(KeyCode::Down.into()));
        assert_eq!(look(&mut with, &[3]), 1, "a person has chosen another");
        // One that loses, or whose disk fails, is as urgent.
        for output in [
            OutputSample { lost_per_s: Some(0.5), ..OutputSample::default() },
            OutputSample {
                disk: Some(DiskSample { state: DiskState::Failing, ..DiskSample::default() }),
                ..OutputSample::default()
            },
        ] {
            let mut with = shown(1, 5);
            let mut sample = with.sample.clone().expect("taken before");
            sample.outputs[2] = output;
            with.take(sample);
            assert_eq!(with.view.output, 2);
        }
    }

    #[test]
    fn no_rows_are_no_trouble() {
        let mut shown = shown(0, 0);
        for code in [KeyCode::Down, KeyCode::PageDown, KeyCode::End, KeyCode::Up] {
            assert!(shown.press(Some(code.into())));
            assert_eq!(shown.view.output, 0);
        }
        shown.sample = None;
        assert!(shown.press(Some(KeyCode::Down.into())) && shown.press(None));
    }

    #[test]
    fn q_and_control_c_end_it() {
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        for (key, goes_on) in [
            (KeyCode::Char('q').into(), false),
            (control('c'), false),
            (control('d'), false),
            (KeyCode::Char('c').into(), true),
            (KeyCode::Esc.into(), true),
        ] {
            assert_eq!(shown(1, 1).press(Some(key)), goes_on, "{key:?}");
        }
    }

    #[test]
    fn a_pause_holds_the_figures_and_not_the_news() {
        let mut shown = shown(1, 1);
        let newer = Sample { time_ms: 2, ..shown.sample.clone().expect("taken above") };
        let away = Sample { reachable: false, error: Some("refused".into()), ..newer.clone() };
        assert!(shown.press(Some(KeyCode::Char('p').into())));
        shown.take(newer.clone());
        assert_eq!(shown.sample.as_ref().map(|sample| sample.time_ms), Some(1));
        shown.take(away);
        assert!(shown.away.is_some() && shown.sample.is_some());
        assert!(shown.press(Some(KeyCode::Char(' ').into())));
        shown.take(newer);
        assert!(shown.away.is_none());
        assert_eq!(shown.sample.map(|sample| sample.time_ms), Some(2));
    }
}
