//! Reads from Luau bytecode what a script's top level returns, without running it.
//!
//! mlua shows a function's parameters only once the function exists, and to make a script's function exist is to run
//! the script. The compiler's output says the same: the main function's one `RETURN`, the instruction that last wrote
//! its register, and the child function which that made. Anything less plain than that (several returns with a value,
//! a result that a jump may choose, a call) is [`MainReturn::Unknown`], as is bytecode of a version this does not know.
//!
//! Source: Luau 0.740, `VM/src/lvmload.cpp` and `Common/include/Luau/Bytecode.h`, read in November 2026.

/// A function as its bytecode describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionShape {
    /// The parameters' names; an empty one where the name is not known.
    pub(super) parameters: Vec<String>,
    pub(super) is_vararg: bool,
    /// From 1.
    pub(super) line: usize,
}

/// What the main function returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MainReturn {
    /// A function of the file.
    Function(FunctionShape),
    /// Nothing, or a value of another type.
    Other(&'static str),
    /// Cannot be told from here.
    Unknown,
}

/// What the main function of `bytecode` returns; `None` when it is not bytecode as this module knows it.
pub(super) fn main_return(bytecode: &[u8]) -> Option<MainReturn> {
    let mut reader = Reader { rest: bytecode };
    let version = reader.byte()?;
    if !(4..=9).contains(&version) {
        return None;
    }
    let types_version = reader.byte()?;
    let strings = (0..reader.varint()?)
        .map(|_| {
            let length = reader.varint()?;
            reader.take(length).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        })
        .collect::<Option<Vec<_>>>()?;
    if types_version == 3 {
        while reader.byte()? != 0 {
            reader.varint()?;
        }
    }
    let functions = (0..reader.varint()?).map(|_| reader.function(&strings)).collect::<Option<Vec<_>>>()?;
    let main = functions.get(reader.varint()?)?;
    Some(main.returned(&functions))
}

struct Reader<'b> {
    rest: &'b [u8],
}

