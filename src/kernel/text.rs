//! Kernel text becomes a kernel. Errors point at the character. The grammar:
//!
//! ```text
//! kernel := (`let` name `=` (sum | value) `;`)* sum
//! sum    := product (`+` product)*
//! product:= factor (`*` factor)*
//! factor := `(` sum `)` | `exp(` sum `)` | `real(` sum `)` | number | name | `nkn` | `heuristic` | SMq
//!         | `nkn(` [count] sum, …; layer-layer-… `)` | PRIMITIVE [`[`columns`]`] [`(`arguments`)`]
//! layer  := Linear8 [`(w=[…], b=[…])`] | Product4 | Exp
//! value  := number [`!`] | `?` | name          (`!` holds it there, `?` leaves it open)
//! ```

use super::network::LayerParams;
use super::primitive::Size;
use super::{Column, Columns, Kernel, Kind, Layer, Param, Primitive, Role, Sharing, Task, Transform, Unit};
use crate::error::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::str::FromStr;

impl FromStr for Kernel {
    type Err = Error;

    /// Reads kernel text; a bare `nkn` is the network for tables.
    fn from_str(text: &str) -> Result<Kernel> {
        Kernel::parse(text, Task::Table)
    }
}

impl Kernel {
    /// Reads kernel text; a bare `nkn` is the default network for the task.
    ///
    /// # Errors
    /// When the text cannot be read; the error points at the character.
    pub fn parse(text: &str, task: Task) -> Result<Kernel> {
        let mut parser = Parser { text, chars: text.chars().collect(), at: 0, depth: 0, names: HashMap::new(), task };
        let kernel = parser.kernel()?;
        parser.skip_space();
        if parser.at < parser.chars.len() {
            return Err(parser.error("expected `+`, `*` or the end"));
        }
        Ok(kernel)
    }
}

/// What a name stands for.
enum Named {
    Unit(Kernel),
    /// A value: number and whether it is held; it becomes a parameter when its first use tells its role.
    Value(Option<f64>, bool, Option<Param>),
}

struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
    depth: usize,
    names: HashMap<String, Named>,
    task: Task,
}

