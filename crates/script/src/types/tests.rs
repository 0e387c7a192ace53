//! Luau types of the globals of test scripts.

use super::declare;
use crate::host::host_tables;

/// The globals that only test scripts have, as `testing.lua` defines them.
const TEST_GLOBALS: &str = r"
export type Expectation = {
  equals: (expected: any) -> (),
  is: (expected: any) -> (),
  is_nil: () -> (),
  contains: (part: any) -> (),
  matches: (pattern: string) -> (),
  near: (number: number, tolerance: number?) -> (),
  fails: (part: any?) -> ExpectedError,
}
export type ExpectedError = { kind: string, message: string, path: string?, details: string? }
export type NegatableExpectation = Expectation & { never: Expectation }
--- Defines a test.
declare function test(name: string, body: () -> ()): ()
--- Starts an expectation: `expect(value).equals(3)`.
declare function expect(value: any): NegatableExpectation
--- Creates a function that returns `answer`, or calls it, and stores its arguments in `calls`.
declare function mock(answer: any?): any
--- Returns the absolute path of a folder that is removed when the test ends.
declare function temp_dir(): string
declare temp: {
  write: (name: string, text: string) -> (),
  read: (name: string) -> string?,
  list: () -> { string },
}
";

/// The field of `tool` that only test scripts have.
const LOAD: &str =
    "  load: (name: string, options: { [string]: any }?) -> (arguments: { [string]: any }?) -> any,\n";

/// Returns the definition file of what test scripts have in addition to scripts.
pub fn test_definitions() -> String {
    let mut file = String::from(TEST_GLOBALS);
    for table in host_tables().iter().filter(|table| table.name == "tool") {
        // The types of the table are those of the definitions for all scripts.
        declare(&mut file, &crate::host::TableDoc { types: "", ..*table }, LOAD);
    }
    file
}
