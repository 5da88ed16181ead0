// WebAssembly in the small: expressions are lists of bytes, functions are put together to a module. What is hashed here
// needs instructions that JavaScript does not have: words of 64 bits, and several words at once.
// https://webassembly.github.io/spec/core/binary/

export type Code = readonly number[];

export const I32 = 0x7f;
export const I64 = 0x7e;
/** Four words of 32 bits. */
export const V128 = 0x7b;
type ValueType = typeof I32 | typeof I64 | typeof V128;

export interface WasmFunction {
  name: string;
  parameters: readonly ValueType[];
  results: readonly ValueType[];
  locals: readonly ValueType[];
  body: Code;
}

const PAGE_BYTES = 65_536;
const END = 0x0b;
const SIMD = 0xfd;
const WORD_ALIGNMENT = 0; // of bytes: no promise

/** A module that takes its memory as `memory` of `host` and exports all its functions. */
export function assembleModule(functions: readonly WasmFunction[], memoryBytes: number): Uint8Array {
  const types = functions.map(({ parameters, results }) => [0x60, ...list(parameters), ...list(results)]);
  const bodies = functions.map(({ locals, body }) => {
    const declared = locals.map((type) => [1, type]);
    const code = [...unsigned(declared.length), ...declared.flat(), ...body, END];
    return [...unsigned(code.length), ...code];
  });
  const indices = functions.map((_, index) => unsigned(index));
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, types),
    ...section(2, [[...text('host'), ...text('memory'), 2, 0, ...unsigned(memoryBytes / PAGE_BYTES)]]),
    ...section(3, indices),
    ...section(
      7,
      functions.map(({ name }, index) => [...text(name), 0, ...unsigned(index)]),
    ),
    ...section(10, bodies),
  ]);
}

/** @returns null where the host has no WebAssembly, or too little address space for it */
export function instantiate<Exports>(
  functions: () => readonly WasmFunction[],
  bytes: number,
): { memory: Uint8Array; exports: Exports } | null {
  try {
    const pages = Math.ceil(bytes / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const code = new WebAssembly.Module(assembleModule(functions(), pages * PAGE_BYTES) as Uint8Array<ArrayBuffer>);
    const { exports } = new WebAssembly.Instance(code, { host: { memory } });
    return { memory: new Uint8Array(memory.buffer), exports: exports as Exports };
  } catch {
    return null;
  }
}

function section(id: number, items: readonly Code[]): Code {
  const content = [...unsigned(items.length), ...items.flat()];
  return [id, ...unsigned(content.length), ...content];
}

function list(types: readonly ValueType[]): Code {
  return [...unsigned(types.length), ...types];
}

function text(value: string): Code {
  return [...unsigned(value.length), ...Buffer.from(value)];
}

/** LEB128. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): Code {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}

const of2 =
  (...operation: number[]) =>
  (a: Code, b: Code): Code => [...a, ...b, ...operation];
const of1 =
  (...operation: number[]) =>
  (a: Code): Code => [...a, ...operation];
const load =
  (...operation: number[]) =>
  (address: Code, offset = 0): Code => [...address, ...operation, WORD_ALIGNMENT, ...unsigned(offset)];
const store =
  (...operation: number[]) =>
  (address: Code, value: Code, offset = 0): Code => [
    ...address,
    ...value,
    ...operation,
    WORD_ALIGNMENT,
    ...unsigned(offset),
  ];

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];
/** Runs it, and again while the condition at its end is not 0. */
export const loopWhile = (body: Code, condition: Code): Code => [0x03, 0x40, ...body, ...condition, 0x0d, 0, END];
/** Runs it unless the condition is 0. */
export const when = (condition: Code, body: Code): Code => [...condition, 0x04, 0x40, ...body, END];

export const i32 = {
  const: (value: number): Code => [0x41, ...signed(value | 0)],
  ...{ load: load(0x28), load8: load(0x2d), store: store(0x36) },
  ...{ add: of2(0x6a), subtract: of2(0x6b), and: of2(0x71), or: of2(0x72), xor: of2(0x73) },
  ...{ shiftLeft: of2(0x74), shiftRight: of2(0x76), rotateLeft: of2(0x77), isAtLeast: of2(0x4f) },
  wrap: of1(0xa7),
};

export const i64 = {
  ...{ load: load(0x29), extend: of1(0xad), xor: of2(0x85), shiftRight: of2(0x88) },
  constSmall: (value: number): Code => [0x42, ...signed(value)],
};

export const v128 = {
  ...{ load: load(SIMD, 0), store: store(SIMD, 11) },
  /** Each lane. */
  const: (value: number): Code => {
    const bytes = [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24];
    return [SIMD, 12, ...bytes, ...bytes, ...bytes, ...bytes];
  },
  /** The words with these numbers: 0 to 3 are those of `a`, 4 to 7 those of `b`. */
  shuffle: (a: Code, b: Code, words: readonly number[]): Code => [
    ...[...a, ...b, SIMD, 13],
    ...words.flatMap((word) => [4 * word, 4 * word + 1, 4 * word + 2, 4 * word + 3]),
  ],
  ...{ add: of2(SIMD, 0xae, 1), not: of1(SIMD, 77), and: of2(SIMD, 78), andNot: of2(SIMD, 79) },
  ...{ or: of2(SIMD, 80), xor: of2(SIMD, 81) },
  shiftLeft: of2(SIMD, 0xab, 1),
  shiftRight: of2(SIMD, 0xad, 1),
};
