//! Events as streams see them: maps with eight standard fields (spec riemann §3.1).

use arcstr::ArcStr;

use crate::value::Value;

/// The standard fields, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What the event is about.
    Host,
    /// What is measured there.
    Service,
    /// Any word: `ok`, `warning`, `critical`, `expired`.
    State,
    /// Text for humans.
    Description,
    /// The measured number.
    Metric,
    /// A list of texts.
    Tags,
    /// Unix seconds.
    Time,
    /// Seconds until the event expires.
    Ttl,
}

impl Field {
    /// All of them, in their order.
    pub const ALL: [Field; 8] = [
        Field::Host,
        Field::Service,
        Field::State,
        Field::Description,
        Field::Metric,
        Field::Tags,
        Field::Time,
        Field::Ttl,
    ];

    /// Its name: that of its keyword.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Host => "host",
            Field::Service => "service",
            Field::State => "state",
            Field::Description => "description",
            Field::Metric => "metric",
            Field::Tags => "tags",
            Field::Time => "time",
            Field::Ttl => "ttl",
        }
    }

    /// The field of that name, if it is a standard one.
    pub fn of(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// One event. A standard field that is absent is nil; a field may hold any value, since configs put there what they like.
#[derive(Clone, Debug, Default)]
pub struct Event {
    standard: [Value; Field::ALL.len()],
    /// The custom fields, in the order in which they came; none of them twice.
    attributes: Vec<(ArcStr, Value)>,
}

impl Event {
    /// The value of a standard field.
    pub fn get(&self, field: Field) -> &Value {
        &self.standard[field as usize]
    }

    /// Sets a standard field.
    pub fn set(&mut self, field: Field, value: Value) {
        self.standard[field as usize] = value;
    }

    /// The value of any field; nil where it is absent.
    pub fn named(&self, name: &str) -> &Value {
        match Field::of(name) {
            Some(field) => self.get(field),
            None => self.attribute(name).unwrap_or(&Value::Nil),
        }
    }

    /// A custom field.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The custom fields, in their order.
    pub fn attributes(&self) -> &[(ArcStr, Value)] {
        &self.attributes
    }

    /// Removes a custom field, if there is one of that name.
    pub fn remove_attribute(&mut self, name: &str) {
        self.attributes.retain(|(key, _)| key != name);
    }

    /// Adds a custom field of which the caller knows that it is none of the standard ones, and not there yet.
    pub fn add_attribute(&mut self, name: ArcStr, value: Value) {
        self.attributes.push((name, value));
    }

    /// Sets the custom fields of a new event, of which none is a standard one; of those of one name the last one counts, in the place of
    /// the first. However many there are, it takes little more than reading them.
    pub fn set_attributes(&mut self, attributes: Vec<(ArcStr, Value)>) {
        const FEW: usize = 16;
        let is_repeated = |at: usize| attributes[..at].iter().any(|(name, _)| *name == attributes[at].0);
        if attributes.len() <= FEW && !(0..attributes.len()).any(is_repeated) {
            self.attributes = attributes;
            return;
        }
        let mut by_name: Vec<usize> = (0..attributes.len()).collect();
        by_name.sort_by(|a, b| attributes[*a].0.cmp(&attributes[*b].0).then(a.cmp(b)));
        let mut last_of: Vec<Option<usize>> = vec![None; attributes.len()];
        for same in by_name.chunk_by(|a, b| attributes[*a].0 == attributes[*b].0) {
            last_of[same[0]] = same.last().copied();
        }
        let kept = last_of.into_iter().enumerate().filter_map(|(first, last)| Some((first, last?)));
        self.attributes =
            kept.map(|(first, last)| (attributes[first].0.clone(), attributes[last].1.clone())).collect();
    }

    /// Sets a custom field; the caller has made sure that it is none of the standard ones.
    pub fn set_attribute(&mut self, name: ArcStr, value: Value) {
        debug_assert!(Field::of(&name).is_none(), "`{name}` is a standard field");
        match self.attributes.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name, value)),
        }
    }
}

#[test]
fn attributes_set_at_once_are_those_set_one_by_one() {
    let names = |count: usize, different: usize| {
        let of = move |at: usize| (ArcStr::from(format!("a{}", at * 7 % different)), Value::from(at));
        (0..count).map(of).collect::<Vec<_>>()
    };
    for (count, different) in [(0, 1), (1, 1), (3, 2), (16, 16), (16, 5), (17, 17), (500, 300)] {
        let (mut at_once, mut one_by_one) = (Event::default(), Event::default());
        at_once.set_attributes(names(count, different));
        names(count, different).into_iter().for_each(|(name, value)| one_by_one.set_attribute(name, value));
        assert_eq!(at_once.attributes(), one_by_one.attributes(), "{count} of {different}");
    }
}
