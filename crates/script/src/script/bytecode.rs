//! Reads Luau bytecode to find what a script's top level returns and which globals it uses, without running the script.
//!
//! mlua provides a function's parameters only when the function exists, which requires running the script. The bytecode
//! contains the same information: the `RETURN` of the main function, the instruction that last wrote its register, and
//! the child function that this instruction created. More complex cases (several returns with a value, a result that
//! depends on a jump, a call) are [`MainReturn::Unknown`]. For unsupported bytecode versions, [`read`] returns `None`.
//!
//! Globals are the names that the compiler did not resolve to locals, so they are not shadowed. The values of locals
//! are not tracked: `local h = http` is a use of `http`, and uses of `h` are ignored.
//!
//! Source: Luau 0.740, `VM/src/lvmload.cpp` and `Common/include/Luau/Bytecode.h`, read in November 2026.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A function, as described by its bytecode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionInfo {
    /// The parameter names. Unknown names are empty.
    pub(crate) parameters: Vec<String>,
    pub(crate) is_vararg: bool,
    /// The first line, from 1.
    pub(crate) line: usize,
}

/// The value that the main function returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MainReturn {
    /// A function that is defined in the file.
    Function(FunctionInfo),
    /// Nothing, or a value of another type. Holds its kind.
    Other(&'static str),
    /// Cannot be determined.
    Unknown,
}

/// The first use of a global in a file, for one kind of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalUse {
    /// The global's name and those of the fields that are read from it, as in `http`, `get`. At most three names.
    pub path: Vec<String>,
    /// The kind of use.
    pub access: GlobalAccess,
    /// The line, from 1.
    pub line: usize,
}

/// The kind of use of a global.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GlobalAccess {
    /// Read.
    Read,
    /// Assigned.
    Set,
    /// Defined as a function at the top level: `function helper() … end`.
    Defined,
}

/// The information about a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkInfo {
    pub(crate) returned: MainReturn,
    /// Sorted by line. Each kind of use of each path is listed once.
    pub(crate) globals: Vec<GlobalUse>,
}

/// Reads `bytecode`. Returns `None` if its version or format is not supported.
pub(crate) fn read(bytecode: &[u8]) -> Option<ChunkInfo> {
    let mut reader = Reader { rest: bytecode };
    let version = reader.byte()?;
    if !(4..=9).contains(&version) {
        return None;
    }
    let types_version = reader.byte()?;
    let strings = (0..reader.varint()?)
        .map(|_| {
            let length = reader.varint()?;
            reader.take(length).map(String::from_utf8_lossy)
        })
        .collect::<Option<Vec<_>>>()?;
    if types_version == 3 {
        while reader.byte()? != 0 {
            reader.varint()?;
        }
    }
    let functions = (0..reader.varint()?).map(|_| reader.function(&strings)).collect::<Option<Vec<_>>>()?;
    let main_index = reader.varint()?;
    let main = functions.get(main_index)?;
    Some(ChunkInfo {
        returned: main.returned(&functions),
        globals: globals(&functions, main_index, &strings),
    })
}

fn globals(functions: &[FunctionCode], main: usize, strings: &[Cow<'_, str>]) -> Vec<GlobalUse> {
    let mut found = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        function.globals(index == main, strings, &mut found);
    }
    found.sort_by_key(|used| used.line);
    let mut seen = HashSet::new();
    found.retain(|used| seen.insert((used.path.clone(), used.access)));
    found
}

struct Reader<'b> {
    rest: &'b [u8],
}

