//! Runs steps one after the other in a simulated world. Checks are in `expect`.
//!
//! A failed check is noted and the flow continues. An impossible step ends the flow, because the next steps would fail
//! for the same reason. After every step, both balances (design §5) must hold for every source and output.

use config::diagnostic::nearest;
use config::plan::Plan;

use super::expect;
use super::failure::Failure;
use super::names::{did_you_mean, known_output, listed};
use super::plan;
use super::step::{Config, Order, Refused, Step, What};
use crate::world::peer::State;
use crate::world::source::End;
use crate::world::{Knobs, World, start};

/// Most failures reported for one flow.
const FAILURES_MAX: usize = 100;

const MS_NS: u64 = 1_000_000;

/// A flow that is running.
struct Runner<'a> {
    text: &'a str,
    read: &'a dyn Fn(&str) -> Result<String, String>,
    seed: u64,
    /// Steps of the wall clock before the start.
    wall_ms: i64,
    plan: Option<Plan>,
    world: Option<World>,
    failures: Vec<Failure>,
}

/// Why a step was not done.
enum Stop {
    /// The flow continues.
    Failed(String),
    /// The following steps would make no sense.
    Ended(String),
    /// The same with its own line.
    At(Failure),
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Ended(message)
    }
}

/// Runs the steps of the flow file `text`. Returns the fingerprint of everything that arrived anywhere.
pub(crate) fn run(
    text: &str,
    steps: &[Step],
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<u64, Vec<Failure>> {
    let mut runner =
        Runner { text, read, seed: 0, wall_ms: 0, plan: None, world: None, failures: Vec::new() };
    for step in steps {
        let line = step.line;
        let ended = match runner.step(step) {
            Ok(()) => false,
            Err(Stop::Failed(message)) => {
                runner.failures.push(Failure { line, message });
                false
            }
            Err(Stop::Ended(message)) => {
                runner.failures.push(Failure { line, message });
                true
            }
            Err(Stop::At(failure)) => {
                runner.failures.push(failure);
                true
            }
        };
        let broken = runner.world.as_ref().map(World::broken_sums).unwrap_or_default();
        let sums_hold = broken.is_empty();
        runner.failures.extend(broken.into_iter().map(|message| Failure { line, message }));
        if ended || !sums_hold || runner.failures.len() >= FAILURES_MAX {
            break;
        }
    }
    match runner.world {
        _ if !runner.failures.is_empty() => Err(runner.failures),
        Some(world) => Ok(world.digest()),
        None => Err(vec![Failure { line: 1, message: "the flow does nothing: send something".into() }]),
    }
}

impl Runner<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match &step.what {
            What::Config(config) => {
                self.plan = Some(self.check(config, step.line)?);
                Ok(())
            }
            What::Seed(seed) => {
                if self.world.is_some() {
                    return Err(Stop::Ended(
                        "`seed` stands before the first step that does something".into(),
                    ));
                }
                self.seed = *seed;
                Ok(())
            }
            What::Wall { back, ms } if self.world.is_none() => {
                let ms = i64::try_from(*ms).map_err(|error| error.to_string())?;
                self.wall_ms += if *back { -ms } else { ms };
                Ok(())
            }
            What::Reload { refused, config } => self.reload(refused.as_ref(), config, step.line),
            what => {
                let world = self.world()?;
                if !expect::is_check(what) {
                    return act(world, what);
                }
                expect::check(world, what).map_err(Stop::Failed)
            }
        }
    }

    fn check(&self, config: &Config, line: usize) -> Result<Plan, Stop> {
        plan::plan(config, line, self.text, self.read).map_err(|mistakes| Stop::At(mistakes.failure))
    }

    /// The world; the first step that needs it creates it.
    fn world(&mut self) -> Result<&mut World, Stop> {
        if self.world.is_none() {
            let plan = self.plan.take().ok_or_else(|| Stop::Ended("the flow has no `config` yet".into()))?;
            let mut world = World::new(plan, start(self.wall_ms), Knobs::new(self.seed));
            // Senders connect at the start, as in the daemon.
            world.settle()?;
            self.world = Some(world);
        }
        Ok(self.world.as_mut().expect("it was just made"))
    }

    fn reload(&mut self, refused: Option<&Refused>, config: &Config, line: usize) -> Result<(), Stop> {
        let checked = plan::plan(config, line, self.text, self.read);
        let world = self.world()?;
        match (checked, refused) {
            (Ok(plan), None) => {
                running(world)?;
                world.forget_arrivals();
                world.reload(&plan)?;
                world.settle()?;
                world.mark_arrivals();
                Ok(())
            }
            (Ok(_), Some(_)) => Err(Stop::Failed("this configuration should be refused, and is good".into())),
            (Err(mistakes), None) => Err(Stop::At(mistakes.failure)),
            (Err(mistakes), Some(Refused { code })) => match code {
                Some(code) if !mistakes.codes.contains(&code.as_str()) => {
                    let message = format!("refused, but not with {code}:\n{}", mistakes.failure.message);
                    Err(Stop::Failed(message))
                }
                _ => Ok(()),
            },
        }
    }
}