/// Parentheses nested deeper than this are refused, before the call stack ends.
const DEEPEST: usize = 200;

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> Error {
        self.error_at(self.at, message)
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> Error {
        let kind =
            ErrorKind::KernelText { text: self.text.replace(['\n', '\t', '\r'], " "), at, message: message.into() };
        Error::new(kind).with_hint("`covary kernels` lists the primitives and the way to write them")
    }

    fn skip_space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_string(), |c| format!("`{c}`"));
        Err(self.error(format!("expected `{c}`, found {found}")))
    }

    /// The word at this place, without taking it.
    fn word(&mut self) -> String {
        self.skip_space();
        let rest = &self.chars[self.at..];
        let is_start = rest.first().is_some_and(|c| c.is_alphabetic() || *c == '_');
        let length = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_' || **c == '.').count();
        if is_start { rest[..length].iter().collect() } else { String::new() }
    }

    fn take_word(&mut self) -> String {
        let word = self.word();
        self.at += word.chars().count();
        word
    }

    fn number(&mut self) -> Result<f64> {
        self.skip_space();
        let start = self.at;
        let part_of_number = |i: usize, c: char| {
            c.is_ascii_digit()
                || matches!(c, '.' | 'e' | 'E')
                || (matches!(c, '-' | '+') && (i == start || matches!(self.chars[i - 1], 'e' | 'E')))
        };
        let mut end = start;
        while self.chars.get(end).is_some_and(|&c| part_of_number(end, c)) {
            end += 1;
        }
        let digits: String = self.chars[start..end].iter().collect();
        match digits.parse::<f64>() {
            Ok(v) if v.is_finite() => {
                self.at = end;
                Ok(v)
            }
            _ => Err(self.error("expected a number")),
        }
    }

    fn kernel(&mut self) -> Result<Kernel> {
        while self.word() == "let" {
            self.take_word();
            let at = self.at;
            let name = self.take_word();
            if !name.starts_with(char::is_lowercase) || is_keyword(&name) {
                return Err(self.error_at(at, "expected a name in lower case"));
            }
            self.expect('=')?;
            // `0.5`, `0.5!` and `?` up to the semicolon are values; all else is a kernel.
            let start = self.at;
            let value = if self.eat('?') {
                Some((None, false))
            } else {
                self.number().ok().map(|v| (Some(v), self.eat('!')))
            };
            let named = match value {
                Some((v, held)) if self.peek() == Some(';') => Named::Value(v, held, None),
                _ => {
                    self.at = start;
                    Named::Unit(self.sum()?)
                }
            };
            self.expect(';')?;
            self.names.insert(name, named);
        }
        self.sum()
    }

    fn sum(&mut self) -> Result<Kernel> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(format!("nested deeper than {DEEPEST}")));
        }
        let mut list = vec![self.product()?];
        while self.eat('+') {
            list.push(self.product()?);
        }
        self.depth -= 1;
        Ok(Kernel::sum(list))
    }

    fn product(&mut self) -> Result<Kernel> {
        let mut list = vec![self.factor()?];
        while self.eat('*') {
            list.push(self.factor()?);
        }
        Ok(Kernel::product(list))
    }

    fn factor(&mut self) -> Result<Kernel> {
        match self.peek() {
            None => return Err(self.error("expected a kernel, found the end")),
            Some('(') => return self.parenthesised(),
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let (at, v) = (self.at, self.number()?);
                return if v > 0.0 {
                    Ok(Kernel::held_constant(v))
                } else {
                    Err(self.error_at(at, "a factor must be positive"))
                };
            }
            _ => {}
        }
        let at = self.at;
        let word = self.take_word();
        match word.as_str() {
            "exp" => Ok(self.parenthesised()?.exp()),
            "real" => Ok(self.parenthesised()?.real()),
            "heuristic" => Ok(Kernel::heuristic()),
            "nkn" if self.peek() == Some('(') => self.network(),
            "nkn" => Ok(Kernel::default_network(self.task)),
            "search" => Err(self.error_at(at, "`search` is a way to find a kernel, not a kernel")),
            _ => {
                if let Some(Named::Unit(kernel)) = self.names.get(&word) {
                    return Ok(kernel.clone());
                }
                if let Some(kind) = Kind::from_name(&word) {
                    return self.primitive(kind);
                }
                if let Some(q) = word.strip_prefix("SM").and_then(|q| q.parse::<usize>().ok()) {
                    return match q {
                        1..=1000 => Ok(Kernel::spectral_mixture(q)),
                        _ => Err(self.error_at(at, "a spectral mixture has 1 to 1000 components")),
                    };
                }
                if word.is_empty() {
                    return Err(self.error_at(at, format!("expected a kernel, found `{}`", self.chars[at])));
                }
                Err(self.error_at(at, format!("no kernel called `{word}`{}", suggestion(&word))))
            }
        }
    }

    fn parenthesised(&mut self) -> Result<Kernel> {
        self.expect('(')?;
        let kernel = self.sum()?;
        self.expect(')')?;
        Ok(kernel)
    }

    fn network(&mut self) -> Result<Kernel> {
        let start = self.at;
        self.expect('(')?;
        let mut inputs = Vec::new();
        loop {
            let count = match self.peek() {
                Some(c) if c.is_ascii_digit() => {
                    let (at, v) = (self.at, self.number()?);
                    if v.fract() != 0.0 || !(1.0..=1000.0).contains(&v) {
                        return Err(self.error_at(at, "expected a count from 1 to 1000"));
                    }
                    v as usize
                }
                _ => 1,
            };
            let again = self.at;
            inputs.push(self.sum()?);
            for _ in 1..count {
                // Read again: two LINs are two units.
                self.at = again;
                inputs.push(self.sum()?);
            }
            if !self.eat(',') {
                break;
            }
        }
        self.expect(';')?;
        let mut layers = vec![self.layer()?];
        while self.eat('-') {
            layers.push(self.layer()?);
        }
        self.expect(')')?;
        Kernel::network_with(inputs, &layers).map_err(|e| self.error_at(start, e.to_string()))
    }

    fn layer(&mut self) -> Result<LayerParams> {
        let at = self.at;
        let word = self.take_word();
        let width = |prefix: &str| {
            word.strip_prefix(prefix).and_then(|w| w.parse::<usize>().ok()).filter(|w| (1..=4096).contains(w))
        };
        if word == "Exp" {
            Ok((Layer::Exp, None))
        } else if let Some(width) = width("Product") {
            Ok((Layer::Product(width), None))
        } else if let Some(width) = width("Linear") {
            let mut params = None;
            if self.eat('(') {
                let list = |parser: &mut Self, name: &str, role| {
                    let at = parser.at;
                    if parser.take_word() != name {
                        return Err(parser.error_at(at, format!("expected `{name}=`")));
                    }
                    parser.expect('=')?;
                    parser.values(role)
                };
                let w = list(self, "w", Role::Weight)?;
                self.expect(',')?;
                params = Some((w, list(self, "b", Role::Bias)?));
                self.expect(')')?;
            }
            Ok((Layer::Linear(width), params))
        } else {
            Err(self.error_at(at, "expected a layer: Linear8, Product4 or Exp"))
        }
    }

    fn primitive(&mut self, kind: Kind) -> Result<Kernel> {
        let mut primitive = Primitive::new(kind);
        if self.eat('[') {
            primitive.columns = Columns::These(self.columns()?);
        }
        if self.eat('(') {
            let groups = kind.row().groups;
            loop {
                let at = self.at;
                let word = self.take_word();
                if word == "iso" || word == "ard" {
                    primitive.sharing = if word == "iso" { Sharing::Iso } else { Sharing::Ard };
                } else if let Some(g) = groups.iter().position(|g| g.0 == word) {
                    self.expect('=')?;
                    let place = self.at;
                    primitive.groups[g] = self.values(groups[g].1)?;
                    let many = primitive.groups[g].len() != 1;
                    if many && (groups[g].2 == Size::One || primitive.groups[g].is_empty()) {
                        return Err(self.error_at(place, format!("{word} takes one value")));
                    }
                } else {
                    let names: Vec<&str> = groups.iter().map(|g| g.0).chain(["iso", "ard"]).collect();
                    return Err(self.error_at(at, format!("expected one of: {}", names.join(", "))));
                }
                if !self.eat(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        Ok(Kernel::from_unit(Unit::Primitive(primitive)))
    }

    fn columns(&mut self) -> Result<Vec<Column>> {
        let mut list = Vec::new();
        loop {
            let at = self.at;
            let column = if self.eat('"') {
                let rest = &self.chars[self.at..];
                let Some(end) = rest.iter().position(|&c| c == '"') else {
                    return Err(self.error_at(at, "no closing quote"));
                };
                let name = rest[..end].iter().collect();
                self.at += end + 1;
                Column::Name(name)
            } else if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                let v = self.number()?;
                if v.fract() != 0.0 || v > 1e9 {
                    return Err(self.error_at(at, "expected a column number"));
                }
                Column::Number(v as usize)
            } else {
                let word = self.take_word();
                if word.is_empty() {
                    return Err(self.error("expected a column name or number"));
                }
                Column::Name(word)
            };
            if list.contains(&column) {
                return Err(self.error_at(at, "the same column twice"));
            }
            list.push(column);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(']')?;
        Ok(list)
    }

    /// One value or a list of them.
    fn values(&mut self, role: Role) -> Result<Vec<Param>> {
        if !self.eat('[') {
            return Ok(vec![self.value(role)?]);
        }
        let mut list = vec![self.value(role)?];
        while self.eat(',') {
            list.push(self.value(role)?);
        }
        self.expect(']')?;
        Ok(list)
    }

    fn value(&mut self, role: Role) -> Result<Param> {
        if self.eat('?') {
            return Ok(Param::open(role));
        }
        let (at, word) = (self.at, self.word());
        if !word.is_empty() {
            self.take_word();
            let Some(Named::Value(value, held, param)) = self.names.get_mut(&word) else {
                return Err(self.error_at(at, format!("no value called `{word}`")));
            };
            let fresh = || make(role, *value, *held);
            let param = param.get_or_insert_with(fresh).clone();
            return self.checked(at, role, param);
        }
        let v = self.number()?;
        let held = self.eat('!');
        self.checked(at, role, make(role, Some(v), held))
    }

    fn checked(&self, at: usize, role: Role, param: Param) -> Result<Param> {
        let least = if matches!(role, Role::Weight | Role::Bias | Role::Offset) { 0.0 } else { f64::MIN_POSITIVE };
        match param.value() {
            Some(v) if role.transform() != Transform::Identity && v < least => {
                Err(self.error_at(at, format!("a {} must be positive: {v}", role.name())))
            }
            _ => Ok(param),
        }
    }
}

fn make(role: Role, value: Option<f64>, held: bool) -> Param {
    match value {
        None => Param::open(role),
        Some(v) if held => Param::fixed(role, v),
        Some(v) => Param::at(role, v),
    }
}

fn is_keyword(name: &str) -> bool {
    matches!(name, "let" | "exp" | "real" | "nkn" | "heuristic" | "search" | "iso" | "ard")
}

/// The known name that a mistyped one most resembles.
fn suggestion(word: &str) -> String {
    let upper = word.to_uppercase();
    let names = Kind::all().into_iter().map(|k| k.row().name);
    let mut close = names.filter(|name| {
        let common = name.chars().zip(upper.chars()).take_while(|(a, b)| a == b).count();
        *name == upper || (common >= 2 && common + 2 >= name.len())
    });
    close.next_back().map_or(String::new(), |name| format!("; did you mean {name}?"))
}