struct FunctionCode {
    info: FunctionInfo,
    code: Vec<Instruction>,
    lines: Lines,
    constants: Vec<Constant>,
    children: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Constant {
    Value(&'static str),
    /// The number of the string, from 1.
    String(usize),
    Function(usize),
}

/// An instruction and its position, in words.
#[derive(Clone, Copy)]
struct Instruction {
    at: usize,
    word: u32,
    aux: u32,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok();
            }
        }
        None
    }

    fn function(&mut self, strings: &[Cow<'_, str>]) -> Option<FunctionCode> {
        let _stack = self.byte()?;
        let parameters = self.byte()?;
        let _upvalues = self.byte()?;
        let is_vararg = self.byte()? != 0;
        let _flags = self.byte()?;
        let types = self.varint()?;
        self.take(types)?;
        let length = self.varint()?;
        let code = self.code(length)?;
        let constants = (0..self.varint()?).map(|_| self.constant()).collect::<Option<Vec<_>>>()?;
        let children = (0..self.varint()?).map(|_| self.varint()).collect::<Option<Vec<_>>>()?;
        let line = self.varint()?;
        let _name = self.varint()?;
        let lines = if self.byte()? == 0 { Lines::default() } else { self.lines(length)? };
        let mut names = vec![String::new(); usize::from(parameters)];
        if self.byte()? != 0 {
            for _ in 0..self.varint()? {
                let (name, start, _end) = (self.varint()?, self.varint()?, self.varint()?);
                let register = usize::from(self.byte()?);
                // The first instruction of a vararg function prepares its arguments. Its parameters are valid after
                // that.
                if start <= usize::from(is_vararg)
                    && let (Some(slot), Some(name)) =
                        (names.get_mut(register), strings.get(name.wrapping_sub(1)))
                    && slot.is_empty()
                {
                    name.as_ref().clone_into(slot);
                }
            }
            for _ in 0..self.varint()? {
                self.varint()?;
            }
        }
        Some(FunctionCode {
            info: FunctionInfo { parameters: names, is_vararg, line },
            code,
            lines,
            constants,
            children,
        })
    }

    /// Reads the line table. A line is the sum of the start line of its interval and an offset. The offset is the
    /// wrapping sum of the bytes so far.
    fn lines(&mut self, length: usize) -> Option<Lines> {
        let gap = u32::from(self.byte()?);
        let mut offset = 0_u8;
        let mut offsets = Vec::with_capacity(length);
        for added in self.take(length)? {
            offset = offset.wrapping_add(*added);
            offsets.push(offset);
        }
        let mut line = 0_i32;
        let intervals = length.checked_sub(1)?.checked_shr(gap)? + 1;
        let starts = (0..intervals).map(|_| {
            line = line.wrapping_add(self.word()?.cast_signed());
            Some(line)
        });
        Some(Lines { gap, starts: starts.collect::<Option<_>>()?, offsets })
    }

    fn code(&mut self, length: usize) -> Option<Vec<Instruction>> {
        let mut code = Vec::with_capacity(length.min(self.rest.len()));
        let mut at = 0;
        while at < length {
            let word = self.word()?;
            let has_aux = op::has_aux(word as u8);
            let aux = if has_aux { self.word()? } else { 0 };
            code.push(Instruction { at, word, aux });
            at += if has_aux { 2 } else { 1 };
        }
        (at == length).then_some(code)
    }

    fn constant(&mut self) -> Option<Constant> {
        Some(match self.byte()? {
            0 => Constant::Value("nil"),
            1 => self.skip(1, "a boolean")?,
            2 => self.skip(8, "a number")?,
            3 => Constant::String(self.varint()?),
            4 => self.skip(4, "an imported value")?,
            5 => {
                for _ in 0..self.varint()? {
                    self.varint()?;
                }
                Constant::Value("a table")
            }
            6 => Constant::Function(self.varint()?),
            7 => self.skip(16, "a vector")?,
            8 => {
                for _ in 0..self.varint()? {
                    self.varint()?;
                    self.word()?;
                }
                Constant::Value("a table")
            }
            9 => {
                self.byte()?;
                self.varint()?;
                Constant::Value("an integer")
            }
            _ => return None,
        })
    }

    fn skip(&mut self, bytes: usize, kind: &'static str) -> Option<Constant> {
        self.take(bytes)?;
        Some(Constant::Value(kind))
    }
}

impl FunctionCode {
    fn returned(&self, functions: &[Self]) -> MainReturn {
        let mut returns = self.code.iter().enumerate().filter(|(_, code)| code.op() == op::RETURN);
        let mut with_value = returns.clone().filter(|(_, code)| code.b() != 1);
        let Some((index, code)) = with_value.next() else { return MainReturn::Other("nothing") };
        let implicit = self.code.len() - 1;
        let has_other = returns.any(|(other, _)| other != index && other != implicit);
        if with_value.next().is_some() || has_other || code.b() == 0 {
            return MainReturn::Unknown;
        }
        self.register_value(index, code.a(), functions)
    }

