//! Namespaces: `require`, `use`, `in-ns`, `resolve`, `eval`, and loading of files.

use std::sync::Arc;

use arcstr::ArcStr;

use super::arguments::text;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::language::namespace::{Entry, Named};
use crate::language::refused;
use crate::natives;
use crate::object::class;
use crate::symbol::split_name;
use crate::value::Value;

natives! {
    /// Namespaces and evaluation.
    pub NATIVES = {
        "in-ns", 1, 1, "Makes a namespace the current one.", |m, a| {
            let name = name(&a[0])?;
            m.world.namespaces().make(&name);
            m.namespace = name.clone();
            Ok(Value::Namespace(name))
        };
        "create-ns", 1, 1, "Makes a namespace.", |m, a| { let name = name(&a[0])?; m.world.namespaces().make(&name); Ok(Value::Namespace(name)) };
        "require", 1, ANY, "Loads namespaces from files of the config's folder, perhaps with `:as`, `:refer`.", |m, a| all_required(m, a, false);
        "use", 1, ANY, "As `require`; their names need no prefix, or only those of `:only`.", |m, a| all_required(m, a, true);
        "refer", 1, ANY, "Lets names of a namespace be used without a prefix: all, or those of `:only`.", |m, a| {
            let space = name(&a[0])?;
            let options = a[1..].to_vec();
            refer(m, &space, &options, true).map(|()| Value::Nil)
        };
        "refer-clojure", 0, ANY, "Nil: names of `clojure.core` are there, and a namespace's own ones come first.", |_, _| Ok(Value::Nil);
        "import*", 0, ANY, "Nil: classes are found by their short names.", |_, _| Ok(Value::Nil);
        "alias", 2, 2, "Gives a namespace a short name.", |m, a| {
            let namespace = m.namespace.clone();
            m.world.alias(&namespace, &name(&a[0])?, &name(&a[1])?);
            Ok(Value::Nil)
        };
        "load-file", 1, 1, "Loads a file of the config's folder.", |m, a| { let path = text(&a[0])?.clone(); m.load_file(&path)?; Ok(Value::Nil) };
        "slurp", 1, ANY, "The text of a file of the config's folder.", |m, a| {
            let path = text(&a[0])?.clone();
            let read = m.host.read_file(&path).map_err(|reason| EvalError::throw(&class::FILE_NOT_FOUND, format!("{path}: {reason}")))?;
            m.budget.text(read.len())?;
            Ok(Value::from(read))
        };
        "load-string", 1, 1, "Evaluates the forms of a text.", |m, a| {
            let text = text(&a[0])?.clone();
            m.budget.memory(text.len())?;
            let form = m.read_form(&format!("(do {text}\n)"))?.unwrap_or_default();
            m.eval_form(&form)
        };
        "eval", 1, 1, "Evaluates a form.", |m, a| { let form = a[0].clone(); m.eval_form(&form) };
        "macroexpand-1", 1, 1, "A form with the macro at its head expanded once.", |m, a| { let form = a[0].clone(); m.expand(&form, false) };
        "macroexpand", 1, 1, "A form with the macro at its head expanded until there is none.", |m, a| { let form = a[0].clone(); m.expand(&form, true) };
        "resolve", 1, 2, "The var or the function of a symbol, or nil.", |m, a| {
            let symbol = name(&a[a.len() - 1])?;
            let namespace = if a.len() == 2 { name(&a[0])? } else { m.namespace.clone() };
            Ok(resolved(m, &namespace, &symbol))
        };
        "ns-resolve", 2, 2, "The var or the function of a symbol in a namespace, or nil.", |m, a| { let (space, symbol) = (name(&a[0])?, name(&a[1])?); Ok(resolved(m, &space, &symbol)) };
        "find-var", 1, 1, "The var of a symbol with a namespace, or nil.", |m, a| { let (space, symbol) = (m.namespace.clone(), name(&a[0])?); Ok(resolved(m, &space, &symbol)) };
        "requiring-resolve", 1, 1, "The var of a symbol with a namespace, which is loaded if it has to be.", |m, a| {
            let symbol = name(&a[0])?;
            if let (Some(space), _) = split_name(&symbol) { load(m, &ArcStr::from(space))?; }
            let namespace = m.namespace.clone();
            Ok(resolved(m, &namespace, &symbol))
        };
        "intern", 2, 3, "The var of a name in a namespace, which is made if it has to be.", |m, a| {
            let var = m.world.intern(&name(&a[0])?, &name(&a[1])?);
            if let Some(value) = a.get(2) { var.set(value.clone()); }
            Ok(Value::Var(var))
        };
        "find-ns", 1, 1, "A namespace, or nil.", |m, a| { let name = name(&a[0])?; Ok(m.world.namespaces().get(&name).map(|_| Value::Namespace(name.clone())).unwrap_or_default()) };
        "the-ns", 1, 1, "A namespace.", |m, a| {
            let name = name(&a[0])?;
            let known = m.world.namespaces().get(&name).is_some();
            if known { Ok(Value::Namespace(name)) } else { Err(EvalError::throw(&class::RUNTIME_EXCEPTION, format!("No namespace: {name} found"))) }
        };
        "ns-name", 1, 1, "The name of a namespace, as a symbol.", |_, a| name(&a[0]).map(|name| Value::symbol(&name));
        "all-ns", 0, 0, "All namespaces.", |m, _| {
            let mut names: Vec<ArcStr> = m.world.namespaces().names().filter(|name| !name.starts_with(' ')).cloned().collect();
            names.sort();
            Ok(Value::list(names.into_iter().map(Value::Namespace)))
        };
        "ns-publics", 1, 1, "The names that a namespace defines, with what they mean.", |m, a| names(m, &a[0], true);
        "ns-interns", 1, 1, "The names that a namespace defines, with what they mean.", |m, a| names(m, &a[0], true);
        "ns-map", 1, 1, "All names of a namespace, with what they mean.", |m, a| names(m, &a[0], false);
        "ns-unmap", 2, 2, "Takes a name out of a namespace.", |m, a| {
            let (space, symbol) = (name(&a[0])?, name(&a[1])?);
            let mut namespaces = m.world.namespaces();
            let space = namespaces.make(&space);
            if !space.is_native { space.names.remove(&symbol); }
            Ok(Value::Nil)
        };
        " current-namespace", 0, 0, "", |m, _| Ok(Value::Namespace(m.namespace.clone()));
    }
}

