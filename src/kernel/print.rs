//! A kernel as text that reads back as the same kernel. Shared units and parameters get names:
//! `let a = RBF; a * a + LIN * a`.

use super::network::{Network, parents};
use super::{Activation, Column, Columns, Kernel, Layer, Param, Primitive, Sharing, Size, Unit};
use std::collections::{HashMap, HashSet};
use std::fmt;

struct Printer {
    /// Names of shared units and parameters, by identity.
    names: HashMap<usize, String>,
    parents: HashMap<usize, HashSet<usize>>,
}

/// a, b, …, z, a1, b1, …
fn name(i: usize) -> String {
    let letter = (b'a' + (i % 26) as u8) as char;
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { names: HashMap::new(), parents: parents(self) };
        for param in shared_params(self) {
            let name = name(printer.names.len());
            write!(f, "let {name} = {}; ", printer.value(&param))?;
            printer.names.insert(param.id(), name);
        }
        for unit in printer.shared_units(self) {
            let name = name(printer.names.len());
            write!(f, "let {name} = {}; ", printer.unit(&unit))?;
            printer.names.insert(unit.id(), name);
        }
        f.write_str(&printer.unit(self))
    }
}

/// Parameters that occur in more than one place.
fn shared_params(root: &Kernel) -> Vec<Param> {
    let mut count: HashMap<usize, usize> = HashMap::new();
    for unit in root.units() {
        for p in unit.own_params() {
            *count.entry(p.id()).or_default() += 1;
        }
    }
    root.all_params().into_iter().filter(|p| count[&p.id()] > 1).collect()
}

impl Printer {
    /// What the text of a unit mentions: its inputs, or the inputs of the network that ends in it.
    fn mentions(&self, unit: &Kernel) -> Vec<Kernel> {
        match Network::ending_in(unit, &self.parents) {
            Some(network) => network.inputs,
            None => unit.inputs().to_vec(),
        }
    }

    /// Units that the text would mention more than once, inputs first.
    fn shared_units(&self, root: &Kernel) -> Vec<Kernel> {
        let mut count: HashMap<usize, usize> = HashMap::new();
        let mut stack = vec![root.clone()];
        while let Some(unit) = stack.pop() {
            for k in self.mentions(&unit) {
                let c = count.entry(k.id()).or_default();
                *c += 1;
                if *c == 1 {
                    stack.push(k);
                }
            }
        }
        root.units().into_iter().filter(|k| count.get(&k.id()).is_some_and(|&c| c > 1)).collect()
    }

    /// A unit where another mentions it: its name, if it has one.
    fn mention(&self, k: &Kernel, in_product: bool) -> String {
        match (self.names.get(&k.id()), k.unit()) {
            (Some(name), _) => name.clone(),
            // A weighted Linear is printed as nkn(…), which binds tightly by itself.
            (None, Unit::Linear { weights, .. }) if in_product && weights.is_empty() => format!("({})", self.unit(k)),
            _ => self.unit(k),
        }
    }

    fn unit(&self, k: &Kernel) -> String {
        if let Some(network) = Network::ending_in(k, &self.parents) {
            let inputs: Vec<String> = network.inputs.iter().map(|k| self.mention(k, false)).collect();
            let layers: Vec<String> = network.layers.iter().map(|(layer, p)| self.layer(layer, p.as_ref())).collect();
            return format!("nkn({}; {})", grouped(&inputs).join(", "), layers.join("-"));
        }
        let list = |of: &[Kernel], glue: &str, in_product| {
            of.iter().map(|k| self.mention(k, in_product)).collect::<Vec<_>>().join(glue)
        };
        match k.unit() {
            Unit::Primitive(p) => self.primitive(p),
            Unit::Linear { of, .. } => list(of, " + ", false),
            Unit::Product { of } => list(of, " * ", true),
            Unit::Activation { of, f: Activation::Exp } => format!("exp({})", self.mention(of, false)),
            Unit::Real { of } => format!("real({})", self.mention(of, false)),
        }
    }

    fn layer(&self, layer: &Layer, params: Option<&(Vec<Param>, Vec<Param>)>) -> String {
        let head = match layer {
            Layer::Linear(width) => format!("Linear{width}"),
            Layer::Product(width) => format!("Product{width}"),
            Layer::Exp => "Exp".to_string(),
        };
        match params {
            Some((w, b)) if w.iter().chain(b).any(|p| self.says_something(p)) => {
                format!("{head}(w={}, b={})", self.list(w), self.list(b))
            }
            _ => head,
        }
    }

    fn primitive(&self, p: &Primitive) -> String {
        let row = p.kind.row();
        let mut text = row.name.into_owned();
        if let Columns::These(list) = &p.columns {
            let column = |c: &Column| match c {
                Column::Number(n) => n.to_string(),
                Column::Name(n) if is_word(n) => n.clone(),
                Column::Name(n) => format!("{n:?}"),
            };
            text += &format!("[{}]", list.iter().map(column).collect::<Vec<_>>().join(","));
        }
        let mut args = Vec::new();
        if p.sharing == Sharing::Iso && p.kind.uses_columns() {
            args.push("iso".to_string());
        }
        for (group, (name, _, size)) in p.groups.iter().zip(row.groups) {
            // An open parameter of which there is always one needs no word.
            let silent = *size == Size::One && !self.says_something(&group[0]);
            match group.as_slice() {
                [] => {}
                _ if silent => {}
                [one] => args.push(format!("{name}={}", self.value(one))),
                many => args.push(format!("{name}={}", self.list(many))),
            }
        }
        if args.is_empty() { text } else { format!("{text}({})", args.join(", ")) }
    }

    fn says_something(&self, p: &Param) -> bool {
        p.value().is_some() || self.names.contains_key(&p.id())
    }

    fn value(&self, p: &Param) -> String {
        match (self.names.get(&p.id()), p.value()) {
            (Some(name), _) => name.clone(),
            (None, None) => "?".to_string(),
            (None, Some(v)) => format!("{}{}", number(v), if p.is_fixed() { "!" } else { "" }),
        }
    }

    fn list(&self, params: &[Param]) -> String {
        format!("[{}]", params.iter().map(|p| self.value(p)).collect::<Vec<_>>().join(", "))
    }
}

/// The shortest text that reads back as the same number, without a hundred zeros.
fn number(v: f64) -> String {
    if v != 0.0 && !(1e-5..1e16).contains(&v.abs()) { format!("{v:e}") } else { format!("{v}") }
}

/// A column name that needs no quotes.
pub(super) fn is_word(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Equal neighbours as `2 LIN`. Only bare primitives are counted: two mentions of one name are one unit, not two.
fn grouped(items: &[String]) -> Vec<String> {
    let mut out: Vec<(usize, &String)> = Vec::new();
    for item in items {
        let bare = is_word(item) && item.starts_with(char::is_uppercase);
        match out.last_mut() {
            Some((count, last)) if bare && *last == item => *count += 1,
            _ => out.push((1, item)),
        }
    }
    out.into_iter().map(|(count, item)| if count == 1 { item.clone() } else { format!("{count} {item}") }).collect()
}
