// Reflected CRCs with sixteen tables: sixteen bytes take one turn ("slicing by 16"). The register is a word of 64 bits,
// which a CRC of 32 bits fills to a half.
import { get, I32, I64, i32, i64, loopWhile, set, when, type Code, type WasmFunction } from './assembler';

const SLICES = 16;
const ENTRIES = 256;
const ENTRY_BYTES = 8;
export const TABLES_BYTES = SLICES * ENTRIES * ENTRY_BYTES;

/** Entry n of table t is the CRC of the byte n and t zero bytes. */
export function crcTables(polynomial: bigint): BigUint64Array {
  const tables = new BigUint64Array(SLICES * ENTRIES);
  for (let n = 0; n < ENTRIES; n += 1) {
    let value = BigInt(n);
    for (let bit = 0; bit < 8; bit += 1) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n;
    tables[n] = value;
  }
  for (let n = ENTRIES; n < tables.length; n += 1) {
    const before = tables[n - ENTRIES] as bigint;
    tables[n] = (before >> 8n) ^ (tables[Number(before & 255n)] as bigint);
  }
  return tables;
}

const [crc, at, end, tables, first, second] = [0, 1, 2, 3, 4, 5] as const;

/** `update(register, from, to, tables)`, addresses all but the first, gives the new register. */
export const crcFunction: WasmFunction = {
  name: 'update',
  parameters: [I64, I32, I32, I32],
  results: [I64],
  locals: [I64, I64],
  body: [
    ...when(
      hasMore(SLICES),
      loopWhile(
        [
          ...set(first, i64.xor(i64.load(get(at)), get(crc))),
          ...set(second, i64.load(get(at), 8)),
          ...set(crc, sliced()),
          ...set(at, i32.add(get(at), i32.const(SLICES))),
        ],
        hasMore(SLICES),
      ),
    ),
    ...when(
      hasMore(1),
      loopWhile(
        [
          ...set(
            crc,
            i64.xor(i64.shiftRight(get(crc), i64.constSmall(8)), entry(0, i32.xor(low(get(crc)), i32.load8(get(at))))),
          ),
          ...set(at, i32.add(get(at), i32.const(1))),
        ],
        hasMore(1),
      ),
    ),
    ...get(crc),
  ],
};

function hasMore(bytes: number): Code {
  return i32.isAtLeast(i32.subtract(get(end), get(at)), i32.const(bytes));
}

function low(word: Code): Code {
  return i32.and(i32.wrap(word), i32.const(255));
}

function entry(table: number, index: Code): Code {
  const address = i32.add(get(tables), i32.shiftLeft(index, i32.const(3)));
  return i64.load(address, table * ENTRIES * ENTRY_BYTES);
}

function sliced(): Code {
  const bytes = Array.from({ length: SLICES }, (_, n) => {
    const word = n < 8 ? first : second;
    return entry(SLICES - 1 - n, low(i64.shiftRight(get(word), i64.constSmall(8 * (n % 8)))));
  });
  return bytes.reduce((sum, one) => i64.xor(sum, one));
}