/// The name of a symbol, a namespace or a text.
fn name(value: &Value) -> Outcome<ArcStr> {
    match value {
        Value::Symbol(symbol) => Ok(symbol.name.clone()),
        Value::Namespace(name) | Value::Text(name) => Ok(name.clone()),
        other => Err(cannot_cast(other, &class::SYMBOL)),
    }
}

/// All specifications of `require` or `use`. After one that fails, the others are processed, so that one load reports all that fail.
fn all_required(machine: &mut Machine<'_>, specs: &[Value], use_all: bool) -> Outcome {
    let at = machine.graph.evaluation.here().cloned().unwrap_or_default();
    let mut first = None;
    for spec in specs {
        if let Err(error) = required(machine, spec, use_all) {
            match first {
                None => first = Some(error.within(&at)),
                Some(_) => machine.add_mistake(&error.within(&at)),
            }
        }
    }
    first.map_or(Ok(Value::Nil), Err)
}

/// One specification of `require`: `a.b`, `[a.b :as c]`, `(a b [c :as d])`, `:reload`.
fn required(machine: &mut Machine<'_>, spec: &Value, use_all: bool) -> Outcome<()> {
    let parts = match spec {
        Value::Keyword(_) => return Ok(()),
        Value::Vector(_) | Value::List(_) => machine.collect(spec)?,
        other => vec![other.clone()],
    };
    let Some((space, options)) = parts.split_first() else { return Ok(()) };
    let space = name(space)?;
    let is_list = |part: &Value| matches!(part, Value::Symbol(_) | Value::Vector(_) | Value::List(_));
    if !options.is_empty() && options.iter().all(is_list) {
        // A prefix before several names.
        for part in options {
            let mut inner = match part {
                Value::Symbol(_) => vec![part.clone()],
                other => machine.collect(other)?,
            };
            if let Some(first) = inner.first_mut() {
                *first = Value::symbol(&format!("{space}.{}", name(first)?));
            }
            required(machine, &Value::vector(inner), use_all)?;
        }
        return Ok(());
    }
    load(machine, &space)?;
    refer(machine, &space, options, use_all)
}

/// Makes sure that a namespace is there: ours, one that was loaded, or the file of its name.
fn load(machine: &mut Machine<'_>, space: &ArcStr) -> Outcome<()> {
    if machine.world.namespaces().get(space).is_some() {
        return Ok(());
    }
    let path = space.replace('.', "/").replace('-', "_") + ".clj";
    let loaded = machine.load_file(&path);
    loaded.map_err(|error| match error.class().name == class::FILE_NOT_FOUND.name {
        true => EvalError::throw(&class::FILE_NOT_FOUND, no_namespace(space, &error)),
        false => error,
    })?;
    if machine.world.namespaces().get(space).is_none() && machine.is_right() {
        let message = format!("namespace '{space}' not found after loading '{path}'");
        return Err(EvalError::throw(&class::RUNTIME_EXCEPTION, message));
    }
    Ok(())
}