struct FunctionCode {
    shape: FunctionShape,
    code: Vec<Instruction>,
    constants: Vec<Constant>,
    children: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Constant {
    Value(&'static str),
    Function(usize),
}

/// An instruction and its place, in words.
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

    fn function(&mut self, strings: &[String]) -> Option<FunctionCode> {
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
        if self.byte()? != 0 {
            let gap = u32::from(self.byte()?);
            self.take(length)?;
            let intervals = (length.checked_sub(1)?.checked_shr(gap)?) + 1;
            self.take(intervals.checked_mul(4)?)?;
        }
        let mut names = vec![String::new(); usize::from(parameters)];
        if self.byte()? != 0 {
            for _ in 0..self.varint()? {
                let (name, start, _end) = (self.varint()?, self.varint()?, self.varint()?);
                let register = usize::from(self.byte()?);
                // A vararg function's first instruction prepares its arguments; the parameters live from the next.
                if start <= usize::from(is_vararg)
                    && let (Some(slot), Some(name)) =
                        (names.get_mut(register), strings.get(name.wrapping_sub(1)))
                    && slot.is_empty()
                {
                    slot.clone_from(name);
                }
            }
            for _ in 0..self.varint()? {
                self.varint()?;
            }
        }
        Some(FunctionCode {
            shape: FunctionShape { parameters: names, is_vararg, line },
            code,
            constants,
            children,
        })
    }

    fn code(&mut self, length: usize) -> Option<Vec<Instruction>> {
        let mut code = Vec::new();
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
            3 => {
                self.varint()?;
                Constant::Value("a string")
            }
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

    fn skip(&mut self, bytes: usize, what: &'static str) -> Option<Constant> {
        self.take(bytes)?;
        Some(Constant::Value(what))
    }
}

impl FunctionCode {
    fn returned(&self, functions: &[Self]) -> MainReturn {
        let mut returns = self.code.iter().enumerate().filter(|(_, code)| code.op() == op::RETURN);
        let mut with_value = returns.clone().filter(|(_, code)| code.b() != 1);
        let Some((index, code)) = with_value.next() else { return MainReturn::Other("nothing") };
        let implicit = self.code.len() - 1;
        let another = returns.any(|(other, _)| other != index && other != implicit);
        if with_value.next().is_some() || another || code.b() == 0 {
            return MainReturn::Unknown;
        }
        self.written(index, code.a(), functions)
    }

    /// What `register` holds at the instruction `index`.
    fn written(&self, index: usize, register: u8, functions: &[Self]) -> MainReturn {
        let before = self.code.get(..index).unwrap_or_default();
        let Some(writer) = before.iter().rposition(|code| code.writes(register)) else {
            return MainReturn::Unknown;
        };
        let (Some(code), Some(user)) = (self.code.get(writer), self.code.get(index)) else {
            return MainReturn::Unknown;
        };
        // A jump from elsewhere to between the two may mean another value.
        let between = |at: usize| at > code.at && at <= user.at;
        if self.code.iter().any(|jump| !between(jump.at) && jump.target().is_some_and(between)) {
            return MainReturn::Unknown;
        }
        let constant = |index: usize| match self.constants.get(index) {
            Some(Constant::Value(what)) => MainReturn::Other(what),
            Some(Constant::Function(function)) => shape(functions, *function),
            None => MainReturn::Unknown,
        };
        match code.op() {
            op::LOADNIL => MainReturn::Other("nil"),
            op::LOADB => MainReturn::Other("a boolean"),
            op::LOADN => MainReturn::Other("a number"),
            op::LOADK | op::DUPCLOSURE => constant(code.d()),
            op::LOADKX => constant(code.aux as usize),
            op::NEWTABLE | op::DUPTABLE => MainReturn::Other("a table"),
            op::MOVE => self.written(writer, code.b(), functions),
            op::NEWCLOSURE => {
                self.children.get(code.d()).map_or(MainReturn::Unknown, |&child| shape(functions, child))
            }
            _ => MainReturn::Unknown,
        }
    }
}

fn shape(functions: &[FunctionCode], index: usize) -> MainReturn {
    functions.get(index).map_or(MainReturn::Unknown, |function| MainReturn::Function(function.shape.clone()))
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

    /// The operand D of an instruction for which it is an index.
    fn d(self) -> usize {
        (self.word >> 16) as usize
    }

    /// Where it may jump to. Fast calls jump over the plain way of doing the same, which changes nothing here.
    fn target(self) -> Option<usize> {
        let by = match self.op() {
            op::LOADB if self.c() != 0 => i32::from(self.c()),
            op::JUMPX => self.word.cast_signed() >> 8,
            op if op::jumps(op) => self.word.cast_signed() >> 16,
            _ => return None,
        };
        usize::try_from(i64::try_from(self.at).ok()? + 1 + i64::from(by)).ok()
    }

    /// Whether it may write `register`.
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

/// The instructions' numbers, where they matter.
mod op {
    pub(super) const LOADNIL: u8 = 2;
    pub(super) const LOADB: u8 = 3;
    pub(super) const LOADN: u8 = 4;
    pub(super) const LOADK: u8 = 5;
    pub(super) const MOVE: u8 = 6;
    pub(super) const NEWCLOSURE: u8 = 19;
    pub(super) const NAMECALL: u8 = 20;
    pub(super) const CALL: u8 = 21;
    pub(super) const RETURN: u8 = 22;
    pub(super) const NEWTABLE: u8 = 53;
    pub(super) const DUPTABLE: u8 = 54;
    pub(super) const FORNPREP: u8 = 56;
    pub(super) const FORNLOOP: u8 = 57;
    pub(super) const FORGLOOP: u8 = 58;
    pub(super) const GETVARARGS: u8 = 63;
    pub(super) const DUPCLOSURE: u8 = 64;
    pub(super) const LOADKX: u8 = 66;
    pub(super) const JUMPX: u8 = 67;

    /// Whether a second word follows.
    pub(super) fn has_aux(op: u8) -> bool {
        matches!(op, 7 | 8 | 12 | 15 | 16 | 20 | 27..=32 | 53 | 55 | 58 | 60 | 66 | 74 | 75 | 77..=80 | 83..=88 | 90)
    }

    /// Whether the operand D is a jump's offset.
    pub(super) fn jumps(op: u8) -> bool {
        matches!(op, 23..=32 | 56..=59 | 61 | 76..=80)
    }

    /// Whether the operand A is no register that is written: stores, jumps, returns, captures and the like.
    pub(super) fn only_reads(op: u8) -> bool {
        matches!(op, 0 | 1 | 8 | 10 | 11 | 14 | 16 | 18 | 22..=32 | 55 | 60 | 65 | 67..=70 | 73..=75 | 77..=80)
    }
}
