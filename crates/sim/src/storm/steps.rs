//! The random actions of a step: traffic, endpoints, clocks and reloads.
//!
//! Not here: disks and crashes (`outage`), hours of rejections (`siege`). A new action, or another order, changes the
//! runs of all seeds.

use config::plan::Plan;
use model::OutputId;

use super::end::End as Outage;
use super::pipeline::{self, CALM};
use super::{MS_NS, Storm};
use crate::world::peer::State;
use crate::world::source::End;

impl Storm {
    pub(super) fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0 if self.random.chance(60) => self.state_disk(),
            1..=3 if self.has_disks() => self.disk(),
            4..=5 if self.has_disks() => {
                let end = Outage::by_chance(&mut self.random);
                self.check()?;
                self.crash(end)?;
            }
            6..=9 if self.has_disks() => self.bad_night()?,
            0..=29 => self.datagrams()?,
            30..=44 => self.connections()?,
            45..=49 => self.frames()?,
            50..=52 => self.clients()?,
            53..=57 => self.endpoint()?,
            58..=60 => self.reload()?,
            61 if self.random.chance(30) => self.siege()?,
            61 => self.member(),
            62..=64 => {
                let (s, back) = (self.random.below(7200), self.random.chance(50));
                self.story.tell(format!("the wall clock steps {} {s} s", if back { "back" } else { "on" }));
                self.world.step_wall(back, s * 1000 * MS_NS);
            }
            65..=76 => self.world.turn()?,
            77..=86 => self.sleep()?,
            87..=98 => {
                let ms = self.random.between(1, 15_000);
                self.advance(ms)?;
            }
            _ => self.advance(60_000)?,
        }
        if self.random.chance(50) { self.world.turn() } else { Ok(()) }
    }

    pub(super) fn advance(&mut self, ms: u64) -> Result<(), String> {
        self.story.tell(format!("{ms} ms pass"));
        self.world.advance(ms * MS_NS)
    }

    /// The machine runs other programs for a while; now and then for hours.
    fn sleep(&mut self) -> Result<(), String> {
        let ms = if self.random.chance(10) {
            self.random.between(1_000_000, 20_000_000)
        } else {
            self.random.between(1, 12_000)
        };
        self.story.tell(format!("the process is suspended for {ms} ms"));
        self.world.sleep(ms * MS_NS);
        self.world.turn()
    }

    pub(super) fn datagrams(&mut self) -> Result<(), String> {
        let packets = self.random.between(1, 40);
        self.story.tell(format!("{packets} datagrams"));
        for _ in 0..packets {
            let packet = self.traffic.packet();
            self.world.datagram("a", &packet)?;
        }
        Ok(())
    }

    fn connections(&mut self) -> Result<(), String> {
        let source = *self.random.pick(&["a", "b"]);
        let name = format!("c{}", self.random.below(4));
        let open =
            self.world.source(source).is_some_and(|known| known.connections().any(|open| *open == name));
        if open && self.random.chance(25) {
            let end = *self.random.pick(&[End::Orderly, End::Broken]);
            self.story.tell(format!("connection {name} to `{source}` ends: {end:?}"));
            self.world.source(source).ok_or("the source was just there")?.end(&name, end);
            return Ok(());
        }
        let lines = self.traffic.lines();
        self.story.tell(format!("{} bytes to `{source}` on {name}", lines.len()));
        let mut rest = &lines[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.random.between(1, rest.len() as u64) as usize);
            self.world.stream(source, &name, false, piece)?;
            if self.random.chance(50) {
                self.world.turn()?;
            }
            if self.random.chance(5) {
                break;
            }
            rest = behind;
        }
        Ok(())
    }

    /// A client that gets acknowledgements sends some lines.
    pub(super) fn clients(&mut self) -> Result<(), String> {
        let source = self.world.sources.iter().find(|source| source.plan.name == "k");
        let open = |name: &str| source.is_some_and(|known| known.connections().any(|open| open == name));
        let (name, lines, done) = self.clients.lines(&mut self.random, open);
        self.story.tell(format!(
            "{} bytes to `k` on {name}{}",
            lines.len(),
            if done { ", and its end" } else { "" }
        ));
        let cut = self.random.below(lines.len() as u64 + 1) as usize;
        self.world.stream("k", &name, false, &lines[..cut])?;
        if self.random.chance(30) {
            self.world.turn()?;
        }
        let Some(source) = self.world.source("k") else { return Ok(()) };
        // If that connection has ended meanwhile, the rest would open another one of the same name, and its replies
        // would be about other lines.
        if source.connections().any(|open| *open == name) {
            self.world.stream("k", &name, false, &lines[cut..])?;
            if done && let Some(source) = self.world.source("k") {
                source.end(&name, End::Orderly);
            }
        }
        Ok(())
    }

    fn frames(&mut self) -> Result<(), String> {
        let lines = self.traffic.lines();
        let mut frame = (lines.len() as u32).to_le_bytes().to_vec();
        frame.extend(lines);
        if self.random.chance(10) {
            frame[3] = 0x7f;
        }
        let cut = self.random.below(frame.len() as u64 + 1) as usize;
        let name = format!("f{}", self.random.below(3));
        self.world.stream("f", &name, true, &frame[..cut])?;
        if self.random.chance(80) {
            self.world.turn()?;
            // A frame over the limit has closed the connection; the rest then opens another one.
            self.world.stream("f", &name, true, &frame[cut..])?;
        }
        Ok(())
    }

    fn endpoint(&mut self) -> Result<(), String> {
        let at = self.random.below(self.world.outlets.len() as u64) as usize;
        let now = self.world.now;
        let outlet = &mut self.world.outlets[at];
        if CALM.contains(&outlet.name.as_str()) {
            return Ok(());
        }
        // Some endpoints do not support some actions; these do nothing.
        let what = match self.random.below(10) {
            0..=2 => outlet.set_state(State::Down, now).map(|()| "down".to_owned()),
            3 => outlet.set_state(State::Hang, now).map(|()| "hanging".to_owned()),
            4..=6 => outlet.set_state(State::Up, now).map(|()| "up".to_owned()),
            7..=8 => {
                let after = self.random.below(5000);
                outlet.cut(after, now).map(|()| format!("cut after {after} bytes"))
            }
            _ => {
                outlet.close_by_peer(now);
                Ok("closed by its peer".to_owned())
            }
        };
        if let Ok(what) = what {
            self.story.tell(format!("the endpoint of `{}` is {what}", outlet.name));
        }
        Ok(())
    }

    /// A health check finds that an endpoint of a cluster is down, or up again.
    fn member(&mut self) {
        let output = OutputId(self.random.below(self.world.outlets.len() as u64) as u16);
        let live = self.random.chance(50);
        self.world.set_member_live(output, live);
    }

    fn reload(&mut self) -> Result<(), String> {
        // At the next start, a queue changes its kind.
        if self.random.chance(40) {
            let name = (*self.random.pick(pipeline::MOVABLE)).to_owned();
            self.story.tell(format!("the queue of `{name}` changes its kind"));
            if !self.moved.remove(&name) {
                self.moved.insert(name);
            }
        }
        let plan = pipeline::plan(&mut self.random, self.disks, &self.moved);
        self.reload_to(&plan)
    }

    pub(super) fn reload_to(&mut self, plan: &Plan) -> Result<(), String> {
        self.story.tell("reload".to_owned());
        self.world.reload(plan)?;
        self.rain();
        Ok(())
    }
}