/// Why a namespace cannot be loaded.
fn no_namespace(space: &str, error: &EvalError) -> String {
    match refused::library(space) {
        Some(why) => format!("there is no namespace `{space}`: {why}"),
        None => format!("there is no namespace `{space}`: {}", error.in_words()),
    }
}

/// Makes names known without a prefix, as options say: `:as`, `:refer`, `:only`, `:exclude`, `:rename`.
fn refer(machine: &mut Machine<'_>, space: &ArcStr, options: &[Value], use_all: bool) -> Outcome<()> {
    let own = machine.namespace.clone();
    let (pairs, _) = options.as_chunks::<2>();
    let (mut only, mut excluded, mut all) = (None, Vec::new(), use_all);
    let mut renamed = Value::map([]);
    for [option, value] in pairs {
        let Value::Keyword(option) = option else { continue };
        match (option.as_str(), value) {
            ("as" | "as-alias", alias) => machine.world.alias(&own, &name(alias)?, space),
            ("refer", Value::Keyword(every)) if every == "all" => all = true,
            ("refer" | "only", Value::Nil) => {}
            ("refer" | "only", names) => only = Some(names_of(machine, names)?),
            ("exclude", names) => excluded = names_of(machine, names)?,
            ("rename", map) => renamed = map.clone(),
            _ => {}
        }
    }
    let wanted: Vec<(ArcStr, Named)> = {
        let namespaces = machine.world.namespaces();
        let Some(found) = namespaces.get(space) else { return Ok(()) };
        let is_own = |named: &Named| named.home == *space;
        match &only {
            None if !all => return Ok(()),
            None => {
                let own =
                    found.names.iter().filter(|(name, named)| is_own(named) && !excluded.contains(name));
                own.map(|(name, named)| (ArcStr::clone(name), Named::clone(named)))
                    .collect::<Vec<(ArcStr, Named)>>()
            }
            Some(names) => {
                let one = |name: &ArcStr| -> Outcome<(ArcStr, Named)> {
                    match found.names.get(name) {
                        Some(named) => Ok((name.clone(), named.clone())),
                        None => Err(EvalError::throw(
                            &class::RUNTIME_EXCEPTION,
                            missing(name, space, found.names.keys()),
                        )),
                    }
                };
                names.iter().map(one).collect::<Outcome<_>>()?
            }
        }
    };
    let mut namespaces = machine.world.namespaces();
    let names = &mut namespaces.make(&own).names;
    for (known, named) in wanted {
        let new = match &renamed {
            Value::Map(map) => map.get(&Value::symbol(&known)).and_then(Value::as_symbol).cloned(),
            _ => None,
        };
        names.insert(new.unwrap_or(known), named);
    }
    Ok(())
}

fn missing<'n>(name: &str, space: &str, names: impl Iterator<Item = &'n ArcStr>) -> String {
    let near = crate::language::diagnostic::nearest(name, names.map(|name| &**name));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("{space} has no `{name}`{hint}")
}

fn names_of(machine: &mut Machine<'_>, list: &Value) -> Outcome<Vec<ArcStr>> {
    machine.collect(list)?.iter().map(name).collect()
}

fn meaning(entry: &Entry) -> Value {
    match entry {
        Entry::Native(native) | Entry::Macro(native) => Value::Native(native),
        Entry::Constant(value) => value.clone(),
        Entry::Var(var) => Value::Var(Arc::clone(var)),
    }
}

fn resolved(machine: &Machine<'_>, namespace: &str, symbol: &str) -> Value {
    let namespaces = machine.world.namespaces();
    let found = match split_name(symbol) {
        (None, name) => namespaces.find(namespace, name),
        (Some(space), name) => {
            let space = namespaces.full_name(namespace, space);
            space.and_then(|space| namespaces.get(&space)?.names.get(name))
        }
    };
    found.map(|named| meaning(&named.entry)).unwrap_or_default()
}

fn names(machine: &mut Machine<'_>, of: &Value, own: bool) -> Outcome {
    let space = name(of)?;
    let namespaces = machine.world.namespaces();
    let Some(found) = namespaces.get(&space) else {
        return Err(EvalError::throw(&class::RUNTIME_EXCEPTION, format!("No namespace: {space} found")));
    };
    let names =
        found.names.iter().filter(|(name, named)| !name.starts_with(' ') && (!own || named.home == space));
    Ok(Value::map(names.map(|(name, named)| (Value::symbol(name), meaning(&named.entry)))))
}