fn running(world: &World) -> Result<(), Stop> {
    if world.stopped {
        return Err(Stop::Ended("the pipeline has stopped: only checks can follow `stop`".into()));
    }
    Ok(())
}

fn act(world: &mut World, what: &What) -> Result<(), Stop> {
    running(world)?;
    match what {
        What::Send { source, packet } => {
            known_source(world, source)?;
            world.datagram(source, packet)?;
        }
        What::Stream { source, connection, bytes } => {
            known_source(world, source)?;
            world.stream(source, connection, false, bytes).map_err(Stop::Failed)?;
        }
        What::Frames { source, connection, packet } => {
            known_source(world, source)?;
            let len = u32::try_from(packet.len()).map_err(|error| error.to_string())?;
            let mut frame = len.to_le_bytes().to_vec();
            frame.extend_from_slice(packet);
            world.stream(source, connection, true, &frame).map_err(Stop::Failed)?;
        }
        What::Close { source, connection, orderly } => {
            known_source(world, source)?;
            let end = if *orderly { End::Orderly } else { End::Broken };
            let source = world.source(source).expect("it is known");
            if !source.end(connection, end) {
                let open: Vec<&str> = source.connections().map(String::as_str).collect();
                return Err(Stop::Failed(format!(
                    "source `{}` has no connection `{connection}`; open are: {}",
                    source.plan.name,
                    listed(&open)
                )));
            }
        }
        What::Advance { ms } => {
            world.forget_arrivals();
            world.advance(ms * MS_NS)?;
            world.mark_arrivals();
        }
        What::Wall { back, ms } => world.step_wall(*back, ms * MS_NS),
        What::Endpoint { output, order } => {
            let now = world.now;
            let outlet = known_output(world, output)?;
            match order {
                Order::Up => outlet.set_state(State::Up, now)?,
                Order::Down => outlet.set_state(State::Down, now)?,
                Order::Hang => outlet.set_state(State::Hang, now)?,
                Order::Cut { after } => outlet.cut(*after, now)?,
            }
        }
        What::Delete { kind, name } => {
            if !world.delete(*kind, name) {
                return Err(Stop::Failed(format!("there is no {} `{name}` to delete", kind.word())));
            }
        }
        What::Crash { power } => {
            world.forget_arrivals();
            world.crash(*power);
            world.settle()?;
            world.mark_arrivals();
            return Ok(());
        }
        What::Stop => {
            world.forget_arrivals();
            return Ok(world.stop()?);
        }
        _ => return Err(Stop::Ended("this step stands elsewhere".into())),
    }
    world.settle()?;
    Ok(())
}

fn known_source(world: &World, name: &str) -> Result<(), Stop> {
    let names = || world.sources.iter().map(|source| source.plan.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let all: Vec<&str> = names().collect();
    let near = did_you_mean(nearest(name, names()));
    Err(Stop::Ended(format!("there is no source `{name}`; there are: {}{near}", listed(&all))))
}