    /// Returns the value of `register` at the instruction `index`.
    fn register_value(&self, index: usize, register: u8, functions: &[Self]) -> MainReturn {
        let before = self.code.get(..index).unwrap_or_default();
        let Some(writer) = before.iter().rposition(|code| code.writes(register)) else {
            return MainReturn::Unknown;
        };
        let (Some(code), Some(user)) = (self.code.get(writer), self.code.get(index)) else {
            return MainReturn::Unknown;
        };
        // If a jump from elsewhere leads to an instruction between the two, the register may hold a different value.
        let between = |at: usize| at > code.at && at <= user.at;
        if self.code.iter().any(|jump| !between(jump.at) && jump.target().is_some_and(between)) {
            return MainReturn::Unknown;
        }
        let constant = |index: usize| match self.constants.get(index) {
            Some(Constant::Value(kind)) => MainReturn::Other(kind),
            Some(Constant::String(_)) => MainReturn::Other("a string"),
            Some(Constant::Function(function)) => returned_function(functions, *function),
            None => MainReturn::Unknown,
        };
        match code.op() {
            op::LOADNIL => MainReturn::Other("nil"),
            op::LOADB => MainReturn::Other("a boolean"),
            op::LOADN => MainReturn::Other("a number"),
            op::LOADK | op::DUPCLOSURE => constant(code.d()),
            op::LOADKX => constant(code.aux as usize),
            op::NEWTABLE | op::DUPTABLE => MainReturn::Other("a table"),
            op::MOVE => self.register_value(writer, code.b(), functions),
            op::NEWCLOSURE => self
                .children
                .get(code.d())
                .map_or(MainReturn::Unknown, |&child| returned_function(functions, child)),
            _ => MainReturn::Unknown,
        }
    }
}

impl FunctionCode {
    /// Adds the globals that this function uses.
    fn globals(&self, is_main: bool, strings: &[Cow<'_, str>], found: &mut Vec<GlobalUse>) {
        let text = |constant: usize| match self.constants.get(constant) {
            Some(Constant::String(number)) => strings.get(number.wrapping_sub(1)).map(ToString::to_string),
            Some(Constant::Value(_) | Constant::Function(_)) | None => None,
        };
        let targets: HashSet<usize> = self.code.iter().filter_map(|code| code.target()).collect();
        for (index, code) in self.code.iter().enumerate() {
            let (mut path, access) = match code.op() {
                op::GETIMPORT => (code.import().map_while(text).collect::<Vec<_>>(), GlobalAccess::Read),
                op::GETGLOBAL => (text(code.aux as usize).into_iter().collect(), GlobalAccess::Read),
                op::SETGLOBAL => {
                    let is_definition = is_main && self.is_closure_made(index, code.a());
                    let access = if is_definition { GlobalAccess::Defined } else { GlobalAccess::Set };
                    (text(code.aux as usize).into_iter().collect(), access)
                }
                _ => continue,
            };
            if access == GlobalAccess::Read
                && let Some(field) = self.field_read(index, code.a(), &targets)
            {
                path.extend(text(field));
            }
            if !path.is_empty() {
                found.push(GlobalUse {
                    path,
                    access,
                    line: self.lines.at(code.at).unwrap_or(self.info.line),
                });
            }
        }
    }
}

/// Maximum number of instructions (a method's arguments) between the load of a global and the read of its field.
const NEAR: usize = 32;

impl FunctionCode {
    /// Returns the field that is read from the value which the instruction `index` loads into `register`.
    fn field_read(&self, index: usize, register: u8, targets: &HashSet<usize>) -> Option<usize> {
        for code in self.code.get(index + 1..)?.iter().take(NEAR) {
            if targets.contains(&code.at) {
                return None;
            }
            if matches!(code.op(), op::GETTABLEKS | op::NAMECALL) && code.b() == register {
                return Some(code.aux as usize);
            }
            if code.writes(register) {
                return None;
            }
        }
        None
    }

    /// Returns whether the instruction before `index` (ignoring captures) creates a function in `register`.
    fn is_closure_made(&self, index: usize, register: u8) -> bool {
        let before = self.code.get(..index).unwrap_or_default();
        let made = before.iter().rev().find(|code| code.op() != op::CAPTURE);
        made.is_some_and(|code| matches!(code.op(), op::NEWCLOSURE | op::DUPCLOSURE) && code.a() == register)
    }
}

/// The lines of a function's instructions.
#[derive(Default)]
struct Lines {
    /// The binary logarithm of the number of words in an interval.
    gap: u32,
    starts: Vec<i32>,
    offsets: Vec<u8>,
}

impl Lines {
    /// Returns the line, from 1, of the instruction at a word.
    fn at(&self, word: usize) -> Option<usize> {
        let start = self.starts.get(word.checked_shr(self.gap)?)?;
        let offset = self.offsets.get(word)?;
        usize::try_from(start.checked_add(i32::from(*offset))?).ok().filter(|line| *line > 0)
    }
}

fn returned_function(functions: &[FunctionCode], index: usize) -> MainReturn {
    functions.get(index).map_or(MainReturn::Unknown, |function| MainReturn::Function(function.info.clone()))
}

impl Instruction {
    fn op(self) -> u8 {
        self.word as u8
    }

    fn a(self) -> u8 {
        (self.word >> 8) as u8
    }

    fn b(self) -> u8 {
        (self.word >> 16) as u8
    }

    fn c(self) -> u8 {
        (self.word >> 24) as u8
    }

    /// Returns operand D, for instructions that use it as an index.
    fn d(self) -> usize {
        (self.word >> 16) as usize
    }

    /// Returns the constants of an import path: ten bits each, their number in the two highest bits.
    fn import(self) -> impl Iterator<Item = usize> {
        let aux = self.aux;
        [20, 10, 0].into_iter().take((aux >> 30) as usize).map(move |shift| ((aux >> shift) & 0x3FF) as usize)
    }

    /// Returns the possible jump target. Jumps of fast calls are ignored: they skip an equivalent normal call.
    fn target(self) -> Option<usize> {
        let by = match self.op() {
            op::LOADB if self.c() != 0 => i32::from(self.c()),
            op::JUMPX => self.word.cast_signed() >> 8,
            op if op::jumps(op) => self.word.cast_signed() >> 16,
            _ => return None,
        };
        usize::try_from(i64::try_from(self.at).ok()? + 1 + i64::from(by)).ok()
    }

    /// Returns whether it may write `register`.
    fn writes(self, register: u8) -> bool {
        let op = self.op();
        match op {
            // These write their register and those after it, or loop variables.
            op::CALL | op::GETVARARGS | op::NAMECALL | op::FORGLOOP | op::FORNPREP | op::FORNLOOP => {
                self.a() <= register
            }
            _ => self.a() == register && !op::only_reads(op),
        }
    }
}

/// The opcodes that are used here.
mod op {
    pub(crate) const LOADNIL: u8 = 2;
    pub(crate) const LOADB: u8 = 3;
    pub(crate) const LOADN: u8 = 4;
    pub(crate) const LOADK: u8 = 5;
    pub(crate) const MOVE: u8 = 6;
    pub(crate) const GETGLOBAL: u8 = 7;
    pub(crate) const SETGLOBAL: u8 = 8;
    pub(crate) const GETIMPORT: u8 = 12;
    pub(crate) const GETTABLEKS: u8 = 15;
    pub(crate) const NEWCLOSURE: u8 = 19;
    pub(crate) const NAMECALL: u8 = 20;
    pub(crate) const CALL: u8 = 21;
    pub(crate) const RETURN: u8 = 22;
    pub(crate) const NEWTABLE: u8 = 53;
    pub(crate) const DUPTABLE: u8 = 54;
    pub(crate) const FORNPREP: u8 = 56;
    pub(crate) const FORNLOOP: u8 = 57;
    pub(crate) const FORGLOOP: u8 = 58;
    pub(crate) const GETVARARGS: u8 = 63;
    pub(crate) const DUPCLOSURE: u8 = 64;
    pub(crate) const LOADKX: u8 = 66;
    pub(crate) const JUMPX: u8 = 67;
    pub(crate) const CAPTURE: u8 = 70;

    /// Returns whether a second word follows.
    pub(crate) fn has_aux(op: u8) -> bool {
        matches!(op, 7 | 8 | 12 | 15 | 16 | 20 | 27..=32 | 53 | 55 | 58 | 60 | 66 | 74 | 75 | 77..=80 | 83..=88 | 90)
    }

    /// Returns whether operand D is a jump offset.
    pub(crate) fn jumps(op: u8) -> bool {
        matches!(op, 23..=32 | 56..=59 | 61 | 76..=80)
    }

    /// Returns whether operand A is not a register that is written: stores, jumps, returns, captures and so on.
    pub(crate) fn only_reads(op: u8) -> bool {
        matches!(op, 0 | 1 | 8 | 10 | 11 | 14 | 16 | 18 | 22..=32 | 55 | 60 | 65 | 67..=70 | 73..=75 | 77..=80)
    }
}
